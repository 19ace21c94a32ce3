package offline

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"goclaw/llm"
)

// maxCalls is how many tool calls are made for one request of the user.
const maxCalls = 6

// turn is a request as this model sees it: what was said before, what is asked
// now, and the tool results since.
type turn struct {
	past    []llm.Message // the last one has what is asked
	asked   string        // the user's last message; "" if it has an answer
	notice  string        // what a program said last, if nobody asked anything
	picture bool          // the last message holds an image
	told    bool          // the user was told before what this model is

	tools map[string]llm.ToolSpec
	done  map[string]llm.ToolResult // of calls made for this request, by key
	made  int                       // calls, also those that this script does not want
	open  []llm.ToolCall            // wanted by the script, not made yet
}

func newTurn(req llm.Request) *turn {
	t := &turn{tools: map[string]llm.ToolSpec{}, done: map[string]llm.ToolResult{}}
	for _, s := range req.Tools {
		t.tools[s.Name] = s
	}
	at, block := askedIn(req.Messages)
	if at >= 0 {
		t.asked = strings.TrimSpace(req.Messages[at].Blocks[block].(llm.Text).Text)
	} else {
		at = len(req.Messages) - 1
		t.notice = req.Messages[at].Text()
	}
	t.past, t.picture = req.Messages[:at+1], holdsImage(req.Messages[at].Blocks)
	calls := map[string]llm.ToolCall{}
	for i, m := range req.Messages {
		t.told = t.told || m.Role == llm.Assistant && strings.Contains(m.Text(), whatIAm)
		for _, c := range m.Calls() {
			calls[c.ID] = c
		}
		for _, r := range m.Results() {
			if i > at {
				t.done[key(calls[r.CallID])] = r
				t.made++
			}
		}
	}
	return t
}

// askedIn returns where the text is that must be answered: the user's last one,
// unless it has an answer. at is -1 if there is none.
func askedIn(msgs []llm.Message) (at, block int) {
	for i := len(msgs) - 1; i >= 0; i-- {
		m := msgs[i]
		if m.Role == llm.Assistant {
			if len(m.Calls()) == 0 {
				return -1, 0
			}
			continue
		}
		for j := len(m.Blocks) - 1; j >= 0; j-- {
			if b, ok := m.Blocks[j].(llm.Text); ok && !isNotice(b.Text) && !isSummary(b.Text) {
				return i, j
			}
		}
	}
	return -1, 0
}

// isSummary reports whether a text is the summary of a compaction.
func isSummary(text string) bool {
	return strings.Contains(text, "<summary>") && strings.HasSuffix(strings.TrimSpace(text), "</summary>")
}

// isNotice reports whether a text in a user message is the program's.
func isNotice(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "[SYSTEM:") }

func holdsImage(blocks []llm.Block) bool {
	return slices.ContainsFunc(blocks, func(b llm.Block) bool { _, ok := b.(llm.Image); return ok })
}

// args are those of a tool call, by their names.
type args map[string]any

// fit makes a call with the arguments a. It returns false if the tool is not
// offered, or takes other arguments.
func (t *turn) fit(name string, a args) (llm.ToolCall, bool) {
	spec, ok := t.tools[name]
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if !ok || json.Unmarshal(spec.Schema, &schema) != nil {
		return llm.ToolCall{Name: name}, false
	}
	for p := range a {
		if _, ok := schema.Properties[p]; !ok {
			return llm.ToolCall{Name: name}, false
		}
	}
	for _, r := range schema.Required {
		if _, ok := a[r]; !ok {
			return llm.ToolCall{Name: name}, false
		}
	}
	return llm.ToolCall{Name: name, Args: encode(a)}, true
}

// call returns the result of a call. ok is false if there is none yet: the script
// then asks for everything that may run at the same time, and returns. A call
// that cannot be made, or is one too many, has failed.
func (t *turn) call(name string, a args) (out llm.ToolResult, ok bool) {
	c, can := t.fit(name, a)
	if !can {
		return llm.Failed(c, "there is no tool "+name+" here that I can use"), true
	}
	if r, ok := t.done[key(c)]; ok {
		return r, true
	}
	if t.made+len(t.open) >= maxCalls {
		return llm.Failed(c, "not done: too many tool calls for one request"), true
	}
	t.open = append(t.open, c)
	return llm.ToolResult{}, false
}

// key identifies a call whatever the form of its arguments: a store may have
// written them differently.
func key(c llm.ToolCall) string {
	var v any
	if json.Unmarshal(c.Args, &v) != nil {
		return ""
	}
	return c.Name + string(encode(v))
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and booleans only
	}
	return bytes.TrimSpace(b.Bytes())
}
