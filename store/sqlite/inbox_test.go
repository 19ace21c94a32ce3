package sqlite

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// unpack writes a database that an older version left, whose process was
// killed, and returns its path and how many records of each session were
// acknowledged.
//
//	killed  20 new sessions and 5 old ones were written to at once
//	index   the same, with a search index in the database
//	half    some of what is in the inbox is in place; branches, compactions, moved keys
//	ahead   rows of sessions count records that are in the inbox only
//	torn    the second row of the inbox is lost, and the end of the fourth
func unpack(t *testing.T, name string) (path string, acked map[session.ID]int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "inbox", name+".tar.gz"))
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(b))
	must(t, err)
	dir := t.TempDir()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		if h.Name == "acked.json" {
			must(t, json.Unmarshal(data, &acked))
			continue
		}
		must(t, os.WriteFile(filepath.Join(dir, h.Name), data, 0o600))
	}
	if len(acked) == 0 {
		t.Fatal("nothing was acknowledged")
	}
	return filepath.Join(dir, "sessions.db"), acked
}

// wantAcked fails unless every record that was acknowledged is there and says
// what it said, and the rows are what the logs add up to.
func wantAcked(t *testing.T, s *Store, acked map[session.ID]int) {
	t.Helper()
	for id, n := range acked {
		recs, err := sessiontest.Collect(s.Read(bg, id, 0))
		if err != nil || len(recs) < n || len(recs) > n+4 { // some were acknowledged after they were counted
			t.Errorf("%s has %d records (%v), %d were acknowledged", id, len(recs), err, n)
			continue
		}
		for i, r := range recs {
			if r.Seq != session.Seq(i+1) || i > 0 && r.ID != fmt.Sprintf("e%03d", i+1) {
				t.Errorf("%s: record %d is %d, %q", id, i+1, r.Seq, r.ID)
			}
			if m, ok := r.Body.(session.Message); ok && !strings.Contains(string(r.Raw), fmt.Sprintf("%s says %d", id, i+1)) {
				t.Errorf("%s: record %d is %v", id, i+1, m)
			}
		}
		log, err := session.Replay(id, s.Read(bg, id, 0))
		must(t, err)
		in, err := session.Stat(bg, s, id)
		must(t, err)
		in.Trashed = log.Info.Trashed
		if d := differences(in, log.Info); d != "" {
			t.Errorf("%s: %s", id, d)
		}
	}
}

func schemaOf(t *testing.T, path string) (v int64, tables string) {
	t.Helper()
	s := at(t, path, ReadOnly())
	must(t, s.lend(bg, func(c *sqlx.Conn) (err error) {
		if v, err = c.Int("PRAGMA user_version"); err == nil {
			tables, err = c.Text("SELECT group_concat(name, ' ') FROM sqlite_schema WHERE type = 'table'")
		}
		return err
	}))
	must(t, s.Close())
	return v, tables
}

// A database with an inbox is settled when it is opened, and nothing is lost;
// the next one who opens it finds nothing to do.
func TestInboxIsSettled(t *testing.T) {
	for _, name := range []string{"killed", "index", "half", "ahead"} {
		t.Run(name, func(t *testing.T) {
			path, acked := unpack(t, name)
			if v, tables := schemaOf(t, path); v != 1 || !strings.Contains(tables, "inbox") {
				t.Fatalf("schema %d with %s", v, tables)
			}
			s := at(t, path)
			wantAcked(t, s, acked)
			if got := reports(t, s); len(got) != 0 {
				t.Errorf("check reports %q", got)
			}
			for id := range acked { // and all can go on
				in, err := session.Stat(bg, s, id)
				must(t, err)
				err = s.Append(bg, id, session.Record{Seq: in.Last + 1, ID: fmt.Sprintf("e%03d", in.Last+1), Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprintf("%s says %d", id, in.Last+1))})
				if (err == nil) != in.Trashed.IsZero() {
					t.Errorf("%s: append: %v", id, err)
				}
				if err == nil {
					acked[id] = int(in.Last) + 1
				}
			}
			must(t, s.Close())
			if v, tables := schemaOf(t, path); v != schemaVersion || strings.Contains(tables, "inbox") {
				t.Errorf("settled, it has schema %d with %s", v, tables)
			}
			s = at(t, path)
			wantAcked(t, s, acked)
			if name == "half" {
				for id, key := range map[session.ID]session.Key{"old2": "main:moved:old2", "new5": "main:moved:new5", "old3": "main:cli:old3"} {
					if in, err := session.Stat(bg, s, id); err != nil || in.Key != key {
						t.Errorf("%s has the key %q (%v), want %q", id, in.Key, err, key)
					}
				}
			}
			if name == "killed" || name == "index" {
				if in, err := session.Stat(bg, s, "old5"); err != nil || in.Trashed.IsZero() {
					t.Errorf("old5 is no longer in the trash (%v)", err)
				}
			}
			for _, suffix := range []string{"", "-wal"} { // no second copy of what was settled
				b, err := os.ReadFile(path + suffix)
				must(t, err)
				if n := bytes.Count(b, []byte(`old0 says 4"`)); suffix == "" && n > 1 {
					t.Errorf("a record is in the file %d times", n)
				}
			}
		})
	}
}

