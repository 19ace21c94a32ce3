package transcript_test

import (
	"strings"
	"testing"

	"goclaw/internal/transcript"
	"goclaw/llm"
)

func TestCallLine(t *testing.T) {
	for _, c := range []struct{ name, args, want string }{
		{"read_file", `{"path":"a.go"}`, "read_file a.go"},
		{"read_file", `{"path":"a.go","offset":10,"limit":31}`, "read_file a.go 10-40"},
		{"read_file", `{"path":"a.go","offset":10}`, "read_file a.go 10-"},
		{"read_file", `{"path":"a.go","limit":31}`, "read_file a.go 1-31"},
		{"edit_file", `{"path":"greet.go","old_string":"a","new_string":"b"}`, "edit_file greet.go"},
		{"write_file", `{"path":"n.md","content":"x","append":true}`, "write_file n.md (append)"},
		{"list_directory", `{}`, "list_directory ."},
		{"bash", `{"command":"go test ./...\ngo vet ./...\n","timeout":60}`, "bash go test ./... ⏎ go vet ./..."},
		{"grep", `{"pattern":"x y","path":"src","glob":"*.go"}`, `grep "x y" in src of *.go`},
		{"glob", `{"pattern":"**/*.go","path":"."}`, `glob "**/*.go"`},
		{"fetch", `{"url":"https://example.com"}`, "fetch https://example.com"},
		{"memory_search", `{"limit":5,"query":"who?"}`, `memory_search "who?"`},
		{"session_read", `{"session":"s1","around":"12"}`, "session_read s1#12"},
		{"get_current_time", `{}`, "get_current_time()"},
		{"mcp__db__query", `{"sql":"select 1","limit":5,"deep":{"a":[1, 2]}}`, `mcp__db__query(sql: "select 1", limit: 5, deep: {"a":[1, 2]})`},
		{"odd", `nonsense`, "odd(nonsense)"},
		{"odd", `{"a":`, `odd({"a":)`},
		{"odd", ``, "odd()"},
		{"bash", `{"command":3}`, "bash(command: 3)"},
		{"bash", `{"command":"  "}`, `bash(command: " ")`},
		{"read_file", `{"path":"a\u001b[2J\u202eb"}`, "read_file a\uFFFD[2J\uFFFDb"},
		{"evil\x1b[2J", `{"k\u001b[2J":"\u001b[2J"}`, "evil\uFFFD[2J(k\uFFFD[2J: \"\\u001b[2J\")"},
	} {
		if got := transcript.CallLine(llm.ToolCall{Name: c.name, Args: []byte(c.args)}); got != c.want {
			t.Errorf("%s %s\n got %s\nwant %s", c.name, c.args, got, c.want)
		}
	}
	long := transcript.CallLine(llm.ToolCall{Name: "x", Args: []byte(`{"a":"` + strings.Repeat("long ", 1000) + `"}`)})
	if len([]rune(long)) > 130 || !strings.Contains(long, "…") {
		t.Errorf("%d characters: %s", len([]rune(long)), long)
	}
}
