package inherit_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/fixtures"
	"goclaw/internal/inherit"
	"goclaw/session"
)

const (
	ownPrompts    = "the program's own prompts"
	fixtureGap    = "prompts that the fixtures leave out"
	mergedTexts   = "line ends of merged texts"
	summaryWords  = "words around a summary"
	noticeWords   = "words around a notification"
	busyWords     = "words around a message sent meanwhile"
	resultOrder   = "results in the order of their calls"
	attachedAfter = "attached files after their prompt"
)

func init() {
	starts := func(prefix ...string) func(string) bool {
		return func(item string) bool {
			return slices.ContainsFunc(prefix, func(p string) bool { return strings.HasPrefix(item, p) })
		}
	}
	differences[ownPrompts] = difference{theirs: func(items []string) []string {
		out := without(starts("system ", "user <system-reminder>(left out)</system-reminder>\n"))(items)
		for i, item := range out {
			if strings.HasPrefix(item, "result ") {
				out[i] = strings.TrimSuffix(item, "\n\n<system-reminder>(left out)</system-reminder>")
			}
		}
		return out
	}}
	differences[fixtureGap] = difference{ours: func(items []string) []string {
		out := slices.Clone(items)
		for i, item := range out {
			if strings.HasPrefix(item, "result ") {
				out[i] = reminder.ReplaceAllString(item, "<system-reminder>(left out)</system-reminder>")
			}
		}
		return out
	}}
	trimmed := func(items []string) []string {
		out := slices.Clone(items)
		for i, item := range out {
			if strings.HasPrefix(item, "user ") {
				out[i] = strings.TrimSuffix(item, "\n")
			}
		}
		return out
	}
	differences[mergedTexts] = difference{theirs: trimmed, ours: trimmed}
	differences[summaryWords] = difference{ours: func(items []string) []string {
		out := slices.Clone(items)
		for i, item := range out {
			item = strings.TrimPrefix(item, "user The conversation history before this point was compacted into the following summary:\n\n<summary>\n")
			if rest, ok := strings.CutSuffix(item, "\n</summary>"); ok {
				out[i] = "user " + rest
			}
		}
		return out
	}}
	differences[noticeWords] = difference{
		theirs: replaced("user <system-reminder>(left out)</system-reminder>", "user (a notification)"),
		ours: func(items []string) []string {
			out := slices.Clone(items)
			for i, item := range out {
				if strings.HasPrefix(item, "user <task-notification>") {
					out[i] = "user (a notification)"
				}
			}
			return out
		},
	}
	differences[busyWords] = difference{theirs: func(items []string) []string {
		out := slices.Clone(items)
		for i, item := range out {
			if rest, ok := strings.CutPrefix(item, "user The user sent a new message while you were working:\n"); ok {
				rest, _, _ = strings.Cut(rest, "\n\nThis is how Claude Code surfaces messages")
				out[i] = "user " + rest
			}
		}
		return out
	}}
	// Both sides: at the end of what the user says between two answers.
	last := func(items []string) (out []string) {
		var later []string
		for _, item := range items {
			switch {
			case starts("user <system-reminder>\nCalled the ", "user <system-reminder>\nResult of calling the ")(item):
				later = append(later, item)
				continue
			case !strings.HasPrefix(item, "user "):
				out = append(out, later...)
				later = nil
			}
			out = append(out, item)
		}
		return append(out, later...)
	}
	differences[attachedAfter] = difference{theirs: last, ours: last}
	differences[resultOrder] = difference{theirs: sortedResults, ours: sortedResults}
}

// sortedResults sorts the results that follow one answer.
func sortedResults(items []string) []string {
	out := slices.Clone(items)
	for i := 0; i < len(out); i++ {
		n := 0
		for i+n < len(out) && strings.HasPrefix(out[i+n], "result ") {
			n++
		}
		slices.Sort(out[i : i+n])
		i += n
	}
	return out
}

var reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)

func TestClaudeCodeSends(t *testing.T) {
	own := []string{ownPrompts}
	merged := []string{ownPrompts, mergedTexts}
	compacted := []string{ownPrompts, mergedTexts, summaryWords, attachedAfter}
	heldToWire(t, "claude-code/2.1.325-print",
		wired{session: "e5cde3e9", line: 17, differs: own},
		wired{session: "subagents/agent-a205", line: 11, differs: own},
		wired{session: "subagents/agent-a4ed", line: 14, differs: own},
		wired{session: "9f16ae73-f556-4a93-b52d-39059a4b7ebc.jsonl", line: 16, differs: []string{ownPrompts, mergedTexts, noticeWords}},
	)
	heldToWire(t, "claude-code/2.1.325-interactive",
		wired{session: "8d06b908", line: 22, differs: compacted},
		wired{session: "28fd5bd9", line: 23, differs: compacted},
		wired{session: "ddf70ac9", line: 32, differs: merged},
		wired{session: "b484433b", line: 34, differs: own},
		wired{session: "6e43917d", line: 35, differs: merged},
		wired{session: "e2d8a844", line: 37, differs: merged},
	)
	old := []string{ownPrompts, fixtureGap, resultOrder}
	heldToWire(t, "claude-code/1.0.98",
		wired{session: "7bbc05b7", line: 13, differs: old},
		wired{session: "2a2b999a", line: 14, differs: old},
		wired{session: "41f7a11d", line: 16, differs: old},
		wired{session: "24a981e4", line: 17, differs: old},
	)
}

