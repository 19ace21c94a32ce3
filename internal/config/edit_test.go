package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	say := func(want string, err error, wrong string) {
		t.Helper()
		got, _ := os.ReadFile(path)
		switch {
		case wrong == "" && err != nil, wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%v, want %q", err, wrong)
		case strings.Join(strings.Fields(string(got)), "") != strings.Join(strings.Fields(want), ""):
			t.Errorf("the file is\n%s\nwant\n%s", got, want)
		}
	}
	server := map[string]any{"command": "npx", "args": []string{"-y", "x"}}
	say(`{"mcpServers":{"a/b":{"args":["-y","x"],"command":"npx"}}}`, Edit(path, []string{"mcpServers", "a/b"}, server), "")
	if err := os.WriteFile(path, []byte("{\n  // mine\n  \"model\": \"offline\", // why\n  \"odd\": 1,\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	was := `{ // mine
		"model": "offline", // why
		"odd": 1, }`
	say(`{ // mine
		"model": "offline", // why
		"odd": 1, "tools": {"mode": "edits"}, }`, Edit(path, []string{"tools", "mode"}, "edits"), "")
	say(`{ // mine
		"model": "offline", // why
		"odd": 1, "tools": {}, }`, Edit(path, []string{"tools", "mode"}, nil), "")
	say(`{ // mine
		"model": "offline", // why
		"odd": 1, }`, Edit(path, []string{"tools"}, nil), "")
	say(was, Edit(path, []string{"tools", "mode"}, "yolo"), "tools.mode")
	say(was, Edit(path, []string{"tools", "mood"}, "ask"), "mood")
	say(was, Edit(path, []string{"session", "compaction", "reserveTokens"}, "many"), "reserveTokens")
	say(was, Edit(path, []string{"tools"}, nil), "does not set tools")
	if err := os.WriteFile(path, []byte("// only this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	say(`// only this
		{"thinking": "low"}`, Edit(path, []string{"thinking"}, "low"), "")
}

// What is said about a value that is refused names the setting and the value: it
// is in no file. What was wrong in the file before has its place.
func TestWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		key   []string
		value any
		want  string // PATH is the file
	}{
		"a wrong value":           {"", []string{"tools", "mode"}, "foo", `tools.mode must be ask, edits, plan or all, not "foo"`},
		"of the wrong type":       {"{\n}\n", []string{"contextWindow"}, "big", `contextWindow must be a whole number, not "big"`},
		"with another setting":    {"", []string{"session", "shared"}, true, `session.shared is for the jsonl store, and session.store is "sqlite"`},
		"an unknown name":         {`{"session": {"defaultkey": "x"}}`, []string{"tools", "mood"}, "ask", `unknown key "tools.mood"`},
		"wrong before":            {"{\n\n\n\"tools\": {\"mode\": \"foo\"}}", []string{"model"}, "offline", `config: PATH:4: tools.mode must be ask, edits, plan or all, not "foo"`},
		"a warning that moves":    {"{\n\n\n\"session\": {\"defaultkey\": \"x\"},\n\"tools\": {}}", []string{"model"}, "offline", ""},
		"wrong before, and mends": {`{"tools": {"mode": "foo"}}`, []string{"tools", "mode"}, "ask", ""},
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		got := ""
		if _, err := Changed(path, []byte(c.file), c.key, c.value); err != nil {
			got = strings.ReplaceAll(err.Error(), path, "PATH")
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
