package transcript

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
)

func TestResult(t *testing.T) {
	var many strings.Builder
	for i := range 322 {
		fmt.Fprintf(&many, "line %d\n", i)
	}
	for name, c := range map[string]struct {
		tool, args, text string
		failed           bool
		took             time.Duration
		want             string
	}{
		"command":      {"bash", `{"command":"x"}`, "one\ntwo\n[exit code 0]", false, 340 * time.Millisecond, "  one\n  two\n← exit code 0, 0.3 s"},
		"no output":    {"bash", `{"command":"x"}`, "(no output)\n[exit code 1]", true, 0, "← exit code 1"},
		"refused":      {"bash", `{"command":"x"}`, "not done: the user did not allow this", true, time.Second, "← bash failed: not done: the user did not allow this"},
		"long":         {"bash", `{"command":"x"}`, many.String() + "[exit code 0]", false, 0, "  line 0\n  line 1\n  line 2\n  line 3\n  line 4\n  line 5\n  line 6\n  line 7\n  line 8\n  line 9\n  … 312 more lines: /show 7\n← exit code 0"},
		"edit":         {"edit_file", `{}`, "replaced once in f\n@@ -1,1 +1,1 @@\n-a\n+b\n", false, 0, "  @@ -1,1 +1,1 @@\n  -a\n  +b"},
		"new file":     {"write_file", `{"path":"f","content":"a\nb\n"}`, "made f with 4 bytes", false, 0, "  a\n  b\n← made f with 4 bytes"},
		"note":         {"write_file", `{"path":"f","content":"a\n","append":true}`, "added 2 bytes to f, which now has 9", false, 0, "← added 2 bytes to f, which now has 9"},
		"read":         {"read_file", `{}`, "a\nb\nc", false, 0, "← 3 lines: /show 7"},
		"nothing":      {"grep", `{}`, "no line matches\n", false, 0, "← no line matches"},
		"one long":     {"grep", `{}`, "a.go:1: " + strings.Repeat("x", 80) + "\n", false, 0, "← 1 line: /show 7"},
		"failed":       {"read_file", `{}`, "f does not exist\nmore", true, time.Second, "← read_file failed: f does not exist more"},
		"another tool": {"look", `{}`, "seen \x1b[31m", false, time.Second, "  seen \uFFFD[31m\n← 1.0 s"},
	} {
		r := llm.ToolResult{Blocks: []llm.Block{llm.Text{Text: c.text}}, IsError: c.failed}
		got := strings.Join(Result(llm.ToolCall{Name: c.tool, Args: []byte(c.args)}, r, c.took, ": /show 7", Style{}), "\n")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
