package jsonl

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// shaky is a disk whose operation number fail fails; 0: none. If die is set, all
// operations after it fail as well, as if the process had been killed. A write
// that fails has written cut bytes. Nothing is synced: this is about killed
// processes, not about power failures.
type shaky struct {
	disk
	mu   sync.Mutex
	n    int
	fail int
	cut  int
	die  bool
	what string // the operation that failed
	size int    // of the write that failed
	rest bool   // nothing fails or is counted
}

var errShaky = errors.New("the disk has failed")

func (d *shaky) step(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rest {
		return nil
	}
	d.n++
	if d.n == d.fail {
		d.what = op + " " + filepath.Base(name)
		return errShaky
	}
	if d.die && d.fail > 0 && d.n > d.fail {
		return errShaky
	}
	return nil
}

func (d *shaky) open(name string, flag int) (file, error) {
	if err := d.step("open", name); err != nil {
		return nil, err
	}
	f, err := d.disk.open(name, flag)
	if err != nil {
		return nil, err
	}
	return &shakyFile{f, d, name}, nil
}

func (d *shaky) lstat(name string) (stat, error) {
	if err := d.step("lstat", name); err != nil {
		return stat{}, err
	}
	return d.disk.lstat(name)
}

func (d *shaky) readDir(name string) ([]fs.DirEntry, error) {
	if err := d.step("readDir", name); err != nil {
		return nil, err
	}
	return d.disk.readDir(name)
}

func (d *shaky) mkdir(name string) error {
	if err := d.step("mkdir", name); err != nil {
		return err
	}
	return d.disk.mkdir(name)
}

func (d *shaky) rename(from, to string) error {
	if err := d.step("rename", from); err != nil {
		return err
	}
	return d.disk.rename(from, to)
}

func (d *shaky) remove(name string) error {
	if err := d.step("remove", name); err != nil {
		return err
	}
	return d.disk.remove(name)
}

func (d *shaky) syncDir(name string) error {
	return d.step("syncDir", name)
}

type shakyFile struct {
	file
	d    *shaky
	name string
}

func (f *shakyFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.d.step("read", f.name); err != nil {
		return 0, err
	}
	return f.file.ReadAt(b, off)
}

func (f *shakyFile) Write(b []byte) (int, error) {
	if err := f.d.step("write", f.name); err != nil {
		if f.d.n == f.d.fail {
			f.d.size = len(b)
			n, _ := f.file.Write(b[:min(f.d.cut, len(b))])
			return n, err
		}
		return 0, err
	}
	return f.file.Write(b)
}

func (f *shakyFile) Sync() error { return f.d.step("sync", f.name) }

func (f *shakyFile) Truncate(n int64) error {
	if err := f.d.step("truncate", f.name); err != nil {
		return err
	}
	return f.file.Truncate(n)
}

func (f *shakyFile) stat() (stat, error) {
	if err := f.d.step("stat", f.name); err != nil {
		return stat{}, err
	}
	return f.file.stat()
}

