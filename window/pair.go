package window

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"goclaw/llm"
)

// Interrupted is the result of a call that has none in the log: the program
// ended, or was ended, while the tool ran. It is never run again by itself.
const Interrupted = "interrupted: the tool did not finish, and it is not known how far it came"

// begun opens a request whose first words would be the model's.
const begun = "(the beginning of this conversation is not shown)"

// answer is a result found in the log.
type answer struct {
	at     int // index of the item it stood in
	result llm.ToolResult
	used   bool
}

// pair makes messages of items: calls with their results, roles in turns.
func pair(items []item, q Squeeze) []llm.Message {
	results := map[string][]*answer{}
	for i, it := range items {
		for _, r := range it.Results() {
			results[r.CallID] = append(results[r.CallID], &answer{at: i, result: r})
		}
	}
	last := 0
	if n := len(items); n > 0 {
		last = items[n-1].turn
	}
	w := writer{ids: map[string]bool{}, calls: map[string][]llm.ToolCall{}}
	for i, it := range items {
		if it.Role == llm.User {
			for _, b := range it.Blocks {
				if _, ok := b.(llm.ToolResult); !ok {
					w.put(llm.User, b)
				}
			}
			continue
		}
		var says, answers []llm.Block
		for _, b := range it.Blocks {
			c, ok := b.(llm.ToolCall)
			if !ok {
				says = append(says, b)
				continue
			}
			a := pick(results[c.ID], i)
			if c, ok = w.call(c, a != nil); !ok {
				continue
			}
			says = append(says, c)
			r := llm.Failed(c, Interrupted)
			if a != nil {
				a.used = true
				r = a.result
				r.CallID = c.ID
				if q >= Fold || q >= Results && it.turn <= last-spared {
					r = cut(r)
				}
			}
			answers = append(answers, r)
		}
		if onlyThinking(says) {
			continue // its calls were doubles
		}
		for _, b := range says {
			w.put(llm.Assistant, b)
		}
		for _, r := range answers {
			w.put(llm.User, r)
		}
	}
	return w.out
}

// pick chooses the answer of a call in item i: the first one behind it, else
// one that stands before it.
func pick(as []*answer, i int) *answer {
	var before *answer
	for _, a := range as {
		switch {
		case a.used:
		case a.at >= i:
			return a
		case before == nil:
			before = a
		}
	}
	return before
}

// writer collects messages whose roles take turns.
type writer struct {
	out   []llm.Message
	ids   map[string]bool           // ids in use
	calls map[string][]llm.ToolCall // calls written so far, by their id in the log
}

func (w *writer) put(role llm.Role, b llm.Block) {
	n := len(w.out)
	if n == 0 && role == llm.Assistant {
		w.out = append(w.out, llm.UserText(begun))
		n++
	}
	if n == 0 || w.out[n-1].Role != role {
		w.out = append(w.out, llm.Message{Role: role, Blocks: []llm.Block{b}})
		return
	}
	m := &w.out[n-1]
	if _, ok := b.(llm.Thinking); ok && !onlyThinking(m.Blocks) {
		return // a second answer in one message: its thinking cannot come first
	}
	m.Blocks = append(m.Blocks, b)
}

func onlyThinking(blocks []llm.Block) bool {
	for _, b := range blocks {
		if _, ok := b.(llm.Thinking); !ok {
			return false
		}
	}
	return true
}

// call returns c as it may be sent: with an id of its own that every API
// takes, and an object for arguments. It returns false for a call that was
// written before and has no result of its own: some programs store one twice.
// With a result of its own it is another call: some servers use an id again.
func (w *writer) call(c llm.ToolCall, answered bool) (llm.ToolCall, bool) {
	if c.Name == "" {
		return c, false
	}
	c.Args = object(c.Args)
	for _, old := range w.calls[c.ID] {
		if !answered && c.ID != "" && old.Name == c.Name && bytes.Equal(old.Args, c.Args) {
			return c, false
		}
	}
	w.calls[c.ID] = append(w.calls[c.ID], c)
	id := callID(c.ID)
	for n := 2; w.ids[id]; n++ {
		id = callID(c.ID + "#" + strconv.Itoa(n))
	}
	w.ids[id] = true
	c.ID = id
	return c, true
}

// maxCallID is the longest id that every API takes.
const maxCallID = 40

// callID returns id if every API takes it, else one made from it.
func callID(id string) string {
	ok := id != "" && len(id) <= maxCallID
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		ok = false
		return '_'
	}, id)
	if ok {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return clean[:min(len(clean), maxCallID-17)] + "_" + hex.EncodeToString(sum[:8])
}

// object returns raw if it is a JSON object, else one that holds it.
func object(raw json.RawMessage) json.RawMessage {
	t := bytes.TrimSpace(raw)
	if len(t) == 0 || bytes.Equal(t, []byte("null")) {
		return json.RawMessage("{}")
	}
	if t[0] == '{' && json.Valid(t) {
		return t
	}
	text, _ := json.Marshal(map[string]string{"_raw": strings.ToValidUTF8(string(raw), "\uFFFD")})
	return text
}