// What the inbox has lost costs itself: the rest is settled, and Check says
// that something is missing, until Rebuild.
func TestInboxTorn(t *testing.T) {
	path, acked := unpack(t, "torn")
	s := at(t, path)
	whole, damage := 0, 0
	for id, n := range acked {
		got := 0
		for r, err := range s.Read(bg, id, 0) {
			var d *session.Damage
			switch {
			case errors.As(err, &d):
				damage++
			case err != nil:
				t.Fatal(err)
			case string(r.Raw) != "null":
				got++
			}
		}
		if got < n-2 || got >= n {
			t.Errorf("%s has %d of %d records, and one or two are lost", id, got, n)
		}
		if got == n-1 {
			whole++
		}
		in, err := session.Stat(bg, s, id)
		must(t, err)
		must(t, s.Append(bg, id, session.Record{Seq: in.Last + 1, ID: "on", Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("on")}))
	}
	if whole < 8 || damage != len(acked)+1 {
		t.Errorf("%d sessions have lost one record only, and there are %d gaps in %d sessions", whole, damage, len(acked))
	}
	lost := func() (n int) {
		for _, p := range reports(t, s)[""] {
			if strings.Contains(p, "bytes of the records appended last") {
				n++
			}
		}
		return n
	}
	if lost() != 1 {
		t.Errorf("check reports %q", reports(t, s))
	}
	if _, err := s.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	if lost() != 0 {
		t.Errorf("after a rebuild, check reports %q", reports(t, s))
	}
}

// Whoever may not write reads what is in an inbox all the same, and changes
// nothing.
func TestInboxReadOnly(t *testing.T) {
	for _, name := range []string{"killed", "index", "half", "ahead"} {
		t.Run(name, func(t *testing.T) {
			path, acked := unpack(t, name)
			before, err := os.ReadFile(path)
			must(t, err)
			s := at(t, path, ReadOnly())
			wantAcked(t, s, acked)
			infos, err := sessiontest.Collect(s.List(bg, session.Query{}))
			must(t, err)
			trash, err := sessiontest.Collect(s.List(bg, session.Query{Trash: true}))
			must(t, err)
			if len(infos)+len(trash) != len(acked) {
				t.Errorf("%d sessions are listed and %d in the trash, want %d", len(infos), len(trash), len(acked))
			}
			recs, err := sessiontest.Collect(s.Read(bg, infos[0].ID, infos[0].Last-1))
			if err != nil || len(recs) != 1 || recs[0].Seq != infos[0].Last {
				t.Errorf("read of the last record: %v (%v)", recs, err)
			}
			if got := fmt.Sprint(reports(t, s)[""]); !strings.Contains(got, "open it once where it can be written") {
				t.Errorf("check reports %s", got)
			}
			if err := s.Append(bg, "new", header("new")); err == nil {
				t.Error("an append is taken")
			}
			must(t, s.Close())
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed (%v)", err)
			}
			wantAcked(t, at(t, path), acked)
		})
	}
}

// A page of a database with an inbox is lost: what is not on it is read, in
// place or not.
func TestInboxOfADamagedFile(t *testing.T) {
	path, acked := unpack(t, "killed")
	sql(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
	file, err := os.ReadFile(path)
	must(t, err)
	total := 0
	for _, n := range acked {
		total += n
	}
	denied, hidden := 0, 0
	for n := 2; n <= len(file)/pageSize; n++ {
		path := filepath.Join(t.TempDir(), "sessions.db")
		must(t, os.WriteFile(path, junk(file, n), 0o600))
		s, err := Open(path)
		if err != nil {
			t.Errorf("page %d: %v", n, err)
			continue
		}
		got := 0
		for id := range acked {
			for r, err := range s.Read(bg, id, 0) {
				if err == nil && string(r.Raw) != "null" {
					got++
				}
			}
		}
		// A row of the inbox has 25 records; the root of a table hides all of it.
		if got < total-50 {
			hidden++
		}
		if s.denied != nil {
			denied++
			if err := s.Append(bg, "new", header("new")); err == nil || !strings.Contains(err.Error(), "can be read and not written") {
				t.Errorf("page %d: append: %v", n, err)
			}
		}
		must(t, s.Close())
	}
	if denied == 0 {
		t.Error("every damaged file could be settled")
	}
	if hidden > 2 {
		t.Errorf("%d pages hide more than what lies on them", hidden)
	}
}
