package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/stores"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

// A bit that flips in a record is reported by verify and doctor, in a session of
// our own and in an imported one, and they name the session and the record. The
// session can still be read.
func TestFlippedBits(t *testing.T) {
	for _, kind := range []string{"sqlite", "jsonl"} {
		t.Run(kind, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1", "GOCLAW_PROVIDER": "offline", "GOCLAW_SESSION_STORE": kind}
			goclaw := func(want int, args ...string) string {
				t.Helper()
				var out, errOut strings.Builder
				if got := run(args, strings.NewReader(""), &out, &errOut, func(k string) string { return env[k] }); got != want {
					t.Errorf("%v exits %d, want %d\n%s%s", args, got, want, &out, &errOut)
				}
				return out.String()
			}
			st := ownStore(t, kind, home)
			var bodies []session.Body
			for i := range 5 {
				bodies = append(bodies, sessiontest.User(fmt.Sprint("question ", i)), sessiontest.Answer(fmt.Sprint("the answer is ", i)))
			}
			head := session.Header{Version: session.Version, ID: "own", Key: "t:cli:own"}
			if err := st.Append(t.Context(), "own", sessiontest.Log(append([]session.Body{head}, bodies...)...)...); err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			pi := filepath.Join(t.TempDir(), "pi.jsonl")
			if err := os.WriteFile(pi, []byte(piFile), 0o600); err != nil {
				t.Fatal(err)
			}
			goclaw(0, "import", pi)
			goclaw(0, "sessions", "verify")
			if out := goclaw(0, "doctor"); !strings.Contains(out, "all is well") {
				t.Errorf("doctor says %s", out)
			}

			rnd := rand.New(rand.NewPCG(13, 3))
			for range 24 {
				name, text := "(own): ", fmt.Sprint("the answer is ", rnd.IntN(5))
				if rnd.IntN(2) == 0 {
					name, text = "(0197a4f2-0000-7000-8000-000000000001): ", "pi said this"
				}
				path, at := onDisk(t, home, text)
				at += rnd.IntN(len(text))
				bit := byte(1) << rnd.IntN(5) // it stays a printable letter
				flip(t, path, at, bit)
				for _, cmd := range [][]string{{"sessions", "verify"}, {"doctor"}} {
					out := goclaw(1, cmd...)
					if !strings.Contains(out, name) || !strings.Contains(out, " has changed since it was written: ") || !strings.Contains(out, ": record ") {
						t.Errorf("byte %d of %s, bit %d: %v says\n%s", at, path, bit, cmd, out)
					}
					if cmd[0] == "doctor" && !strings.Contains(out, "it can still be read: goclaw sessions show ") {
						t.Errorf("doctor does not say what to do:\n%s", out)
					}
				}
				goclaw(0, "sessions", "show", "t:cli:own")
				flip(t, path, at, bit)
			}
			if out := goclaw(0, "doctor"); !strings.Contains(out, "all is well") {
				t.Errorf("after all flips were undone doctor says %s", out)
			}
		})
	}
}

const piFile = `{"type":"session","version":3,"id":"0197a4f2-0000-7000-8000-000000000001","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/home/ann"}
{"type":"message","id":"aaaaaaa1","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"what did pi say?"}],"timestamp":1794700801000}}
{"type":"message","id":"aaaaaaa2","parentId":"aaaaaaa1","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"pi said this"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-sonnet-4-5","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":2,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1794700802000}}
`

// ownStore opens the store of that kind in the home of goclaw.
func ownStore(t *testing.T, kind, home string) stores.Store {
	t.Helper()
	var st stores.Store
	var err error
	if kind == "sqlite" {
		st, err = sqlite.Open(filepath.Join(home, "sessions.db"))
	} else {
		st, err = jsonl.Open(filepath.Join(home, "sessions"), jsonl.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// onDisk returns the file of the store that has text, and where.
func onDisk(t *testing.T, home, text string) (path string, at int) {
	t.Helper()
	at = -1
	err := filepath.WalkDir(home, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || at >= 0 || filepath.Base(p) != "sessions.db" && filepath.Ext(p) != ".jsonl" {
			return err
		}
		b, err := os.ReadFile(p)
		path, at = p, bytes.Index(b, []byte(text))
		return err
	})
	if err != nil || at < 0 {
		t.Fatalf("no file has %q: %v", text, err)
	}
	return path, at
}

// flip changes one byte of a file.
func flip(t *testing.T, path string, at int, bit byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= bit
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
