package window

import (
	"bytes"
	"strconv"

	"goclaw/llm"
)

// Interrupted is the result of a call that has none in the log: the program
// ended while the tool ran. The call is never rerun automatically.
const Interrupted = "interrupted: the tool did not finish, and it is not known how far it came"

// begun is the first message of a request that would begin with the model's.
const begun = "(the beginning of this conversation is not shown)"

// spot is where a tool call is: the item, and the block in it.
type spot struct{ item, block int }

// bind gives each call of items its result. A result belongs to the nearest
// call of its id before it that has none yet: some servers use an id again, and
// a call that a crash left unanswered must not take another's result. If there
// is no such call, the result may belong to a later one, as in logs of programs
// that write results first; but not in a past that was cut, where the call may
// be missing.
//
// A call that repeats an open one of the same turn, word for word, is a
// duplicate: some programs store each call twice.
func bind(items []item, whole bool) (results map[spot]llm.ToolResult, duplicates map[spot]bool) {
	type open struct {
		spot
		turn int
		call llm.ToolCall
	}
	results, duplicates = map[spot]llm.ToolResult{}, map[spot]bool{}
	waiting := map[string][]open{} // calls without a result, by id
	early := map[string][]llm.ToolResult{}
	answered := map[string]bool{}
	for i, it := range items {
		for j, b := range it.Blocks {
			switch b := b.(type) {
			case llm.ToolCall:
				at := spot{i, j}
				calls := waiting[b.ID]
				if n := len(calls); n > 0 && calls[n-1].turn == it.turn && sameCall(calls[n-1].call, b) {
					duplicates[at] = true
					continue
				}
				if rs := early[b.ID]; whole && len(rs) > 0 {
					results[at], early[b.ID] = rs[0], rs[1:]
					answered[b.ID] = true
					continue
				}
				waiting[b.ID] = append(calls, open{at, it.turn, b})
			case llm.ToolResult:
				calls := waiting[b.CallID]
				if n := len(calls); n > 0 {
					results[calls[n-1].spot] = b
					waiting[b.CallID] = calls[:n-1]
					answered[b.CallID] = true
				} else if !answered[b.CallID] {
					early[b.CallID] = append(early[b.CallID], b)
				}
			}
		}
	}
	return results, duplicates
}

func sameCall(a, b llm.ToolCall) bool {
	return a.ID != "" && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
}

// pair turns items into messages: results follow their calls, and roles
// alternate. whole says that nothing before items was cut off.
func pair(items []item, q Squeeze, whole bool) []llm.Message {
	results, duplicates := bind(items, whole)
	last := 0
	if n := len(items); n > 0 {
		last = items[n-1].turn
	}
	w := writer{ids: map[string]bool{}}
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
		for j, b := range it.Blocks {
			c, ok := b.(llm.ToolCall)
			if !ok {
				says = append(says, b)
				continue
			}
			at := spot{i, j}
			if duplicates[at] {
				continue
			}
			c = w.call(c)
			says = append(says, c)
			r, ok := results[at]
			switch {
			case !ok:
				r = llm.Failed(c, Interrupted)
			case q >= Tight:
				r = tight.cut(r)
			case q >= Compact || q >= Results && it.turn <= last-spared:
				r = usual.cut(r)
			}
			r.CallID = c.ID
			answers = append(answers, r)
		}
		if onlyThinking(says) {
			continue // its calls were duplicates
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

// writer collects messages whose roles alternate.
type writer struct {
	out []llm.Message
	ids map[string]bool // ids in use
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
		return // a second answer in the message: its thinking cannot come first
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

// call returns c with an id that every API accepts and no other call has.
func (w *writer) call(c llm.ToolCall) llm.ToolCall {
	id := llm.CallID(c.ID)
	for n := 2; w.ids[id]; n++ {
		id = llm.CallID(c.ID + "#" + strconv.Itoa(n))
	}
	w.ids[id] = true
	c.ID = id
	return c
}
