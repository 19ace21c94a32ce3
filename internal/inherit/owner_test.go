package inherit

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestOwner: a folder is another program's if one of its transcripts is, or if
// it is where OpenClaw keeps an agent's.
func TestOwner(t *testing.T) {
	const (
		native = `{"type":"session","version":3,"id":"a","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}` + "\n"
		ours   = `{"type":"session","version":3,"id":"a","timestamp":"2026-11-15T00:00:00.000Z","key":"main:cli:user"}` + "\n"
		claw0  = `{"type": "session", "id": "a", "key": "main:cli:user", "created": "2026-11-15T01:00:47.039156+00:00"}` + "\n"
		torn   = `{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-15T00:00:00.000Z","message":{"role":"user","content":"x"}}` + "\n"
	)
	for name, test := range map[string]struct {
		files         map[string]string
		dir           string
		program, root string
	}{
		"nothing":                        {nil, "s", "", "s"},
		"a folder of sessions":           {map[string]string{"o/agents/main/sessions/a.jsonl": native}, "o/agents/main/sessions", OpenClaw, "o"},
		"a state folder":                 {map[string]string{"o/agents/main/sessions/a.jsonl": native}, "o", OpenClaw, "o"},
		"a state folder not used yet":    {map[string]string{"o/openclaw.json": "{}"}, "o", OpenClaw, "o"},
		"a folder that is to come":       {nil, "o/agents/main/sessions", OpenClaw, "o"},
		"the folder of an agent":         {nil, "o/agents/main", OpenClaw, "o"},
		"another folder in the home":     {map[string]string{"o/openclaw.json": "{}"}, "o/goclaw/sessions", "", "o/goclaw/sessions"},
		"a store of ours":                {map[string]string{"s/.goclaw/index": "", "s/agents/main/sessions/a.jsonl": ours}, "s", "", "s"},
		"a store without its folder":     {map[string]string{"s/agents/main/sessions/a.jsonl": ours}, "s", "", "s"},
		"a log of ours without header":   {map[string]string{"s/.goclaw/index": "", "s/agents/main/sessions/a.jsonl": torn}, "s", "", "s"},
		"a store that was in OpenClaw's": {map[string]string{"o/.goclaw/index": "", "o/agents/main/sessions/a.jsonl": ours, "o/agents/main/sessions/b.jsonl": native}, "o", OpenClaw, "o"},
		"claw0's":                        {map[string]string{"c/transcripts/main_cli_user_a.jsonl": claw0, "c/sessions.json": "{}"}, "c", Claw0, "c"},
		"ours in claw0's form":           {map[string]string{"c/.goclaw/index": "", "c/transcripts/main_cli_user_a.jsonl": claw0}, "c", "", "c"},
		"pi's":                           {map[string]string{"p/--w--/2026-11-15T00-00-00-000Z_a.jsonl": native}, "p", Pi, "p"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			for path, text := range test.files {
				if err := os.MkdirAll(filepath.Join(home, filepath.Dir(path)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(home, path), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			program, root := Owner(filepath.Join(home, test.dir))
			if program != test.program || root != filepath.Join(home, test.root) {
				t.Errorf("%q, %q; want %q, %q", program, root, test.program, test.root)
			}
		})
	}
}

// TestNestedStore: transcripts are found in a folder in which somebody has made
// a store of the same layout, and so are the store's.
func TestNestedStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "agents/main/sessions")
	for path, text := range map[string]string{
		"a.jsonl":                      `{"type":"session","version":3,"id":"a","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}` + "\n",
		"agents/main/sessions/b.jsonl": `{"type":"session","version":3,"id":"b","timestamp":"2026-11-15T00:00:00.000Z","key":"goclaw:main:main"}` + "\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cat, err := Find(context.Background(), []string{dir}, FindOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cat.Close()
	if len(cat.Transcripts) != 2 {
		t.Errorf("%d transcripts, %v; want 2", len(cat.Transcripts), cat.Problems)
	}
}
