package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite/internal/files"
)

// contents returns the bytes of the files of a database. A missing one is nil.
func contents(t testing.TB, path string) (all [len(files.Suffixes)][]byte) {
	t.Helper()
	for i, suffix := range files.Suffixes {
		b, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		all[i] = b
	}
	return all
}

// A write-ahead log whose database is missing or empty is left as it is,
// whichever way the database is opened.
func TestOrphanedWAL(t *testing.T) {
	for _, empty := range []bool{false, true} {
		t.Run(fmt.Sprintf("empty=%v", empty), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			path := filepath.Join(dir, "sessions.db")
			s := at(t, path)
			talk(t, s, "s1", 48)
			saved := contents(t, path) // as a killed process leaves them
			must(t, s.Close())
			for i, suffix := range files.Suffixes {
				must(t, os.WriteFile(path+suffix, saved[i], 0o600))
			}
			must(t, os.Rename(path, path+".away"))
			what := " is missing, but "
			if empty {
				must(t, os.WriteFile(path, nil, 0o600))
				what = " is empty, but "
			}
			link := filepath.Join(t.TempDir(), "link.db")
			must(t, os.Symlink(path, link))
			folder := filepath.Join(t.TempDir(), "folder")
			must(t, os.Symlink(dir, folder))
			want := contents(t, path)
			for _, p := range []string{path, link, filepath.Join(folder, "sessions.db")} {
				for _, opts := range [][]Option{nil, {ReadOnly()}} {
					s, err := Open(p, opts...)
					if err == nil {
						s.Close()
					}
					if err == nil || !strings.Contains(err.Error(), path+what+path+"-wal has ") || strings.Contains(err.Error(), "\n") {
						t.Errorf("open %s with %d options: %v, want %q", p, len(opts), err, what)
					}
					if !same(contents(t, path), want) {
						t.Fatalf("open %s with %d options: the files have changed", p, len(opts))
					}
				}
			}
			must(t, os.Rename(path+".away", path))
			s = at(t, path)
			if got, err := sessiontest.Collect(s.Read(bg, "s1", 0)); len(got) != 49 || err != nil {
				t.Errorf("moved back, the log has %d records (%v), want 49", len(got), err)
			}
		})
	}
	// A log without pages is nothing to keep.
	path := filepath.Join(t.TempDir(), "sessions.db")
	must(t, os.WriteFile(path+"-wal", make([]byte, files.LogHeader), 0o600))
	talk(t, at(t, path), "s1", 1)
}

func same(a, b [len(files.Suffixes)][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// A store acknowledges nothing once its files cannot be reached, and what it
// acknowledged before is there when they can.
func TestMovedWhileOpen(t *testing.T) {
	away := func(p string) string { return p + ".away" }
	move := func(t *testing.T, p string) { must(t, os.Rename(p, away(p))) }
	for _, c := range []struct {
		name string
		do   func(t *testing.T, path string)
		undo func(t *testing.T, path string) // so that the database can be opened again; nil: it cannot
	}{
		{"database unlinked", func(t *testing.T, p string) { must(t, os.Remove(p)) }, nil},
		{"database renamed", move, func(t *testing.T, p string) { must(t, os.Rename(away(p), p)) }},
		{"database emptied", func(t *testing.T, p string) { must(t, os.Truncate(p, 0)) }, nil},
		{"database replaced", func(t *testing.T, p string) {
			b := at(t, filepath.Join(t.TempDir(), "b.db"))
			talk(t, b, "s1", 3)
			must(t, b.Close())
			move(t, p)
			must(t, os.Rename(b.path, p))
		}, func(t *testing.T, p string) { must(t, os.Rename(away(p), p)) }},
		{"database replaced by a link to it", func(t *testing.T, p string) {
			move(t, p)
			must(t, os.Symlink(away(p), p))
		}, func(t *testing.T, p string) { must(t, os.Rename(away(p), p)) }},
		{"log unlinked", func(t *testing.T, p string) { must(t, os.Remove(p+"-wal")) }, func(*testing.T, string) {}},
		{"shared memory unlinked", func(t *testing.T, p string) { must(t, os.Remove(p+"-shm")) }, func(*testing.T, string) {}},
		{"folder renamed", func(t *testing.T, p string) { move(t, filepath.Dir(p)) },
			func(t *testing.T, p string) { must(t, os.Rename(away(filepath.Dir(p)), filepath.Dir(p))) }},
		{"folder replaced", func(t *testing.T, p string) {
			move(t, filepath.Dir(p))
			talk(t, at(t, p), "other", 3)
		}, func(t *testing.T, p string) {
			must(t, os.RemoveAll(filepath.Dir(p)))
			must(t, os.Rename(away(filepath.Dir(p)), filepath.Dir(p)))
		}},
		{"folder removed", func(t *testing.T, p string) { must(t, os.RemoveAll(filepath.Dir(p))) }, nil},
	} {
		for _, wrote := range []bool{true, false} { // the store has written since it was opened
			t.Run(fmt.Sprintf("%s,wrote=%v", c.name, wrote), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "store", "sessions.db")
				s := at(t, path)
				recs := talk(t, s, "s1", 20)
				if !wrote {
					must(t, s.Close())
					s = at(t, path)
				}
				c.do(t, path)
				next := session.Record{Seq: 22, ID: "e021", Parent: "e020", Time: sessiontest.Start, Body: sessiontest.User("lost?")}
				for range 2 {
					err := s.Append(bg, "s1", next)
					if !errors.Is(err, session.ErrMoved) || strings.Contains(err.Error(), "\n") {
						t.Errorf("append: %v, want %v", err, session.ErrMoved)
					}
				}
				if _, err := s.Lock(bg, "s1", "me"); !errors.Is(err, session.ErrMoved) {
					t.Errorf("lock: %v, want %v", err, session.ErrMoved)
				}
				if err := s.Append(bg, "s2", header("s2")); !errors.Is(err, session.ErrMoved) {
					t.Errorf("a new log: %v, want %v", err, session.ErrMoved)
				}
				if _, err := os.Stat(filepath.Dir(path)); err == nil && strings.HasPrefix(c.name, "folder re") && c.name != "folder replaced" {
					t.Error("the folder was made again")
				}
				must(t, s.Close())
				if c.undo == nil {
					return
				}
				c.undo(t, path)
				s = at(t, path)
				if got, err := sessiontest.Collect(s.Read(bg, "s1", 0)); len(got) != len(recs) || err != nil {
					t.Errorf("opened again, the log has %d records (%v), want %d", len(got), err, len(recs))
				}
				must(t, s.Append(bg, "s1", next))
				if got := reports(t, s); len(got) != 0 {
					t.Errorf("check reports %q", got)
				}
			})
		}
	}
}

// Another program that closes the database does not take the write-ahead log
// away, whatever this one has read or written.
func TestLogStaysWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	must(t, s.Append(bg, "s1", header("s1"), said(2, "", strings.Repeat("x", 3<<20))))
	if _, err := sessiontest.Collect(s.Read(bg, "s1", 0)); err != nil {
		t.Fatal(err)
	}
	other, err := sqlite3.Open(path)
	must(t, err)
	must(t, other.Exec("SELECT count(*) FROM records"))
	must(t, other.Close())
	must(t, s.Append(bg, "s2", header("s2")))
}
