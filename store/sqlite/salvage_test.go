package sqlite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

const pageSize = 4096

// closeFile closes s and returns its file, the write-ahead log taken in.
func closeFile(t *testing.T, s *Store) []byte {
	t.Helper()
	must(t, s.Close())
	sql(t, s.path, "PRAGMA wal_checkpoint(TRUNCATE)")
	b, err := os.ReadFile(s.path)
	must(t, err)
	return b
}

// junk returns file with the page n (1 is the first) overwritten.
func junk(file []byte, n int) []byte {
	file = append([]byte(nil), file...)
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	page := file[(n-1)*pageSize : n*pageSize]
	for i := range page {
		page[i] = byte(rng.Uint32()) | 0x80 // no kind of page begins like that
	}
	return file
}

// Whichever page is lost, what is not on it can be read and listed, the doctor
// gets to the end, and a copy of all that can be read is a store that is whole.
func TestEveryPageLostInTurn(t *testing.T) {
	dir := t.TempDir()
	s := at(t, filepath.Join(dir, "sessions.db"))
	var ids []session.ID
	want := map[session.ID][]string{} // the lines
	rows := map[session.ID]session.Info{}
	for i := range 60 {
		id := session.ID(fmt.Sprintf("session-%03d", i))
		ids = append(ids, id)
		n := 2 + i%5
		if i == 30 {
			n = 100
		}
		talk(t, s, id, n)
		for r, err := range s.Read(bg, id, 0) {
			must(t, err)
			want[id] = append(want[id], string(r.Raw))
		}
	}
	for _, id := range ids[:3] {
		must(t, s.Delete(bg, id))
	}
	for _, id := range ids {
		in, err := session.Stat(bg, s, id)
		must(t, err)
		rows[id] = in
	}
	file := closeFile(t, s)
	pages := len(file) / pageSize
	if pages < 20 {
		t.Fatalf("%d pages show too little", pages)
	}
	hurt := map[string]int{}
	for n := 2; n <= pages; n++ {
		path := filepath.Join(dir, fmt.Sprint("page", n), "sessions.db")
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, junk(file, n), 0o600))
		s, err := Open(path)
		must(t, err)
		found := reports(t, s)
		if len(found) == 0 {
			s.Close()
			continue // a free page
		}
		if _, err := s.Rebuild(bg); err != nil && !unreadable(err) {
			t.Errorf("page %d: rebuild: %v", n, err)
		}
		lost := 0
		listed := map[session.ID]bool{}
		for _, trash := range []bool{false, true} {
			infos, err := sessiontest.Collect(s.List(bg, session.Query{Trash: trash}))
			must(t, err)
			for _, in := range infos {
				listed[in.ID] = true
			}
		}
		if len(listed) != len(ids) {
			t.Errorf("page %d: %d sessions are listed, want %d", n, len(listed), len(ids))
		}
		for _, id := range ids {
			var got []session.Record
			gap := map[session.Seq]bool{}
			for r, err := range s.Read(bg, id, 0) {
				var d *session.Damage
				if errors.As(err, &d) {
					if !strings.Contains(d.Reason, "lost: the file is damaged") {
						t.Errorf("page %d: damage of %s: %v", n, id, d)
					}
					continue
				}
				if err != nil {
					t.Errorf("page %d: read of %s: %v", n, id, err)
					break
				}
				if _, unknown := r.Body.(session.Unknown); unknown || r.Raw == nil {
					gap[r.Seq] = true
					lost++
				}
				got = append(got, r)
			}
			if len(got) != len(want[id]) {
				t.Errorf("page %d: %s has %d records, want %d", n, id, len(got), len(want[id]))
				continue
			}
			for i, r := range got {
				if string(r.Raw) != want[id][i] && !gap[r.Seq] {
					t.Errorf("page %d: record %d of %s is %s, want %s", n, r.Seq, id, r.Raw, want[id][i])
				}
			}
			in, err := session.Stat(bg, s, id)
			if err != nil {
				t.Errorf("page %d: %v", n, err)
			} else if in.Key != rows[id].Key || in.Last != rows[id].Last {
				t.Errorf("page %d: %s is %q with %d records, want %q with %d", n, id, in.Key, in.Last, rows[id].Key, rows[id].Last)
			}
		}
		after := reports(t, s)
		copied := at(t, filepath.Join(filepath.Dir(path), "copy.db"))
		for _, id := range ids {
			if _, err := storekit.Copy(bg, copied, s, id); err != nil && lost == 0 {
				t.Errorf("page %d: copy of %s: %v", n, id, err)
			}
		}
		if lost == 0 {
			hurt["projections"]++
			if got := reports(t, copied); len(got) > 0 {
				t.Errorf("page %d: no record is lost, and check of the copy reports %q", n, got)
			}
		} else {
			hurt["records"]++
			named := 0
			for id := range after {
				if id != "" {
					named++
				}
			}
			if named == 0 {
				t.Errorf("page %d: %d records are lost, and check names no session: %q", n, lost, after)
			}
		}
		for _, id := range ids {
			in, err := session.Stat(bg, copied, id)
			if err != nil || in.Last != rows[id].Last || in.Key != rows[id].Key {
				t.Errorf("page %d: the copy of %s is %q with %d records (%v), want %q with %d", n, id, in.Key, in.Last, err, rows[id].Key, rows[id].Last)
			}
		}
		live, err := session.Open(bg, copied, ids[5])
		must(t, err)
		must(t, copied.Append(bg, ids[5], live.Next(sessiontest.User("go on"), session.System{})))
		must(t, copied.Close())
		must(t, s.Close())
		must(t, os.RemoveAll(filepath.Dir(path)))
	}
	t.Logf("%d pages: %v", pages, hurt)
	if hurt["records"] < 10 || hurt["projections"] < 5 {
		t.Errorf("too few pages of each kind: %v", hurt)
	}
}
