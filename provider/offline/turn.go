package offline

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"goclaw/llm"
)

// maxCalls is how many tool calls are made for one wish of the user.
const maxCalls = 6

// speaker is whose words a text is.
type speaker int

const (
	nobody    speaker = iota
	user              // the person
	assistant         // this model, or one before it
	tool              // a tool's output
	summary           // of what was folded away
	aside             // what a program put there in the user's name
)

// utterance is one text of the conversation.
type utterance struct {
	who  speaker
	text string
	n    int          // how many messages of the user there were up to here
	call llm.ToolCall // of a tool's output
	bad  bool         // the tool failed
}

// turn is a request as this model sees it: what was said before, what is asked
// now, and what the tools have answered since.
type turn struct {
	past    []utterance
	spoken  int    // messages of the user in past
	asked   string // the user's last words; "" if there are none to answer
	notice  string // what a program said last, if nobody asked anything
	picture bool   // the last message holds an image
	told    bool   // it was said before what this model is

	tools map[string]llm.ToolSpec
	done  []step
	spent int            // calls that a script made before it went over to another
	open  []llm.ToolCall // wanted by the script, not made yet
}

// step is a call that was made for this wish, with its result.
type step struct {
	call    llm.ToolCall
	outcome outcome
}

// outcome is what came of a call.
type outcome struct {
	text    string
	failed  bool
	picture bool
}

func newTurn(req llm.Request) *turn {
	t := &turn{tools: map[string]llm.ToolSpec{}}
	for _, s := range req.Tools {
		t.tools[s.Name] = s
	}
	at, block := askedIn(req.Messages)
	if at >= 0 {
		t.asked = strings.TrimSpace(req.Messages[at].Blocks[block].(llm.Text).Text)
	} else {
		at = len(req.Messages) - 1
		last := req.Messages[at]
		t.notice = last.Text()
		block = len(last.Blocks)
	}
	for _, b := range req.Messages[at].Blocks {
		if _, ok := b.(llm.Image); ok {
			t.picture = true
		}
	}
	calls := map[string]llm.ToolCall{}
	for i, m := range req.Messages {
		for j, b := range m.Blocks {
			before := i < at || i == at && j < block
			switch b := b.(type) {
			case llm.Text:
				if m.Role == llm.Assistant && strings.Contains(b.Text, whatIAm) {
					t.told = true
				}
				if before {
					t.say(m.Role, b.Text)
				}
			case llm.ToolCall:
				calls[b.ID] = b
			case llm.ToolResult:
				c := calls[b.CallID]
				if before {
					t.past = append(t.past, utterance{who: tool, text: b.Text(), n: t.spoken, call: c, bad: b.IsError})
				} else {
					t.done = append(t.done, step{c, outcomeOf(b)})
				}
			}
		}
	}
	return t
}

// askedIn returns where the words stand that are to be answered: the user's
// last ones, unless they have an answer. at is -1 if there are none.
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
			if b, ok := m.Blocks[j].(llm.Text); ok && !isNotice(b.Text) && summaryOf(b.Text) == "" {
				return i, j
			}
		}
	}
	return -1, 0
}

func outcomeOf(r llm.ToolResult) outcome {
	o := outcome{text: r.Text(), failed: r.IsError}
	for _, b := range r.Blocks {
		if _, ok := b.(llm.Image); ok {
			o.picture = true
		}
	}
	return o
}

// say adds a text to the past.
func (t *turn) say(role llm.Role, text string) {
	u := utterance{who: assistant, text: text}
	if role == llm.User {
		u.who = user
		if s := summaryOf(text); s != "" {
			u.who, u.text = summary, s
		} else if isNotice(text) || isRemark(text) {
			u.who = aside
		} else {
			t.spoken++
		}
	}
	u.n = t.spoken
	t.past = append(t.past, u)
}

var summaryRe = regexp.MustCompile(`(?s)<summary>(.*)</summary>\s*$`)

// summaryOf returns what stands in a text that tells of a folded past, or "".
func summaryOf(text string) string {
	if !strings.Contains(text, "<summary>") {
		return ""
	}
	if m := summaryRe.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return ""
}

