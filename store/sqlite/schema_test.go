package sqlite

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// schema2 writes a database of schema 2: two sessions, and one in the trash.
func schema2(t *testing.T) (path string, file []byte) {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join("testdata", "schema2.db.gz"))
	must(t, err)
	z, err := gzip.NewReader(bytes.NewReader(packed))
	must(t, err)
	file, err = io.ReadAll(z)
	must(t, err)
	path = filepath.Join(t.TempDir(), "sessions.db")
	must(t, os.WriteFile(path, file, 0o600))
	return path, file
}

// wantSchema2 fails unless s holds the sessions of schema2, and their rows say
// what their logs add up to.
func wantSchema2(t *testing.T, s *Store) {
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

// A database with the older names of columns is brought up to date when it is
// opened, and goes on.
func TestOlderNames(t *testing.T) {
	path, _ := schema2(t)
	s := at(t, path)
	wantSchema2(t, s)
	must(t, s.Append(bg, "straight", session.Record{Seq: 9, ID: "e009", Parent: "e008", Time: sessiontest.Start, Body: sessiontest.User("more")}))
	must(t, s.Close())
	if v, _ := schemaOf(t, path); v != schemaVersion {
		t.Errorf("the schema is %d, want %d", v, schemaVersion)
	}
	if in, err := session.Stat(bg, at(t, path), "straight"); err != nil || in.Records != 9 || in.Compactions != 1 {
		t.Errorf("straight is %+v (%v)", in, err)
	}
}

// Where it must not be written, it is read as it is.
func TestOlderNamesReadOnly(t *testing.T) {
	path, before := schema2(t)
	s := at(t, path, ReadOnly())
	wantSchema2(t, s)
	must(t, s.Close())
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed (%v)", err)
	}
}
