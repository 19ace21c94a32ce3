package sqlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/sqlx"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/internal/sqlstore"
)

// mixed writes a database with one session of our records and lines of another
// program, and returns the lines.
func mixed(t *testing.T, path string) (lines [][]byte) {
	t.Helper()
	s := at(t, path)
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"))
	for i, line := range []string{
		`{"type":"message","id":"p1","parentId":"e2","timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"said in pi"}}`,
		`{"type":"hologram","id":"p2","parentId":"p1","timestamp":"2026-11-15T00:00:02.000Z","beam":[1.0,2e3]}`,
	} {
		r, d := sqlstore.Decode("", session.Seq(4+i), json.RawMessage(line), nil)
		if d != nil {
			t.Fatal(d)
		}
		recs = append(recs, r)
	}
	must(t, s.Append(bg, sessiontest.ID, recs...))
	for r, err := range s.Read(bg, sessiontest.ID, 0) {
		must(t, err)
		lines = append(lines, bytes.Clone(r.Raw))
	}
	must(t, s.Close())
	return lines
}

// Every flip of a bit in a stored line is reported, whoever wrote the line. With
// -soak every bit is flipped, else one of each byte.
func TestEveryFlipIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	lines := mixed(t, path)
	s := at(t, path)
	if got := reports(t, s); len(got) > 0 {
		t.Fatalf("before any flip: %q", got)
	}
	bits := 1
	if flag.Lookup("soak").Value.String() != "0s" {
		bits = 8
	}
	c := connection(t, path)
	must(t, c.Exec("PRAGMA synchronous = OFF"))
	flips, byChecksum := 0, 0
	for i, line := range lines {
		for at := range line {
			for bit := range bits {
				if bits == 1 {
					bit = at % 7 // an eighth bit is never UTF-8
				}
				b := bytes.Clone(line)
				b[at] ^= 1 << bit
				must(t, c.Run("UPDATE records SET data = $1 WHERE pos = $2", b, pos(1, int64(i+1))))
				var damage []*session.Damage
				for _, err := range s.ReadChecked(bg, sessiontest.ID) {
					var d *session.Damage
					if errors.As(err, &d) {
						damage = append(damage, d)
					} else {
						must(t, err)
					}
				}
				flips++
				if len(damage) != 1 || damage[0].Changed != 0 && damage[0].Changed != session.Seq(i+1) || !strings.Contains(damage[0].Reason, fmt.Sprint("record ", i+1)) {
					t.Errorf("bit %d of byte %d of record %d: %v", bit, at, i+1, damage)
				}
				if len(damage) == 1 && damage[0].Changed > 0 {
					byChecksum++
				}
			}
		}
		must(t, c.Run("UPDATE records SET data = $1 WHERE pos = $2", line, pos(1, int64(i+1))))
	}
	t.Logf("%d flips: all reported, %d by a checksum", flips, byChecksum)
	if byChecksum < flips/2 {
		t.Errorf("only %d of %d flips were found by a checksum", byChecksum, flips)
	}
	if got := reports(t, s); len(got) > 0 {
		t.Errorf("after all flips were undone: %q", got)
	}
}

// Check reports flips in the file where lines are. They are a sample; with -soak
// a large one.
func TestFlipsInTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	lines := mixed(t, path)
	file, err := os.ReadFile(path)
	must(t, err)
	var places []int
	for _, l := range lines {
		at := bytes.Index(file, l)
		if at < 0 {
			t.Fatalf("the file does not have %s", l)
		}
		for i := range l {
			places = append(places, at+i)
		}
	}
	n := 48
	if flag.Lookup("soak").Value.String() != "0s" {
		n = 2000
	}
	rnd := rand.New(rand.NewPCG(13, 3))
	for range n {
		place, bit := places[rnd.IntN(len(places))], rnd.IntN(8)
		b := slices.Clone(file)
		b[place] ^= 1 << bit
		flipped := filepath.Join(t.TempDir(), "sessions.db")
		must(t, os.WriteFile(flipped, b, 0o600))
		s := at(t, flipped, ReadOnly())
		if got := reports(t, s); len(got[sessiontest.ID]) == 0 {
			t.Errorf("bit %d of byte %d (%q): check reports %q", bit, place, file[place-20:place+20], got)
		}
		must(t, s.Close())
	}
}

// A line that has changed is not what its columns are made from: doctor --fix
// leaves them, and the line.
func TestRebuildLeavesChangedLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	lines := mixed(t, path)
	c := connection(t, path)
	changed := bytes.Replace(lines[3], []byte(`"id":"p1"`), []byte(`"id":"q1"`), 1)
	must(t, c.Run("UPDATE records SET data = $1 WHERE pos = $2", changed, pos(1, 4)))
	s := at(t, path)
	_, err := s.Rebuild(bg)
	must(t, err)
	if id, err := c.Text("SELECT id FROM records WHERE pos = $1", pos(1, 4)); err != nil || id != "p1" {
		t.Errorf("the record is filed under %q (%v), want p1", id, err)
	}
	got := reports(t, s)[sessiontest.ID]
	if len(got) != 1 || !strings.Contains(got[0], "record 4 has changed since it was written: its line has the CRC-32C ") {
		t.Errorf("check reports %q", got)
	}
	data, err := lent(bg, &s.readers, func(c *sqlx.Conn) (string, error) {
		return c.Text("SELECT data FROM records WHERE pos = $1", pos(1, 4))
	})
	if err != nil || data != string(changed) {
		t.Errorf("the line is %s (%v)", data, err)
	}
}

// A file that lost its last byte is reported, whatever was there.
func TestLastPageCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	mixed(t, path)
	st, err := os.Stat(path)
	must(t, err)
	must(t, os.Truncate(path, st.Size()-1))
	got := reports(t, at(t, path, ReadOnly()))[""]
	if !slices.ContainsFunc(got, func(s string) bool {
		return strings.Contains(s, "the file is cut off: its last page has 4095 of 4096 bytes")
	}) {
		t.Errorf("check reports %q", got)
	}
}
