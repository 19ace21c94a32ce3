package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// seen is every byte, mode and time of a folder.
func seen(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		if fi.Mode().IsRegular() {
			if data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		out[path] = fmt.Sprintf("%v %d %x", fi.Mode(), fi.ModTime().UnixNano(), sha256.Sum256(data))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestContinueWhatDoesNotFit: an inherited session that is too long for the
// model goes on in one of ours whose past is folded before anything is asked,
// and the session and its source stay as they are.
func TestContinueWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	state := filepath.Join(home, ".openclaw")
	sessions := filepath.Join(state, "agents/main/sessions")
	var b strings.Builder
	fmt.Fprintln(&b, `{"type":"session","version":3,"id":"old","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}`)
	parent := "null"
	for i := range 120 {
		role, more := "user", ""
		if i%2 == 1 {
			role, more = "assistant", `,"provider":"p","model":"m","stopReason":"stop","usage":{"input":10,"output":5}`
		}
		text := fmt.Sprintf("part %d: ", i) + strings.Repeat(fmt.Sprintf("word%d other%d ", i, i+1), 60)
		if i == 0 {
			text = "The code of the shed is W-0815-kilo. " + text
		}
		fmt.Fprintf(&b, `{"type":"message","id":"m%d","parentId":%s,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":%q,"content":[{"type":"text","text":%q}],"timestamp":1794700801000%s}}`+"\n", i, parent, role, text, more)
		parent = fmt.Sprintf(`"m%d"`, i)
	}
	for path, text := range map[string]string{
		filepath.Join(sessions, "old.jsonl"):           b.String(),
		filepath.Join(sessions, "sessions.json"):       `{"agent:main:main": {"sessionId": "old"}}`,
		filepath.Join(home, "goclaw", "config.json"):   `{"contextWindow": 7000, "session": {"compaction": {"reserveTokens": 700}}}`,
		filepath.Join(state, "workspace", "README.md"): "not a session",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before := seen(t, state)
	typed(t, home, "import")
	mirror := typed(t, home, "sessions", "export", "agent:main:main")

	type line struct {
		Type, ID string
		Key      string
		Origin   struct{ Program, Path, Key, ID string }
		Summary  string
		Kept     string `json:"firstKeptEntryId"`
		Message  struct {
			Role    string
			Content json.RawMessage
		}
	}
	typed(t, home, "ask", "--model", "offline", "--session", "agent:main:main", "and what now?")
	var kinds []string
	var header, fold line
	asked, folds := -1, 0
	for i, l := range strings.Split(strings.TrimSpace(typed(t, home, "sessions", "export", "goclaw:main:main")), "\n") {
		var r line
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, r.Type)
		switch {
		case i == 0:
			header = r
		case r.Type == "compaction":
			folds++
			fold = r
			if asked >= 0 && i < asked {
				t.Errorf("line %d folds before line %d", i, asked)
			}
		case r.Type == "message" && r.Message.Role == "user" && strings.Contains(l, "and what now?"):
			asked = i
		case r.Type == "message" && r.Message.Role == "assistant" && asked >= 0 && folds == 0:
			t.Errorf("line %d answers before the past is folded: %q", i, kinds)
		}
	}
	if o := header.Origin; header.Key != "goclaw:main:main" || o.Key != "agent:main:main" || o.ID != "old" {
		t.Errorf("the header is %+v, want the key goclaw:main:main and its origin", header)
	}
	if folds == 0 || asked < 0 || fold.Kept == "" || !strings.Contains(fold.Summary, "W-0815-kilo") {
		t.Errorf("%d folds, the question on line %d, keeping from %q:\n%s", folds, asked, fold.Kept, fold.Summary)
	}
	var sent struct {
		Messages []json.RawMessage
		Budget   struct{ Window, Used int }
	}
	context := typed(t, home, "context", "goclaw:main:main", "--json", "--model", "offline")
	if err := json.Unmarshal([]byte(context), &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Budget.Used == 0 || sent.Budget.Used > sent.Budget.Window-700 || strings.Contains(context, "part 3: ") || !strings.Contains(context, "part 119: ") {
		t.Errorf("%d of %d tokens are sent in %d messages", sent.Budget.Used, sent.Budget.Window, len(sent.Messages))
	}
	if diff := cmp.Diff(mirror, typed(t, home, "sessions", "export", "agent:main:main")); diff != "" {
		t.Errorf("the mirror has changed (-before +after):\n%s", diff)
	}
	if _, rest, _ := strings.Cut(b.String(), "\n"); !bytes.HasSuffix([]byte(mirror), []byte(rest)) {
		t.Error("the mirror is not what the source says")
	}
	if diff := cmp.Diff(before, seen(t, state)); diff != "" {
		t.Errorf("the source has changed (-before +after):\n%s", diff)
	}
}
