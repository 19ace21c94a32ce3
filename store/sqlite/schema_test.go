package sqlite

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// older writes a database of the schema v: two sessions, and one in the trash.
func older(t *testing.T, v int) (path string, file []byte) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("schema%d.db.gz", v)))
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	file, err = io.ReadAll(z)
	must(t, err)
	path = filepath.Join(t.TempDir(), "sessions.db")
	must(t, os.WriteFile(path, file, 0o600))
	return path, file
}

// connection opens path beside any store.
func connection(t *testing.T, path string) *sqlx.Conn {
	t.Helper()
	d := database{path: path}
	c, err := d.dial(sqlite3.OPEN_READWRITE, pragmas)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// wantOlder fails unless s holds the sessions of older, and their rows say what
// their logs add up to.
func wantOlder(t *testing.T, s *Store) {
	t.Helper()
	for _, want := range []session.Info{
		{ID: "straight", Records: 8, Compactions: 1, LastBend: 8},
		{ID: "branched", Records: 6, LastBend: 6},
		{ID: "trashed", Records: 3},
	} {
		in, err := session.Stat(bg, s, want.ID)
		if err != nil || in.Records != want.Records || in.Compactions != want.Compactions || in.LastBend != want.LastBend || in.Trashed.IsZero() == (want.ID == "trashed") {
			t.Errorf("%s is %+v (%v)", want.ID, in, err)
		}
		if recs, err := sessiontest.Collect(s.Read(bg, want.ID, 0)); err != nil || len(recs) != want.Records {
			t.Errorf("%s has %d records (%v), want %d", want.ID, len(recs), err, want.Records)
		}
	}
	if got := reports(t, s); len(got) > 0 {
		t.Errorf("check reports %q", got)
	}
}

// A database of an older schema is brought up to date when it is opened, and
// continues.
func TestOlderSchema(t *testing.T) {
	for _, v := range []int{2, 3} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			path, _ := older(t, v)
			s := at(t, path)
			wantOlder(t, s)
			must(t, s.Append(bg, "straight", session.Record{Seq: 9, ID: "e009", Parent: "e008", Time: sessiontest.Start, Body: sessiontest.User("more")}))
			must(t, s.Close())
			if got, _ := schemaOf(t, path); got != schemaVersion {
				t.Errorf("the schema is %d, want %d", got, schemaVersion)
			}
			s = at(t, path)
			if in, err := session.Stat(bg, s, "straight"); err != nil || in.Records != 9 || in.Compactions != 1 {
				t.Errorf("straight is %+v (%v)", in, err)
			}
			// Only the new record has a checksum: no row was written again.
			c := connection(t, path)
			if n, err := c.Int("SELECT count(crc32c) FROM records"); err != nil || n != 1 {
				t.Errorf("%d records have a checksum (%v), want 1", n, err)
			}
			if got := reports(t, s); len(got) > 0 {
				t.Errorf("check reports %q", got)
			}
		})
	}
}

// Where it must not be written, it is read as it is.
func TestOlderSchemaReadOnly(t *testing.T) {
	for _, v := range []int{2, 3} {
		t.Run(fmt.Sprint(v), func(t *testing.T) {
			path, before := older(t, v)
			s := at(t, path, ReadOnly())
			wantOlder(t, s)
			if recs, err := sessiontest.Collect(s.ReadChecked(bg, "straight")); err != nil || len(recs) != 8 {
				t.Errorf("%d records are read (%v), want 8", len(recs), err)
			}
			must(t, s.Close())
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file has changed (%v)", err)
			}
		})
	}
}

// A process of schema 3 has the database open while it is brought up to date. It
// continues to write; its records have no checksum, which is not a problem.
func TestOlderProcess(t *testing.T) {
	path, _ := older(t, 3)
	was := connection(t, path)
	const insert = "INSERT INTO records (pos, id, parent, type, time, data) VALUES ($1, $2, $3, $4, $5, $6)"
	write := func(seq int64) {
		t.Helper()
		line := fmt.Sprintf(`{"type":"message","id":"o%d","parentId":null,"timestamp":"2026-11-15T00:00:00.000Z","message":{"role":"user","content":"hi"}}`, seq)
		must(t, was.Run(insert, pos(1, seq), fmt.Sprint("o", seq), "", "message", "2026-11-15T00:00:00.000000000Z", []byte(line)))
	}
	write(9)
	s := at(t, path)
	write(10)
	if _, err := s.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	must(t, s.Append(bg, "straight", session.Record{Seq: 11, ID: "e011", Parent: "o10", Time: sessiontest.Start, Body: sessiontest.User("more")}))
	if got := reports(t, s); len(got) > 0 {
		t.Errorf("check reports %q", got)
	}
	if in, err := session.Stat(bg, s, "straight"); err != nil || in.Records != 11 {
		t.Errorf("straight is %+v (%v)", in, err)
	}
}