// reopen opens the store in dir on a good disk.
func reopen(t testing.TB, dir string, y Layout) *Store {
	t.Helper()
	st, err := open(dir, Options{Layout: y}, &shaky{disk: osDisk{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// readAll returns the records of a log and its damage.
func readAll(t testing.TB, st session.Store, id session.ID) (recs []session.Record, damage []*session.Damage) {
	t.Helper()
	for r, err := range st.Read(t.Context(), id, 0) {
		var d *session.Damage
		switch {
		case errors.As(err, &d):
			damage = append(damage, d)
		case errors.Is(err, session.ErrNotFound):
			return nil, nil
		case err != nil:
			t.Fatal(err)
		default:
			recs = append(recs, r)
		}
	}
	return recs, damage
}

func idsOf(recs []session.Record) string {
	var ids []string
	for i, r := range recs {
		if int(r.Seq) != i+1 {
			return fmt.Sprintf("record %d has Seq %d", i+1, r.Seq)
		}
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, ",")
}

func logFile(t testing.TB, st *Store, id session.ID) string {
	t.Helper()
	p, ok := st.Path(id)
	if !ok {
		t.Fatalf("there is no log %s", id)
	}
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A log that is cut anywhere in its last line opens with the records before,
// reports the damage, and the next append begins a new line.
func TestCutAtEveryByte(t *testing.T) {
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two 🦀"), sessiontest.User("three"))
	for _, y := range layouts {
		for _, indexed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v,indexed=%v", y, indexed), func(t *testing.T) {
				proto := t.TempDir()
				st := reopen(t, proto, y)
				must(t, st.Append(t.Context(), "s1", recs[:3]...))
				must(t, st.Close())
				index, err := os.ReadFile(st.proj.indexPath())
				must(t, err)
				path := logFile(t, st, "s1")
				before, err := os.ReadFile(path)
				must(t, err)
				st = reopen(t, proto, y)
				must(t, st.Append(t.Context(), "s1", recs[3]))
				must(t, st.Close())
				after, err := os.ReadFile(path)
				must(t, err)
				rel, err := filepath.Rel(proto, path)
				must(t, err)
				for n := len(before); n <= len(after); n++ {
					dir := t.TempDir()
					file := filepath.Join(dir, rel)
					must(t, os.MkdirAll(filepath.Dir(file), 0o700))
					must(t, os.WriteFile(file, after[:n], 0o600))
					if indexed {
						must(t, os.MkdirAll(filepath.Join(dir, own), 0o700))
						must(t, os.WriteFile(filepath.Join(dir, own, "index"), index, 0o600))
					}
					want, torn := "", false
					switch {
					case n >= len(after)-1: // without its line end, the record is whole
						want = idsOf(recs)
					default:
						want, torn = idsOf(recs[:3]), n > len(before)
					}
					st := reopen(t, dir, y)
					got, damage := readAll(t, st, "s1")
					if idsOf(got) != want {
						t.Fatalf("cut at byte %d of %d: records %s, want %s", n, len(after), idsOf(got), want)
					}
					if torn != (len(damage) == 1) || torn && (damage[0].File != file || damage[0].Line != strings.Count(string(before), "\n")+1 || damage[0].Size != int64(n-len(before))) {
						t.Fatalf("cut at byte %d: damage %v", n, damage)
					}
					in, err := session.Stat(t.Context(), st, "s1")
					must(t, err)
					next := session.Record{Seq: in.Last + 1, ID: "next", Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("next")}
					must(t, st.Append(t.Context(), "s1", next))
					for _, st := range []*Store{st, reopen(t, dir, y)} {
						again, damage := readAll(t, st, "s1")
						if idsOf(again) != want+",next" || torn != (len(damage) == 1) {
							t.Fatalf("cut at byte %d, then appended to: records %s, damage %v", n, idsOf(again), damage)
						}
						checkInfo(t, st, "s1")
					}
					must(t, st.Close())
				}
			})
		}
	}
}

// checkInfo compares the list with Replay.
func checkInfo(t testing.TB, st session.Store, id session.ID) {
	t.Helper()
	got, err := session.Stat(t.Context(), st, id)
	must(t, err)
	s, err := session.Replay(id, st.Read(t.Context(), id, 0))
	must(t, err)
	s.Info.Trashed = got.Trashed
	if d := cmp.Diff(s.Info, got, sessiontest.SameInfo); d != "" {
		t.Fatalf("list of %s differs from replay (-replay +list):\n%s", id, d)
	}
}

// A process that dies anywhere in a batch leaves all of it or nothing.
func TestBatchCutAtEveryByte(t *testing.T) {
	long := flag.Lookup("soak").Value.String() != "0s"
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"), sessiontest.User("three"), sessiontest.Answer("four"))
	for _, y := range []Layout{OpenClaw, Claw0Old} {
		for begin, name := range map[int]string{0: "a new log", 2: "an old log"} {
			t.Run(fmt.Sprintf("%v,%s", y, name), func(t *testing.T) {
				seen := map[string]bool{}
				for fail := 1; ; fail++ {
					died := false
					for cut := 0; ; cut++ {
						dir := t.TempDir()
						st := reopen(t, dir, y)
						if begin > 0 {
							must(t, st.Append(t.Context(), "s1", recs[:begin]...))
						}
						must(t, st.Close())
						d := &shaky{disk: osDisk{}}
						bad, err := open(dir, Options{Layout: y}, d)
						must(t, err)
						bad.proj.pause = time.Hour // nothing happens by itself
						d.n, d.fail, d.cut, d.die = 0, fail, cut, true
						err = bad.Append(t.Context(), "s1", recs[begin:]...)
						died = d.n >= fail
						st = reopen(t, dir, y)
						got, damage := readAll(t, st, "s1")
						has := idsOf(got)
						if has != idsOf(recs) && (err == nil || has != idsOf(recs[:begin])) || len(damage) > 0 {
							t.Fatalf("died in operation %d (%s) after %d bytes, append says %v: records %s, damage %v", fail, d.what, cut, err, has, damage)
						}
						seen[has] = true
						if len(got) == begin {
							must(t, st.Append(t.Context(), "s1", recs[begin:]...))
							if got, _ := readAll(t, st, "s1"); idsOf(got) != idsOf(recs) {
								t.Fatalf("died in operation %d (%s), then appended: records %s", fail, d.what, idsOf(got))
							}
						}
						checkInfo(t, st, "s1")
						must(t, st.Close())
						if !strings.HasPrefix(d.what, "write") || cut >= d.size {
							break
						}
						if strings.HasSuffix(d.what, ".batch") {
							cut += 50 // no difference: the batch was not begun
						} else if y != OpenClaw {
							cut += 9
						} else if !long {
							cut += 2 // TestCutAtEveryByte tries every byte
						}
					}
					if !died {
						break
					}
				}
				if len(seen) != 2 {
					t.Errorf("saw only %v", seen)
				}
			})
		}
	}
}

// Whatever operation fails, once or from then on: records that were appended are
// there, refused ones are not there in part, and the store goes on.
func TestEveryOperationFails(t *testing.T) {
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"), sessiontest.User("three"), sessiontest.Answer("four"))
	type step struct {
		name string
		do   func(st *Store) error
		want map[string]string // log -> ids, "T" in front if in the trash, after the step
	}
	ctx := t.Context()
	steps := []step{
		{"begin", func(st *Store) error { return st.Append(ctx, "s1", recs[0]) }, map[string]string{"s1": idsOf(recs[:1])}},
		{"append", func(st *Store) error { return st.Append(ctx, "s1", recs[1]) }, map[string]string{"s1": idsOf(recs[:2])}},
		{"batch", func(st *Store) error { return st.Append(ctx, "s1", recs[2:4]...) }, map[string]string{"s1": idsOf(recs[:4])}},
		{"list", func(st *Store) error {
			_, err := sessiontest.Collect(st.List(ctx, session.Query{}))
			return err
		}, map[string]string{"s1": idsOf(recs[:4])}},
		{"read", func(st *Store) error {
			_, err := sessiontest.Collect(st.Read(ctx, "s1", 1))
			return err
		}, map[string]string{"s1": idsOf(recs[:4])}},
		{"delete", func(st *Store) error { return st.Delete(ctx, "s1") }, map[string]string{"s1": "T" + idsOf(recs[:4])}},
		{"restore", func(st *Store) error { return st.Restore(ctx, "s1") }, map[string]string{"s1": idsOf(recs[:4])}},
		{"append again", func(st *Store) error { return st.Append(ctx, "s1", recs[4]) }, map[string]string{"s1": idsOf(recs)}},
		{"delete again", func(st *Store) error { return st.Delete(ctx, "s1") }, map[string]string{"s1": "T" + idsOf(recs)}},
		{"purge", func(st *Store) error { return st.Purge(ctx, "s1") }, map[string]string{"s1": ""}},
		{"close", func(st *Store) error { return st.Close() }, map[string]string{"s1": ""}},
	}
	state := func(t *testing.T, st session.Store) string {
		got, damage := readAll(t, st, "s1")
		for _, d := range damage {
			if !d.Unfinished {
				t.Fatalf("damage: %v", d)
			}
		}
		if len(got) == 0 {
			return ""
		}
		in, err := session.Stat(ctx, st, "s1")
		must(t, err)
		checkInfo(t, st, "s1")
		if !in.Trashed.IsZero() {
			return "T" + idsOf(got)
		}
		return idsOf(got)
	}
	for _, die := range []bool{false, true} {
		for _, cut := range []int{0, 7} {
			t.Run(fmt.Sprintf("die=%v,cut=%d", die, cut), func(t *testing.T) {
				failures := 0
				for fail := 1; ; fail++ {
					dir := t.TempDir()
					d := &shaky{disk: osDisk{}, fail: fail, cut: cut, die: die}
					st, err := open(dir, Options{}, d)
					if err != nil {
						if !errors.Is(err, errShaky) {
							t.Fatal(err)
						}
						continue
					}
					st.proj.pause = time.Hour // nothing happens by itself
					now := ""
					for _, s := range steps {
						err := s.do(st)
						if err != nil && !errors.Is(err, errShaky) {
							t.Fatalf("operation %d (%s) failed, then %s: %v", fail, d.what, s.name, err)
						}
						if err == nil {
							now = s.want["s1"]
						} else {
							// During a failure, the old and the new state are right.
							got := state(t, reopen(t, dir, OpenClaw))
							if got != now && got != s.want["s1"] {
								t.Fatalf("%s failed in operation %d (%s): the log is %q, was %q", s.name, fail, d.what, got, now)
							}
							if die {
								break
							}
							if torn(dir) {
								t.Fatalf("%s failed in operation %d (%s): half a line is left", s.name, fail, d.what)
							}
							if got == now && s.name != "close" {
								if err := s.do(st); err != nil && !errors.Is(err, session.ErrNotFound) {
									t.Fatalf("%s failed in operation %d (%s), and again: %v", s.name, fail, d.what, err)
								}
							}
							now = s.want["s1"]
						}
						if !die && s.name != "close" {
							d.rest = true
							got := state(t, st)
							d.rest = false
							if got != now {
								t.Fatalf("after %s, with operation %d (%s) failing: the log is %q, want %q", s.name, fail, d.what, got, now)
							}
						}
					}
					if d.n < fail {
						break
					}
					failures++
					if got := state(t, reopen(t, dir, OpenClaw)); !die && got != now {
						t.Fatalf("operation %d (%s) failed; reopened, the log is %q, want %q", fail, d.what, got, now)
					}
				}
				if failures < 50 {
					t.Errorf("only %d operations failed", failures)
				}
			})
		}
	}
}

// torn reports whether the log ends in a torn line.
func torn(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, agents, "main", sessions, "s1"+ext))
	return err == nil && len(b) > 0 && b[len(b)-1] != '\n'
}
