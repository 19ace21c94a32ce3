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
