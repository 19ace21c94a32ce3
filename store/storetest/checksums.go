package storetest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/session/storekit"
)

// Tamperer is a store whose records are not in the files of its dir: Tamper
// replaces a text in the records by one of the same length, behind the back of
// the store, which is closed.
type Tamperer interface {
	Tamper(text, by string) error
}

// checksums changes what is on disk: Read gives what is there, ReadChecked says
// which record has changed. It concerns stores that are a storekit.Checker.
func (s suite) checksums(t *testing.T) {
	dir := t.TempDir()
	st := s.openAt(t, dir)
	if _, ok := st.(storekit.Checker); !ok {
		st.Close()
		return
	}
	recs := append(logOf("s1", "k", sessiontest.User("before"), sessiontest.Answer("ours said ABCD")), strangers...)
	for i := range recs {
		recs[i].Seq = session.Seq(i) + 1
	}
	add(t, st, "s1", recs[:3]...)
	add(t, st, "s1", recs[3:]...)
	add(t, st, "s2", everyKindOf("s2")...)
	must(t, st.Close())
	replace := func(text, by string) {
		t.Helper()
		if st, ok := st.(Tamperer); ok {
			must(t, st.Tamper(text, by))
			return
		}
		replaceOnDisk(t, dir, text, by)
	}

	check := func(want ...session.Seq) {
		t.Helper()
		st := s.openAt(t, dir)
		defer st.Close()
		for _, id := range []session.ID{"s1", "s2"} {
			var got []session.Record
			var changed []session.Seq
			for r, err := range st.(storekit.Checker).ReadChecked(bg, id) {
				var d *session.Damage
				switch {
				case errors.As(err, &d):
					changed = append(changed, d.Changed)
				case err != nil:
					t.Fatal(err)
				default:
					got = append(got, r)
				}
			}
			slices.Sort(changed)
			if id != "s1" {
				want = nil
			}
			if !slices.Equal(changed, want) {
				t.Errorf("%s: the changed records are %v, want %v", id, changed, want)
			}
			if all := read(t, st, id, 0); len(got) != len(all) {
				t.Errorf("%s: ReadChecked gives %d records, Read %d", id, len(got), len(all))
			}
		}
	}
	check()
	// A record of ours, then a line of another program.
	replace("ours said ABCD", "ours said ABCE")
	check(3)
	replace("with more fields", "with more fjelds")
	check(3, 6)
	replace("with more fjelds", "with more fields")
	replace("ours said ABCE", "ours said ABCD")
	check()
}

// everyKindOf is everyKind as the log id.
func everyKindOf(id session.ID) []session.Record {
	recs := everyKind()
	h := recs[0].Body.(session.Header)
	h.ID, h.Key = id, "k2"
	recs[0].Body = h
	return recs
}

// replaceOnDisk replaces a text in the files of a closed store by one of the
// same length.
func replaceOnDisk(t *testing.T, dir, text, by string) {
	t.Helper()
	found := false
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(b, []byte(text)) {
			return err
		}
		found = true
		return os.WriteFile(path, bytes.ReplaceAll(b, []byte(text), []byte(by)), 0o600)
	}))
	if !found {
		t.Fatalf("no file has %q", text)
	}
}
