package window

import (
	"encoding/json"
	"testing"

	"goclaw/llm"
)

func TestWritesMemory(t *testing.T) {
	tests := []struct {
		tool, arg string
		want      bool
	}{
		{"write_file", "memory/2025-03-01.md", true},
		{"write_file", "./memory/a/b.md", true},
		{"write_file", "notes/../memory/x.md", true},
		{"write_file", "MEMORY.md", true},
		{"edit_file", "memory/x.md", true},
		{"edit_file", "/home/u/workspace/MEMORY.md", true},
		{"write_file", "/home/u/workspace/memory/x.md", true},
		{"write_file", "memory", false},
		{"write_file", "memory/../x.md", false},
		{"write_file", "docs/memory/x.md", false},
		{"write_file", "in-memory/x.md", false},
		{"write_file", "notes.md", false},
		{"read_file", "memory/x.md", false},
		{"bash", "echo hi >> memory/2025-03-01.md", true},
		{"bash", "echo hi >memory/x.md", true},
		{"bash", `echo hi > "./memory/x y.md"`, true},
		{"bash", "cat >> MEMORY.md <<'E'\nx\nE", true},
		{"bash", "mkdir -p memory && date | tee -a memory/log.md", true},
		{"bash", `echo x > "$HOME/ws/memory/x.md"`, true},
		{"bash", "cat memory/x.md", false},
		{"bash", "cat memory/x.md > /tmp/copy", false},
		{"bash", "grep x memory/x.md 2>/dev/null", false},
		{"bash", "date | tee log.md; cat memory/x.md", false},
		{"bash", "ls memory/", false},
	}
	for _, tt := range tests {
		key := "path"
		if tt.tool == "bash" {
			key = "command"
		}
		args, err := json.Marshal(map[string]string{key: tt.arg})
		if err != nil {
			t.Fatal(err)
		}
		if got := writesMemory(llm.ToolCall{Name: tt.tool, Args: args}); got != tt.want {
			t.Errorf("%s %q: got %v", tt.tool, tt.arg, got)
		}
	}
	for _, raw := range []string{``, `{`, `[]`, `{"path":3}`, `{"_raw":"memory/x"}`} {
		if writesMemory(llm.ToolCall{Name: "write_file", Args: json.RawMessage(raw)}) {
			t.Errorf("%q writes memory", raw)
		}
	}
}