// TestClaudeCodeGrows imports real files again and again while they grow, and
// holds what would be sent at each moment against the request that Claude Code
// sent then: the answer to its request N has the id msg_N.
func TestClaudeCodeGrows(t *testing.T) {
	held := 0
	for folder, files := range map[string]map[string][]int{ // requests whose context is not this file's: it was copied
		"claude-code/2.1.325-print": {
			"-home-xcc325-proj/e5cde3e9-f3f0-4764-9713-3976a3912c2a.jsonl":                                   nil,
			"-home-xcc325-proj/9f16ae73-f556-4a93-b52d-39059a4b7ebc.jsonl":                                   nil,
			"-home-xcc325-proj/9f16ae73-f556-4a93-b52d-39059a4b7ebc/subagents/agent-a205a2913ab97a139.jsonl": nil,
			"-home-xcc325-proj/9f16ae73-f556-4a93-b52d-39059a4b7ebc/subagents/agent-a4ede58c29bd43be0.jsonl": nil,
		},
		"claude-code/2.1.325-interactive": {
			"-home-xcci-proj/8d06b908-0663-4b02-8388-2e1d5337e2e0.jsonl": nil,
			"-home-xcci-proj/28fd5bd9-d336-4e25-996a-3ffd532db8ad.jsonl": {16},
			"-home-xcci-proj/ddf70ac9-4e39-4fdb-be77-5f214f59ea6f.jsonl": nil,
			"-home-xcci-proj/b484433b-fa5b-45ed-a764-39fe248e2b0c.jsonl": nil,
			"-home-xcci-proj/6e43917d-ee2b-4432-946a-ef66fae30734.jsonl": nil,
			"-home-xcci-proj/e2d8a844-e3c8-4d7d-961a-6414b0e785ab.jsonl": nil,
		},
	} {
		dir := filepath.Join(realPrograms(t), filepath.FromSlash(folder))
		requests := map[int]fixtures.Request{}
		for _, r := range fixtures.Wire(t, filepath.Join(dir, "wire.jsonl")) {
			requests[r.N] = r
		}
		for name, copied := range files {
			t.Run(filepath.Base(name), func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join(dir, "projects", name))
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), name)
				st, memo := openStore(t, t.TempDir()), inherit.NewMemo("")
				var log session.ID
				size := 0
				grow := func(to int) {
					write(t, file, string(text[:to]))
					rep, cat := take(t, st, memo, false, filepath.Dir(file))
					if len(rep.Outcomes) == 0 && log == "" { // nothing was said yet
						return
					}
					if len(rep.Outcomes) != 1 || len(cat.Problems) > 0 || rep.Outcomes[0].State == inherit.Rewritten || log != "" && rep.Outcomes[0].Log != log {
						t.Fatalf("%d bytes: %+v, %v", to, rep.Outcomes, cat.Problems)
					}
					log = rep.Outcomes[0].Log
				}
				answered := map[string]bool{}
				for line := range bytes.Lines(text) {
					var l struct {
						Message struct{ ID string }
					}
					if err := json.Unmarshal(line, &l); err != nil {
						t.Fatal(err)
					}
					if n := 0; !answered[l.Message.ID] {
						answered[l.Message.ID] = true
						if _, err := fmt.Sscanf(l.Message.ID, "msg_%d", &n); err == nil && !slices.Contains(copied, n) {
							grow(size)
							holdAny(t, st, log, requests[n])
							held++
						}
					}
					if size += len(line); size%3 == 0 { // between the lines of an answer, too
						grow(size)
					}
				}
				grow(len(text))
				once := openStore(t, t.TempDir())
				take(t, once, nil, false, filepath.Dir(file))
				if diff := cmp.Diff(slices.Sorted(slices.Values(sourceLines(t, once, log))), slices.Sorted(slices.Values(sourceLines(t, st, log)))); diff != "" {
					t.Errorf("lines in the log (-at once +in steps):\n%s", diff)
				}
				if n := len(dump(t, st)); n != 1 {
					t.Errorf("%d logs, want 1", n)
				}
				if diff := cmp.Diff(sentOf(t, once, log, "messages"), sentOf(t, st, log, "messages")); diff != "" {
					t.Errorf("context (-at once +in steps):\n%s", diff)
				}
			})
		}
	}
	if held < 40 {
		t.Errorf("%d requests compared, want 40", held)
	}
}

// holdAny holds a context against a request, with any of the differences from
// Claude Code.
func holdAny(t *testing.T, st session.Store, log session.ID, request fixtures.Request) {
	t.Helper()
	theirs, ours := request.Items, sentOf(t, st, log, request.API)
	for _, name := range []string{ownPrompts, fixtureGap, mergedTexts, summaryWords, noticeWords, busyWords, resultOrder, attachedAfter} {
		if d := differences[name]; d.theirs != nil {
			theirs = d.theirs(theirs)
		}
		if d := differences[name]; d.ours != nil {
			ours = d.ours(ours)
		}
	}
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("request %d: the context differs (-theirs +ours):\n%s", request.N, diff)
	}
}