// isNotice reports whether a program warns in the user's name.
func isNotice(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "[SYSTEM:") }

// isRemark reports whether a text of the past is a stage direction: one line
// in brackets, as where the beginning of a conversation is not shown.
func isRemark(text string) bool {
	s := strings.TrimSpace(text)
	return strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") && !strings.Contains(s, "\n")
}

// arg is an argument under the first of its names that a tool's schema knows.
type arg struct {
	names []string
	val   any
}

// with returns an argument; names are in order of preference.
func with(val any, names ...string) arg { return arg{names, val} }

// wanted is a call that a script needs the outcome of.
type wanted struct {
	name string
	args []arg
}

func call(name string, args ...arg) wanted { return wanted{name, args} }

// fit makes the call as the offered tool takes it. It returns false if the
// tool is not offered, or wants more than is known here.
func (t *turn) fit(w wanted) (llm.ToolCall, bool) {
	spec, ok := t.tools[w.name]
	if !ok {
		return llm.ToolCall{}, false
	}
	var schema struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(spec.Schema, &schema) != nil {
		return llm.ToolCall{}, false
	}
	args := map[string]any{}
	for i, a := range w.args {
		k := slices.IndexFunc(a.names, func(n string) bool {
			_, ok := schema.Properties[n]
			return ok || schema.Properties == nil
		})
		if k >= 0 {
			args[a.names[k]] = a.val
		} else if i == 0 {
			return llm.ToolCall{}, false // the first says what it is all about
		}
	}
	for _, r := range schema.Required {
		if _, ok := args[r]; !ok {
			return llm.ToolCall{}, false
		}
	}
	return llm.ToolCall{Name: w.name, Args: encode(args)}, true
}

// can reports whether the call could be made.
func (t *turn) can(w wanted) bool {
	_, ok := t.fit(w)
	return ok
}

// takes reports whether an offered tool has a parameter of that name.
func (t *turn) takes(name, param string) bool {
	return t.can(call(name, with(true, param), with("", "path"), with("", "content")))
}

// all returns the outcomes of calls that may run side by side. ok is false
// until they are there; the script then returns at once. A call that cannot be
// made, or is one too many, has failed.
func (t *turn) all(calls ...wanted) (outs []outcome, ok bool) {
	ok = true
	for _, w := range calls {
		c, can := t.fit(w)
		if !can {
			outs = append(outs, outcome{text: "there is no tool " + w.name + " here that I can use", failed: true})
			continue
		}
		i := slices.IndexFunc(t.done, func(s step) bool { return same(s.call, c) })
		switch {
		case i >= 0:
			outs = append(outs, t.done[i].outcome)
		case len(t.done)+len(t.open) >= maxCalls:
			outs = append(outs, outcome{text: "not done: too many tool calls for one request", failed: true})
		default:
			if !slices.ContainsFunc(t.open, func(o llm.ToolCall) bool { return same(o, c) }) {
				t.open = append(t.open, c)
			}
			outs, ok = append(outs, outcome{}), false
		}
	}
	return outs, ok
}

// one is all for a single call.
func (t *turn) one(name string, args ...arg) (outcome, bool) {
	outs, ok := t.all(call(name, args...))
	return outs[0], ok
}

// same compares what is called. A store may have written the arguments in
// another form.
func same(a, b llm.ToolCall) bool {
	if a.Name != b.Name {
		return false
	}
	var x, y any
	if json.Unmarshal(a.Args, &x) != nil || json.Unmarshal(b.Args, &y) != nil {
		return false
	}
	return bytes.Equal(encode(x), encode(y))
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

// argOf returns a string argument of a call, or "".
func argOf(c llm.ToolCall, names ...string) string {
	var a map[string]any
	if json.Unmarshal(c.Args, &a) != nil {
		return ""
	}
	for _, n := range names {
		if s, ok := a[n].(string); ok {
			return s
		}
	}
	return ""
}

// numberOf returns a number argument of a call, or 0.
func numberOf(c llm.ToolCall, name string) int {
	var a map[string]any
	if json.Unmarshal(c.Args, &a) != nil {
		return 0
	}
	f, _ := a[name].(float64)
	return int(f)
}
