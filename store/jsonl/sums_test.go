package jsonl

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
)

// others are lines of another program.
var others = []string{
	`{"type":"message","id":"p1","parentId":"e2","timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"said in pi"}}`,
	`{"type":"hologram","id":"p2","parentId":"p1","timestamp":"2026-11-15T00:00:02.000Z","beam":[1.0,2e3]}`,
	`{"type":"message","id":"p3","parentId":"p2","timestamp":"2026-11-15T00:00:03.000Z","message":{"role":"assistant","content":[{"type":"text","text":"answered in pi"}]}}`,
}

// mixed writes a store with one log of our records and lines of others, and
// returns the log's path.
func mixed(t *testing.T, dir string, y Layout) string {
	t.Helper()
	st, err := Open(dir, Options{Layout: y})
	must(t, err)
	recs := sessiontest.Log(sessiontest.User("one"), sessiontest.Answer("two"))
	must(t, st.Append(t.Context(), sessiontest.ID, recs...))
	var foreign []session.Record
	for i, line := range others {
		rs, err := st.codec.Decode([]byte(line))
		must(t, err)
		rs[0].Seq, rs[0].Raw = session.Seq(4+i), json.RawMessage(line)
		foreign = append(foreign, rs[0])
	}
	must(t, st.Append(t.Context(), sessiontest.ID, foreign[0]))
	must(t, st.Append(t.Context(), sessiontest.ID, foreign[1:]...))
	must(t, st.Append(t.Context(), sessiontest.ID, session.Record{Seq: 7, ID: "e7", Parent: "p3", Time: sessiontest.Start, Body: sessiontest.User("seven")}))
	path, ok := st.Path(sessiontest.ID)
	must(t, st.Close())
	if !ok {
		t.Fatal("the log has no path")
	}
	return path
}

// checkAll returns what Check says of the store in dir.
func checkAll(t *testing.T, dir string, y Layout) (said []string, changed []session.Seq) {
	t.Helper()
	st, err := Open(dir, Options{Layout: y, ReadOnlyProjections: true})
	must(t, err)
	defer st.Close()
	return checkStore(t, st)
}

func checkStore(t *testing.T, st *Store) (said []string, changed []session.Seq) {
	t.Helper()
	must(t, st.Check(context.Background(), func(_ session.ID, err error) {
		said = append(said, err.Error())
		var d *session.Damage
		if errors.As(err, &d) && d.Changed > 0 {
			changed = append(changed, d.Changed)
		}
	}))
	return said, changed
}

// Check reports every flip of a bit in a log, whoever wrote the line. With -soak
// it flips every bit, else one of each byte, and of every eighth in claw0's
// layouts.
func TestEveryFlipIsReported(t *testing.T) {
	soak := flag.Lookup("soak").Value.String() != "0s"
	for _, y := range layouts {
		t.Run(y.String(), func(t *testing.T) {
			bits, step := 1, 1
			switch {
			case soak:
				bits = 8
			case y != OpenClaw:
				step = 8
			}
			dir := t.TempDir()
			path := mixed(t, dir, y)
			if said, _ := checkAll(t, dir, y); len(said) > 0 {
				t.Fatalf("before any flip: %q", said)
			}
			file, err := os.ReadFile(path)
			must(t, err)
			st, err := Open(dir, Options{Layout: y, ReadOnlyProjections: true})
			must(t, err)
			defer st.Close()
			flips, byChecksum := 0, 0
			for at := 0; at < len(file); at += step {
				for bit := range bits {
					if bits == 1 {
						bit = at % 7 // an eighth bit is never UTF-8
					}
					b := slices.Clone(file)
					b[at] ^= 1 << bit
					must(t, os.WriteFile(path, b, 0o600))
					said, changed := checkStore(t, st)
					flips++
					if len(changed) > 0 {
						byChecksum++
					}
					if len(said) == 0 {
						t.Errorf("bit %d of byte %d (%q): nothing is reported", bit, at, file[max(at-20, 0):min(at+20, len(file))])
					}
				}
			}
			t.Logf("%d flips in %d bytes: all reported, %d by a checksum", flips, len(file), byChecksum)
			if byChecksum < flips/2 {
				t.Errorf("only %d of %d flips were found by a checksum", byChecksum, flips)
			}
		})
	}
}

