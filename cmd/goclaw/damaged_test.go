package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// A page of the database that is lost costs what lies on it: the doctor names
// the sessions and what they have lost, examines the rest, and what can be
// read can be taken elsewhere.
func TestDoctorOfADamagedPage(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "sessions.db")
	file := wreckable(t)
	page := bytes.Index(file, []byte("session 5 says 10 ")) / 4096 * 4096
	if page <= 0 {
		t.Fatal("the record is nowhere in the file")
	}
	copy(file[page:page+4096], bytes.Repeat([]byte("\xffjunk"), 1000))
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	goclaw := func(want int, args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errOut strings.Builder
		env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1"}
		if got := run(args, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] }); got != want {
			t.Errorf("%v exits %d, want %d\n%s%s", args, got, want, &out, &errOut)
		}
		return out.String(), errOut.String()
	}
	for _, args := range [][]string{{"doctor"}, {"doctor", "--fix"}} {
		out, _ := goclaw(1, args...)
		for _, want := range []string{
			"t:cli:5 (id-05): ", "records ", " are lost: the file is damaged where they lie",
			"goclaw sessions export id-05", "goclaw sessions copy DIR", "12 sessions, 372 records",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%v does not say %q:\n%s", args, want, out)
			}
		}
		if strings.Contains(out, "(id-09)") {
			t.Errorf("%v names a session that is whole:\n%s", args, out)
		}
	}
	goclaw(1, "sessions", "verify")
	out, errOut := goclaw(1, "sessions", "export", "id-05")
	if n := strings.Count(out, "session 5 says"); n < 10 || n >= 30 || !strings.Contains(errOut, "are lost") {
		t.Errorf("export gives %d of 30 messages, and says %q", n, errOut)
	}
	if out, _ := goclaw(1, "sessions", "show", "id-05"); !strings.Contains(out, "session 5 says 29") {
		t.Error("show does not come to the end of the session")
	}
	goclaw(0, "sessions", "export", "id-09")
	rescued := t.TempDir()
	out, _ = goclaw(1, "sessions", "copy", "--to", "sqlite", filepath.Join(rescued, "new"))
	if !strings.Contains(out, "copied 12 sessions") {
		t.Errorf("copy says %q", out)
	}
	st, err := sqlite.Open(filepath.Join(rescued, "new", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for in, err := range st.List(t.Context(), session.Query{}) {
		if err != nil || in.Last != 31 {
			t.Errorf("the copy of %s ends at record %d (%v), want 31", in.ID, in.Last, err)
		}
	}
}
