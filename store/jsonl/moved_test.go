package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// A store acknowledges nothing that nobody can reach: its folder, the folder of
// a log or the log itself was removed, renamed or replaced while it was open.
func TestMovedWhileOpen(t *testing.T) {
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"), sessiontest.User("three"))
	away := func(p string) string { return p + ".away" }
	move := func(p string) error { return os.Rename(p, away(p)) }
	for _, c := range []struct {
		name string
		do   func(dir, path string) error
		undo func(dir, path string) error // nil: the log is lost
	}{
		{"log unlinked", func(_, p string) error { return os.Remove(p) }, nil},
		{"log renamed", func(_, p string) error { return move(p) }, func(_, p string) error { return os.Rename(away(p), p) }},
		{"logs renamed", func(_, p string) error { return move(filepath.Dir(p)) },
			func(_, p string) error { return os.Rename(away(filepath.Dir(p)), filepath.Dir(p)) }},
		{"store renamed", func(d, _ string) error { return move(d) }, func(d, _ string) error { return os.Rename(away(d), d) }},
		{"store removed", func(d, _ string) error { return os.RemoveAll(d) }, nil},
		{"store replaced", func(d, _ string) error { return errors.Join(move(d), os.Mkdir(d, 0o700)) },
			func(d, _ string) error { return errors.Join(os.RemoveAll(d), os.Rename(away(d), d)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			st, err := Open(dir, Options{})
			must(t, err)
			defer st.Close()
			must(t, st.Append(t.Context(), "s1", recs[:3]...))
			path := logFile(t, st, "s1")
			must(t, c.do(dir, path))
			for range 2 {
				if err := st.Append(t.Context(), "s1", recs[3]); !errors.Is(err, session.ErrMoved) && !errors.Is(err, session.ErrConflict) || strings.Contains(err.Error(), "\n") {
					t.Errorf("append: %v, want %v", err, session.ErrMoved)
				}
			}
			if strings.HasPrefix(c.name, "store") {
				if _, err := st.Lock(t.Context(), "s1", "me"); !errors.Is(err, session.ErrMoved) {
					t.Errorf("lock: %v, want %v", err, session.ErrMoved)
				}
				if files, _ := os.ReadDir(dir); len(files) > 0 {
					t.Errorf("%v was made in a folder that is not the store's", files)
				}
			}
			if c.undo == nil {
				return
			}
			must(t, c.undo(dir, path))
			st = reopen(t, dir, OpenClaw)
			must(t, st.Append(t.Context(), "s1", recs[3]))
			if got, damage := readAll(t, st, "s1"); idsOf(got) != idsOf(recs) || len(damage) > 0 {
				t.Errorf("put back, the log is %s (%v), want %s", idsOf(got), damage, idsOf(recs))
			}
		})
	}
}

// meddled is a disk on which another program acts before a sync.
type meddled struct {
	disk
	act func()
}

type meddledFile struct {
	file
	d *meddled
}

func (d *meddled) open(name string, flag int) (file, error) {
	f, err := d.disk.open(name, flag)
	if err != nil || !strings.HasSuffix(name, ext) {
		return f, err
	}
	return meddledFile{f, d}, nil
}

func (f meddledFile) Sync() error {
	if f.d.act != nil {
		f.d.act()
		f.d.act = nil
	}
	return f.file.Sync()
}

// A log that is unlinked, renamed or replaced while a record is written to it
// does not get the record.
func TestMovedWhileAppending(t *testing.T) {
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"))
	for name, act := range map[string]func(path string) error{
		"unlinked": os.Remove,
		"renamed":  func(p string) error { return os.Rename(p, p+".away") },
		"replaced": func(p string) error { return errors.Join(os.Rename(p, p+".away"), os.WriteFile(p, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			d := &meddled{disk: osDisk{}}
			st, err := open(t.TempDir(), Options{}, d)
			must(t, err)
			defer st.Close()
			must(t, st.Append(t.Context(), "s1", recs[:2]...))
			path := logFile(t, st, "s1")
			before, err := os.ReadFile(path)
			must(t, err)
			d.act = func() { must(t, act(path)) }
			if err := st.Append(t.Context(), "s1", recs[2]); !errors.Is(err, session.ErrMoved) {
				t.Errorf("append: %v, want %v", err, session.ErrMoved)
			}
			if after, err := os.ReadFile(path + ".away"); err == nil && string(after) != string(before) {
				t.Errorf("the file that was moved has changed:\n%s", after)
			}
		})
	}
}
