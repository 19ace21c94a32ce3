package tool_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"goclaw/llm"
	"goclaw/tool"
)

func Example() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	tools, err := tool.New(tool.Options{
		Workspace: dir,
		Now:       time.Now,
		Ask: tool.ApproverFunc(func(_ context.Context, r tool.Request) (tool.Decision, error) {
			fmt.Println("may it run?", r.Command)
			return tool.No, nil
		}),
	})
	if err != nil {
		panic(err)
	}
	defer tools.Close()
	for _, call := range []llm.ToolCall{
		{ID: "1", Name: "write_file", Args: []byte(`{"path": "memory/2025-03-01.md", "content": "tea, not coffee\n"}`)},
		{ID: "2", Name: "edit_file", Args: []byte(`{"path": "memory/2025-03-01.md", "old_string": "tea", "new_string": "green tea"}`)},
		{ID: "3", Name: "read_file", Args: []byte(`{"file": "memory/2025-03-01.md"}`)},
		{ID: "4", Name: "bash", Args: []byte(`{"command": "rm -r memory"}`)},
	} {
		r, err := tools.Run(context.Background(), call)
		if err != nil {
			panic(err)
		}
		fmt.Println(r.Text())
	}
	// Output:
	// made memory/2025-03-01.md with 16 bytes
	// replaced once in memory/2025-03-01.md
	// @@ -1,1 +1,1 @@
	// -tea, not coffee
	// +green tea, not coffee
	//
	// wrong arguments for read_file:
	// - path: missing, want non-empty string
	// - file: no such property
	// Required: path. Properties: column (integer from 1), limit (integer from 1), offset (integer from 1), path (non-empty string).
	// may it run? rm -r memory
	// not done: the user did not allow this. Do not try the same in another way; say why you wanted it, or ask.
}