// Whoever edits a log by hand is told which records have changed, also if lines
// become longer, unreadable or are removed; the log is read as it is.
func TestEditedByHand(t *testing.T) {
	for _, c := range []struct {
		name     string
		old, new string
		changed  []session.Seq
		said     string
	}{
		{"ours", `"content":"one"`, `"content":"more than one"`, []session.Seq{2}, "record 2 has changed since it was written: its bytes have the CRC-32C "},
		{"theirs", "said in pi", "said in pi, they say", []session.Seq{4}, "record 4 has changed since it was written: its line has the CRC-32C "},
		{"two of theirs", `"id":"p`, `"id":"q`, []session.Seq{4, 5, 6}, "record 6 has changed"},
		{"the name of the checksum", `,"crc32c":"`, `,"crc32d":"`, []session.Seq{1, 2, 3, 7}, "the field of its checksum is damaged"},
		{"without a checksum", `,"crc32c":"`, `,"was":"`, nil, ""},
		{"unreadable", `{"type":"hologram"`, `{"type":hologram"`, nil, "not a JSON line"},
		{"unreadable and changed", `{"type":"hologram","id":"p2"`, `{"type":hologram","id":"p2"`, nil, "not a JSON line"},
		{"gone", others[1] + "\n", "", nil, "1 of the 3 lines that other programs wrote are gone, the last of them is number 2"},
		{"the last is gone", others[2] + "\n", "", nil, "1 of the 3 lines that other programs wrote are gone, the last of them is number 3"},
		{"one more", others[1] + "\n", others[1] + "\n" + strings.ReplaceAll(others[1], "p2", "p9") + "\n", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := mixed(t, dir, OpenClaw)
			b, err := os.ReadFile(path)
			must(t, err)
			edited := strings.ReplaceAll(string(b), c.old, c.new)
			if edited == string(b) {
				t.Fatalf("the log has no %q", c.old)
			}
			must(t, os.WriteFile(path, []byte(edited), 0o600))
			st := reopen(t, dir, OpenClaw)
			_, err = st.Rebuild(t.Context()) // the index differs from the log now
			must(t, errors.Join(err, st.Close()))
			said, changed := checkAll(t, dir, OpenClaw)
			slices.Sort(changed)
			all := strings.Join(said, "\n")
			if !slices.Equal(changed, c.changed) || !strings.Contains(all, c.said) || (c.said == "") != (all == "") {
				t.Errorf("the changed records are %v, want %v; check says\n%s", changed, c.changed, all)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != edited {
				t.Errorf("the log was written (%v)", err)
			}
		})
	}
}

// The checksums of lines of others never say more than the log: not when they
// are lost or damaged, and not when a log of the same id begins again.
func TestSumsOfOthers(t *testing.T) {
	dir := t.TempDir()
	path := mixed(t, dir, OpenClaw)
	sums := filepath.Join(dir, own, lockName(sessiontest.ID)+".sums")
	whole, err := os.ReadFile(sums)
	must(t, err)
	if n := strings.Count(string(whole), "\n"); n != len(others) {
		t.Fatalf("%d checksums for %d lines:\n%s", n, len(others), whole)
	}
	for _, s := range []string{"", string(whole[:4]), string(whole[:13]), "\x00\x00\x00\x00" + string(whole), "what?\n" + string(whole[9:])} {
		must(t, os.WriteFile(sums, []byte(s), 0o600))
		if said, _ := checkAll(t, dir, OpenClaw); len(said) > 0 {
			t.Errorf("with the checksums %q, check says %q", s, said)
		}
	}
	must(t, os.WriteFile(sums, whole, 0o600))
	must(t, os.Remove(path))
	st := reopen(t, dir, OpenClaw)
	recs := sessiontest.Log(sessiontest.User("again"))
	must(t, st.Append(t.Context(), sessiontest.ID, recs...))
	must(t, st.Close())
	if said, _ := checkAll(t, dir, OpenClaw); len(said) > 0 {
		t.Errorf("after the log began again, check says %q", said)
	}
}

// A purge leaves no checksum behind.
func TestPurgeRemovesSums(t *testing.T) {
	dir := t.TempDir()
	mixed(t, dir, OpenClaw)
	st := reopen(t, dir, OpenClaw)
	must(t, st.Delete(t.Context(), sessiontest.ID))
	must(t, st.Purge(t.Context(), sessiontest.ID))
	if left, err := filepath.Glob(filepath.Join(dir, own, "*.sums")); err != nil || len(left) > 0 {
		t.Error(fmt.Sprint(left), err)
	}
}
