package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/jsonl"
)

var links = regexp.MustCompile(`,"parentId":("[^"]*"|null)|,"crc32c":"[0-9a-f]*"`)

// logLines returns the lines of all logs in dir that can be read, and how often
// each is there. What a line continues is left out: a repaired copy says what
// comes after a lost line.
func logLines(t *testing.T, dir string) map[string]int {
	t.Helper()
	lines := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(e.Name(), ".jsonl") {
			return err
		}
		b, err := os.ReadFile(path)
		for line := range bytes.SplitSeq(b, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 && utf8.Valid(line) && json.Valid(line) {
				lines[links.ReplaceAllString(string(line), "")]++
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// A folder of logs of which lines are damaged: the repaired copy has every line
// that can be read, byte for byte, and is a store that can be used.
func TestRescueOfLogs(t *testing.T) {
	rounds := 3
	for round := range rounds {
		dir, home := t.TempDir(), t.TempDir()
		st, err := jsonl.Open(dir, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			id := session.ID(fmt.Sprintf("id-%d", i))
			bodies := []session.Body{session.Header{Version: session.Version, ID: id, Key: session.Key(fmt.Sprintf("t:cli:%d", i))}}
			for n := range 30 {
				bodies = append(bodies, sessiontest.User(fmt.Sprintf("session %d says %d %s", i, n, strings.Repeat("x", 100))))
			}
			if err := st.Append(t.Context(), id, sessiontest.Log(bodies...)...); err != nil {
				t.Fatal(err)
			}
		}
		if err := st.Delete(t.Context(), "id-3"); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(uint64(round), 1))
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.Contains(e.Name(), ".jsonl") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			switch rng.IntN(5) {
			case 0:
				b = b[:rng.IntN(len(b))]
			case 1:
				at := rng.IntN(len(b))
				clear(b[at:min(len(b), at+700)])
			case 2:
				for range 5 {
					b[rng.IntN(len(b))] = byte(rng.Uint32())
				}
			case 3: // no header
				copy(b, "{{{{")
			}
			return os.WriteFile(path, b, 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		want := logLines(t, dir)
		to := filepath.Join(home, "new")
		var out strings.Builder
		run([]string{"doctor", dir, "--repair-to", to}, strings.NewReader(""), &out, &out, func(k string) string { return map[string]string{"HOME": home}[k] })
		got := logLines(t, to)
		missing := 0
		for line, n := range want {
			if got[line] < n {
				if missing++; missing < 4 {
					t.Errorf("round %d: the copy lacks %.300s", round, line)
				}
			}
		}
		if missing > 0 {
			t.Errorf("round %d: %d of %d lines are missing\n%.3000s", round, missing, len(want), out.String())
		}
		copied, err := jsonl.Open(to, jsonl.Options{})
		if err != nil {
			t.Fatal(err)
		}
		sessions := 0
		for _, trash := range []bool{false, true} {
			for _, err := range copied.List(t.Context(), session.Query{Trash: trash}) {
				if err != nil {
					t.Fatal(err)
				}
				sessions++
			}
		}
		if sessions != 8 {
			t.Errorf("round %d: the copy has %d sessions, want 8", round, sessions)
		}
		if err := copied.Check(t.Context(), func(id session.ID, problem error) {
			var d *session.Damage
			if errors.As(problem, &d) && d.Changed > 0 {
				return // the copy has the line as it is, and still knows that it has changed
			}
			t.Errorf("round %d: the copy of %s: %v", round, id, problem)
		}); err != nil {
			t.Error(err)
		}
		copied.Close()
	}
}
