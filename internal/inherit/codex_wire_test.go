package inherit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"goclaw/window"
)

func init() {
	differences["encrypted reasoning"] = difference{theirs: without(func(item string) bool { return strings.HasPrefix(item, "thinking ") })}
	differences["encrypted messages"] = difference{theirs: without(func(item string) bool {
		return strings.HasPrefix(item, "other ") && strings.Contains(item, `"encrypted_content"`)
	})}
	differences["compaction in one message"] = difference{theirs: inOneMessage}
	differences["calls without a result"] = difference{theirs: interrupted}
	differences["custom tools"] = difference{theirs: func(items []string) []string {
		out := slices.Clone(items)
		for i, item := range out {
			if w := strings.SplitN(item, " ", 4); w[0] == "call" && strings.HasPrefix(w[3], `"`) {
				out[i] = fmt.Sprintf(`call %s %s {"input":%s}`, w[1], w[2], w[3])
			}
		}
		return out
	}}
	differences["said after the last request"] = difference{ours: func(items []string) []string { return items[:len(items)-1] }}
}

// inOneMessage puts the items that Codex rebuilds a compacted past of into the
// one that we send: what the user said, and the summary.
func inOneMessage(items []string) []string {
	end := slices.IndexFunc(items, func(item string) bool {
		return strings.HasPrefix(item, "user Another language model started to solve this problem") || strings.HasPrefix(item, "other ") && strings.Contains(item, `"type":"compaction"`)
	})
	if end < 0 {
		return items
	}
	var texts []string
	for _, item := range items[:end] {
		if item = strings.TrimPrefix(item, "user "); !strings.HasPrefix(item, "<environment_context>") && !strings.HasPrefix(item, "# AGENTS.md instructions") {
			texts = append(texts, "user: "+item)
		}
	}
	if summary, ok := strings.CutPrefix(items[end], "user "); ok {
		texts = append(texts, summary)
	} else {
		texts = append(texts, "(That is what the user said before this point. The summary of the answers is encrypted and cannot be read here.)")
	}
	return append([]string{"user " + window.SummaryText(strings.Join(texts, "\n\n"))}, items[end+1:]...)
}

// interrupted gives our words to calls that Codex answers with "aborted", and
// their place.
func interrupted(items []string) []string {
	out := slices.Clone(items)
	for i, item := range out {
		if w := strings.SplitN(item, " ", 4); w[0] == "result" && w[3] == "aborted" && i+1 < len(out) {
			out[i], out[i+1] = out[i+1], fmt.Sprintf("result %s true %s", w[1], window.Interrupted)
		}
	}
	return out
}

// TestCodexSends: what is sent of each session is what Codex sent, whether the
// user went back, forked or compacted the session, or its agents did the work.
func TestCodexSends(t *testing.T) {
	const reasoning, compacted = "encrypted reasoning", "compaction in one message"
	t.Run("0.104", func(t *testing.T) {
		heldToWire(t, "codex/0.104.0",
			wired{session: "01a1df42-736a", line: 3, differs: []string{reasoning}},
			wired{session: "01a1df42-ab67", line: 11, differs: []string{compacted}},
			wired{session: "01a1df44-a660", line: 12, differs: []string{reasoning, compacted}},
		)
	})
	t.Run("0.166", func(t *testing.T) {
		heldToWire(t, "codex/0.166.0",
			wired{session: "01a1df3b-c5e7", line: 2, differs: []string{reasoning}},
			wired{session: "01a1df3c-37dd", line: 8, differs: []string{reasoning, "custom tools"}},
			// The user went back: the newest file goes on.
			wired{session: "01a1df3c-dc5b", line: 33, differs: []string{reasoning, compacted}},
			wired{session: "01a1df3f-3574", line: 34, differs: []string{reasoning, compacted}},
			wired{session: "01a1df3f-eb65", line: 45, differs: []string{reasoning, "said after the last request"}},
			wired{session: "01a1df3f-fb85", line: 37, differs: []string{"encrypted messages"}},
			wired{session: "01a1df3f-fbd8", line: 44, differs: []string{reasoning, "encrypted messages", "calls without a result"}},
		)
	})
	t.Run("encrypted compaction", func(t *testing.T) {
		heldToWire(t, "codex/0.166.0-openai-compaction",
			wired{session: "01a1df71-99a8", line: 8, differs: []string{compacted}},
		)
	})
}
