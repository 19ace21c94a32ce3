package inherit_test

import (
	"strings"
	"testing"
)

func init() {
	differences["encrypted reasoning"] = difference{theirs: without(func(item string) bool { return strings.HasPrefix(item, "thinking ") })}
}

func TestCodexSends(t *testing.T) {
	heldToWire(t, "codex/0.104.0",
		wired{session: "01a1df42-736a", line: 3, differs: []string{"encrypted reasoning"}},
		wired{session: "01a1df42-ab67", never: "a compaction is not rebuilt as Codex does"},
		wired{session: "01a1df44-a660", never: "a compaction is not rebuilt as Codex does"},
	)
}
