package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// wreckable makes a database of 12 sessions with 30 messages each, and returns
// its bytes.
func wreckable(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	st, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		id := session.ID(fmt.Sprintf("id-%02d", i))
		bodies := []session.Body{session.Header{Version: session.Version, ID: id, Key: session.Key(fmt.Sprintf("t:cli:%d", i))}}
		for n := range 30 {
			bodies = append(bodies, sessiontest.User(fmt.Sprintf("session %d says %d %s", i, n, strings.Repeat("x", 200))))
		}
		if err := st.Append(t.Context(), id, sessiontest.Log(bodies...)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// However a database is damaged, a command does its work or says in one line
// what to do, a file that it cannot use is as it was, and what it says to do
// brings back every record that is left.
func TestRescue(t *testing.T) {
	file := wreckable(t)
	zero := func(n int) func([]byte) []byte {
		return func(b []byte) []byte { clear(b[(n-1)*4096 : n*4096]); return b }
	}
	flip := func(at int) func([]byte) []byte { return func(b []byte) []byte { b[at] ^= 1; return b } }
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		least  int  // records that are left, of 372
		closed bool // no command can use it
	}{
		{"one byte short", func(b []byte) []byte { return b[:len(b)-1] }, 360, false},
		{"half", func(b []byte) []byte { return b[:len(b)/2] }, 150, false},
		{"no first page", zero(1), 372, true},
		{"no root of the records", zero(6), 372, false},
		{"another mark", flip(69), 372, true},
		{"an older version", func(b []byte) []byte { binary.BigEndian.PutUint32(b[60:], 2); return b }, 372, true},
		{"another name of a table", func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("TABLE records"), []byte("TABLE recor\x00s")) }, 372, false},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "sessions.db")
			damaged := c.damage(bytes.Clone(file))
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			goclaw := func(home string, args ...string) (code int, stdout, stderr string) {
				var out, errOut strings.Builder
				env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1"}
				code = run(args, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] })
				return code, out.String(), errOut.String()
			}
			todo := "goclaw doctor " + path + " --repair-to NEW"
			for _, args := range [][]string{{"sessions"}, {"sessions", "show", "id-03"}, {"doctor"}, {"ask", "-s", "t:cli:3", "hello"}} {
				code, out, errOut := goclaw(home, args...)
				if code != 0 && !strings.Contains(out+errOut, todo) {
					t.Errorf("%v exits %d and does not say what to do:\n%s%s", args, code, out, errOut)
				}
				if c.closed && (code != 1 || !strings.Contains(errOut, todo) || strings.Count(errOut, "\n") != 1) {
					t.Errorf("%v exits %d, want 1 and one line that says what to do:\n%s%s", args, code, out, errOut)
				}
				if after, err := os.ReadFile(path); code != 0 && (err != nil || !bytes.Equal(after, damaged)) {
					t.Fatalf("%v failed, and the file has changed (%v)", args, err)
				}
				damaged, _ = os.ReadFile(path) // some can still be written to
			}
			other := t.TempDir()
			to := filepath.Join(other, "sessions.db")
			code, out, errOut := goclaw(home, "doctor", path, "--repair-to", to, "--json")
			var d rescue
			if err := json.Unmarshal([]byte(out), &d); err != nil || code != 1 || d.OK || d.Sessions < 5 || d.Records < c.least || len(d.Findings) == 0 || d.Repaired != to {
				t.Fatalf("doctor exits %d (%v)\n%.2000s%s", code, err, out, errOut)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
				t.Errorf("the repair changed the file (%v)", err)
			}
			if code, out, errOut := goclaw(other, "doctor", to); code != 0 {
				t.Errorf("doctor of the new database exits %d\n%s%s", code, out, errOut)
			}
			if code, out, _ := goclaw(other, "sessions", "verify"); code != 0 {
				t.Errorf("verify of the new database exits %d\n%s", code, out)
			}
			if code, out, errOut := goclaw(other, "ask", "-s", "t:cli:0", "hello"); code != 0 {
				t.Errorf("ask of the new database exits %d\n%s%s", code, out, errOut)
			}
		})
	}
}

// A folder is searched for a database; a new one is not made from nothing or
// over an old one.
func TestRescueOfAFolder(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	goclaw := func(args ...string) (code int, all string) {
		var out strings.Builder
		code = run(args, strings.NewReader(""), &out, &out, func(k string) string { return map[string]string{"HOME": home}[k] })
		return code, out.String()
	}
	file := wreckable(t)
	path := filepath.Join(dir, "sessions.db")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(home, "new")
	if code, out := goclaw("doctor", dir, "--repair-to", to); code != 0 || !strings.Contains(out, "12 sessions with 372 records can be read, 0 records lost: nothing is wrong") {
		t.Errorf("exits %d:\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(to, "sessions.db")); err != nil {
		t.Error(err)
	}
	if code, out := goclaw("doctor", path, "--repair-to", filepath.Join(to, "sessions.db")); code != 1 || !strings.Contains(out, "exists already") {
		t.Errorf("exits %d:\n%s", code, out)
	}
	// What is in the log only is enough.
	alone := filepath.Join(t.TempDir(), "sessions.db")
	st, err := sqlite.Open(alone)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Append(t.Context(), sessiontest.ID, sessiontest.Log(sessiontest.User("hi"))...); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(alone + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone.db")
	if err := os.WriteFile(gone+"-wal", wal, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := goclaw("doctor", gone, "--repair-to", filepath.Join(home, "from-the-log.db")); code != 1 || !strings.Contains(out, "1 session with 2 records can be read") {
		t.Errorf("without the database, it exits %d:\n%s", code, out)
	}
	// Nothing is made of nothing.
	empty := filepath.Join(home, "empty.db")
	db, err := sqlite.Open(empty)
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	if code, out := goclaw("doctor", empty, "--repair-to", filepath.Join(home, "none.db")); code != 0 || !strings.Contains(out, "none.db was not made") {
		t.Errorf("exits %d:\n%s", code, out)
	}
	if left, _ := filepath.Glob(filepath.Join(home, "none.db*")); len(left) > 0 {
		t.Errorf("it left %q", left)
	}
}
