package inherit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"goclaw/internal/inherit"
	"goclaw/session"
)

// TestFollow: what a program writes is there soon after, also in a folder and
// a file that were not there before, and also where the system does not tell.
func TestFollow(t *testing.T) {
	src := t.TempDir()
	st := openStore(t, t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- inherit.Follow(ctx, st, []inherit.Root{{Path: src}}, inherit.FollowOptions{
			Import: inherit.ImportOptions{Memo: inherit.NewMemo("")}, Poll: 500 * time.Millisecond,
			Imported: func(_ inherit.Report, err error) {
				if err != nil {
					t.Error(err)
				}
			},
		})
	}()
	turns := func(id session.ID, want int) {
		t.Helper()
		var in session.Info
		for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
			if in, _ = session.Stat(ctx, st, id); in.Turns == want {
				return
			}
		}
		t.Errorf("%s has %d turns, want %d", id, in.Turns, want)
	}
	file := filepath.Join(src, "a.jsonl")
	appendTo(t, file, header("a"))
	appendTo(t, file, userLine("1", "", "one"))
	turns("a", 1)
	appendTo(t, file, userLine("2", "1", "two"))
	turns("a", 2)
	if err := os.Mkdir(filepath.Join(src, "new"), 0o700); err != nil {
		t.Fatal(err)
	}
	appendTo(t, filepath.Join(src, "new", "b.jsonl"), header("b"))
	appendTo(t, filepath.Join(src, "new", "b.jsonl"), userLine("1", "", "one"))
	turns("b", 1)
	// A transcript whose entry in the index comes later has its key then.
	dir := filepath.Join(src, "agents", "main", "sessions")
	chained(t, filepath.Join(dir, "c.jsonl"), "c", 1)
	turns("c", 1)
	write(t, filepath.Join(dir, "sessions.json"), `{}`)
	time.Sleep(50 * time.Millisecond)
	write(t, filepath.Join(dir, "sessions.json"), `{"agent:main:main":{"sessionId":"c"}}`)
	var in session.Info
	for begin := time.Now(); in.Key != "agent:main:main" && time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		in, _ = session.Stat(ctx, st, "c")
	}
	if in.Key != "agent:main:main" {
		t.Errorf("the key is %q", in.Key)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Follow ended with %v", err)
	}
}

// TestLook: a look imports what is new in what was asked for, and does not even
// ask the store if nothing has changed.
func TestLook(t *testing.T) {
	ctx := context.Background()
	asked, other := t.TempDir(), t.TempDir()
	chained(t, filepath.Join(asked, "a.jsonl"), "a", 1)
	chained(t, filepath.Join(other, "b.jsonl"), "b", 1)
	path := filepath.Join(t.TempDir(), "inherit.json")
	memo, err := inherit.OpenMemo(path)
	if err != nil {
		t.Fatal(err)
	}
	st := openStore(t, t.TempDir())
	memo.Give([]string{asked}, "")
	take(t, st, memo, false, asked)
	if memo, err = inherit.OpenMemo(path); err != nil {
		t.Fatal(err)
	}
	roots := memo.Roots([]string{asked, other})
	if len(roots) != 1 || roots[0].Path != asked {
		t.Fatalf("%v is followed, want %s", roots, asked)
	}
	look := func(st session.Store) int {
		t.Helper()
		rep, err := inherit.Look(ctx, st, roots, inherit.FollowOptions{Import: inherit.ImportOptions{Memo: memo}})
		if err != nil {
			t.Fatal(err)
		}
		return rep.Records()
	}
	if n := look(nil); n != 0 { // without a store it would panic
		t.Errorf("%d records are new", n)
	}
	appendTo(t, filepath.Join(asked, "a.jsonl"), userLine("x", "", "later"))
	chained(t, filepath.Join(asked, "c.jsonl"), "c", 1)
	if n := look(st); n != 3 {
		t.Errorf("%d records are new, want 3", n)
	}
	if n := look(nil); n != 0 {
		t.Errorf("then %d records are new", n)
	}
	if got := memo.Troubles(roots); len(got) != 0 {
		t.Errorf("troubles: %q", got)
	}
	if err := os.RemoveAll(asked); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} { // it is said once
		if got := memo.Troubles(roots); len(got) != want {
			t.Errorf("it is gone: %q, want %d", got, want)
		}
	}
	if n := look(nil); n != 0 {
		t.Errorf("%d records are new in what is gone", n)
	}
}

// TestFollowRows: what a program writes into its database is there soon after,
// and its other folders are not looked at.
func TestFollowRows(t *testing.T) {
	r := newRows(t, "opencode.db", opencodeSchema)
	write(t, filepath.Join(filepath.Dir(r.path), "snapshot/a/objects/rows.jsonl"), "the user's own\n")
	r.do("INSERT INTO session VALUES ('ses_1', 'global', NULL, 'slug', '/home/me/proj', 'A title', '1.18', NULL, 1, 1, NULL, NULL)")
	st := openStore(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	k := 0
	turn := func() {
		for _, step := range r.opencodeTurn(k, true) {
			step()
		}
		k++
	}
	turn()
	records := 0
	err := inherit.Follow(ctx, st, []inherit.Root{{Path: filepath.Dir(r.path)}}, inherit.FollowOptions{Import: inherit.ImportOptions{Memo: inherit.NewMemo("")},
		Imported: func(rep inherit.Report, err error) {
			if records += rep.Records(); err != nil {
				t.Error(err)
			}
			in, _ := session.Stat(ctx, st, "ses_1")
			switch {
			case in.Turns == 3:
				cancel()
			case in.Turns == k: // all of it is here
				turn()
			}
		}})
	if !errors.Is(err, context.Canceled) || k != 3 {
		t.Fatalf("%d turns, %v", k, err)
	}
	r.same(st, "ses_1")
	if _, cat := take(t, st, nil, false, filepath.Dir(r.path)); len(cat.Problems) > 0 {
		t.Errorf("%v", cat.Problems)
	}
}
