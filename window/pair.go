package window

import (
	"bytes"
	"slices"
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
func bind(items []item, whole bool) (results map[spot]spot, duplicates map[spot]bool) {
	type open struct {
		spot
		turn int
		call llm.ToolCall
	}
	results, duplicates = map[spot]spot{}, map[spot]bool{}
	waiting := map[string][]open{} // calls without a result, by id
	early := map[string][]spot{}
	answered := map[string]bool{}
	for i, it := range items {
		for j, b := range it.Blocks {
			at := spot{i, j}
			switch b := b.(type) {
			case llm.ToolCall:
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
					k := n - 1
					for k > 0 && calls[k-1].item == calls[n-1].item {
						k-- // calls of one answer are answered in their order
					}
					results[calls[k].spot] = at
					waiting[b.CallID] = slices.Delete(calls, k, k+1)
					answered[b.CallID] = true
				} else if !answered[b.CallID] {
					early[b.CallID] = append(early[b.CallID], at)
				}
			}
		}
	}
	return results, duplicates
}

func sameCall(a, b llm.ToolCall) bool {
	return a.ID != "" && a.Name == b.Name && bytes.Equal(a.Args, b.Args)
}

// maxCalls is how many calls one message may have: OpenAI takes no more. The
// calls after them are sent in another message, after the results of these.
const maxCalls = 128

// pair turns items into messages: results follow their calls, and roles
// alternate. whole says that nothing before items was cut off, and anywhere that
// thinking need not come first.
func pair(items []item, q Squeeze, whole, anywhere bool) *writer {
	results, duplicates := bind(items, whole)
	last := 0
	if n := len(items); n > 0 {
		last = items[n-1].turn
	}
	w := &writer{ids: map[string]bool{}, anywhere: anywhere}
	for i, it := range items {
		if it.Role == llm.User {
			for j, b := range it.Blocks {
				if _, ok := b.(llm.ToolResult); !ok {
					w.put(llm.User, b, it.place(j))
				}
			}
			continue
		}
		var says, answers []placed
		flush := func() {
			w.putAll(llm.Assistant, says)
			w.putAll(llm.User, answers)
			says, answers = nil, nil
		}
		for j, b := range it.Blocks {
			c, ok := b.(llm.ToolCall)
			if !ok {
				says = append(says, placed{b, it.place(j)})
				continue
			}
			at := spot{i, j}
			if duplicates[at] {
				continue
			}
			if len(answers) == maxCalls {
				flush()
			}
			c = w.call(c)
			says = append(says, placed{c, it.place(j)})
			r := llm.Failed(c, Interrupted)
			var place Place
			if from, ok := results[at]; ok {
				r, place = items[from.item].Blocks[from.block].(llm.ToolResult), items[from.item].place(from.block)
				switch {
				case q >= Tight:
					r = tight.cut(r)
				case q >= Compact || q >= Results && it.turn <= last-spared:
					r = usual.cut(r)
				}
			}
			r.CallID = c.ID
			answers = append(answers, placed{r, place})
		}
		if slices.ContainsFunc(says, func(p placed) bool { return !isThinking(p.Block) }) { // else its calls were duplicates
			flush()
		}
	}
	return w
}

// placed is a block on its way into the request, and where it is in the log.
type placed struct {
	llm.Block
	Place
}

// writer collects messages whose roles alternate.
type writer struct {
	out    []llm.Message
	places [][]Place       // of the blocks of out
	ids    map[string]bool // ids in use

	anywhere bool // thinking need not come first
}

func (w *writer) putAll(role llm.Role, blocks []placed) {
	for _, b := range blocks {
		w.put(role, b.Block, b.Place)
	}
}

func (w *writer) put(role llm.Role, b llm.Block, at Place) {
	if len(w.out) == 0 && role == llm.Assistant {
		w.put(llm.User, llm.Text{Text: begun}, Place{})
	}
	n := len(w.out)
	if n == 0 || w.out[n-1].Role != role {
		w.out = append(w.out, llm.Message{Role: role, Blocks: []llm.Block{b}})
		w.places = append(w.places, []Place{at})
		return
	}
	m := &w.out[n-1]
	if isThinking(b) && !w.anywhere && slices.ContainsFunc(m.Blocks, func(b llm.Block) bool { return !isThinking(b) }) {
		return // a second answer in the message: its thinking cannot come first
	}
	m.Blocks = append(m.Blocks, b)
	w.places[n-1] = append(w.places[n-1], at)
}

func isThinking(b llm.Block) bool {
	_, ok := b.(llm.Thinking)
	return ok
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
