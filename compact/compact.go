// Package compact replaces earlier turns of a conversation with a summary: it
// decides where to cut, has the part before the cut summarised, checks the
// answer, and returns the record that puts the summary in place of that part.
//
// Plan and Due are pure functions of the session. A compaction is a record: it
// removes nothing, and can be undone. Every record is kept or covered by the
// summary, and a call is never parted from its result. A model is asked only
// where no checkpoint will do, and a compaction succeeds even if no model
// answers: an extract, made without one, serves until a model is back.
package compact

import (
	"cmp"
	"math"
	"slices"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Options are how a session is compacted. The zero value is useful.
type Options struct {
	Keep          int    // percent of the used tokens that stay as they are; 0: 20
	Messages      int    // messages that stay at least; 0: 4
	NoCheckpoints bool   // make a new summary even where a checkpoint would do
	Focus         string // what the user wants the summary to dwell on
	Force         bool   // compact even where that gains little

	// When checkpoints are made: at so many percent of the window, or every
	// so many user messages, but not below so many tokens. Nil and zero mean
	// never.
	Percents  []int
	Turns     int
	MinTokens int
}

// Cut is a place to compact at.
type Cut struct {
	Keep      string // id of the first record that stays as it is
	Resume    string // id of the record where what stays goes on, if Keep is a question that stands alone before it; else ""
	From      string // id of the checkpoint whose summary is used; "": none
	Asks      bool   // a model is to be asked
	Before    int    // tokens in use
	After     int    // tokens in use then, if the summary has half of the tokens that it replaces
	Compacted int    // messages that the summary replaces
	Kept      int    // messages that stay

	Uses     llm.Usage       // what a model will probably use for the summary; see Estimate
	Retrying func(llm.Retry) // is told of each call of the model that is repeated; may be nil

	past
	meter
	focus   string
	limit   int // tokens that a summary may have
	weight  int // tokens of what the summary replaces
	counted int // tokens in use by our own count
	pins    []pin
	turns   []Turn
	former  int         // tokens of the summary that is in effect now
	last    *checkpoint // the latest one, if it covers a part of what is replaced
}

// past is what a summary replaces, and what stays after it.
type past struct {
	prev  Summary          // of an earlier compaction, or of the checkpoint
	all   []session.Record // what is replaced
	told  int              // how many of all prev covers
	asked []session.Record // the questions among kept that are being worked on
	kept  []session.Record // what stays, beginning with asked
}

// meter counts tokens of the model.
type meter struct {
	tok  window.Tokenizer
	rate float64 // tokens of the model for one of tok's
}

func (m meter) count(text string) int {
	return int(math.Ceil(float64(m.tok.Count(text)) * m.rate))
}

// weigh returns what a summary comes to in the context.
func (m meter) weigh(summary string) int { return m.count(window.SummaryText(summary)) + overhead }

// overhead is what a message or a pin costs besides its text, about.
const overhead = 16

// then returns how many tokens are in use once a summary of n tokens has
// replaced the past. They are the model's own tokens, as in Before, so that
// both can be compared: what the model counts besides our count stays, and where
// it counts less, so does what is left.
func (c Cut) then(n int) int {
	less := c.weight - n
	if c.counted > c.Before {
		return int(int64(c.Before) * int64(c.counted-less) / int64(c.counted))
	}
	return c.Before - less
}

// checkpoint is a checkpoint of the branch that covers the first n records of
// what is sent (once the cut is placed: of what the summary replaces).
type checkpoint struct {
	id string
	session.Checkpoint
	n int
}

// room returns what fits into a window besides the answer and fixed parts.
func room(b window.Budget, fixed int) int { return max(0, b.Window-b.Kept()-fixed) }

// maxSummary returns how many tokens a summary may have.
func maxSummary(window int) int {
	if window <= 0 {
		return 4000
	}
	return min(8000, max(300, window/8))
}

// gain is the part of the used tokens, in percent, that a compaction must free
// to be worth it.
const gain = 10

// least is how many tokens a compaction must free: a summary has as many.
const least = 100

// relief is the part of what fits, in percent, that should stay at most: after
// a compaction that leaves more, the next one comes too soon.
const relief = 75

// Plan decides where to cut s: on the latest turn boundary that leaves the
// newest Keep percent and at least so many messages; inside a turn only where
// that turn alone is too much, and then the question that the turn answers
// stays; and leaving less where the window demands it. ok is false if there is
// nothing to compact, or too little to help.
func Plan(s *session.Session, p window.Prompt, tok window.Tokenizer, b window.Budget, o Options) (c Cut, ok bool) {
	l := window.Weigh(s, p, tok, b.Window)
	last, recs := window.Sent(s)
	x := lay(last, recs, l.Records)
	x.block(s.Unanswered())
	c = Cut{Before: l.Used, limit: maxSummary(b.Window), focus: o.Focus, meter: meter{tok, l.Ratio}}
	total := x.suffix[0] + l.Summary
	c.counted = l.Fixed + total
	fits := total / 2
	if b.Window > 0 {
		fits = room(b, l.Fixed) - c.limit
	}
	x.keepAsked(fits)
	i := x.choose(total*cmp.Or(max(o.Keep, 0), 20)/100, cmp.Or(max(o.Messages, 0), 4), fits)
	if last != nil {
		c.prev = parse(last.Summary)
	}
	from := 0
	if cp := find(s, recs, x.resume); cp != nil {
		c.last = cp
		cp.n = x.covered(cp.n)
		if !o.NoCheckpoints && cp.n > 0 && 2*(x.prefix(cp.n)+l.Summary) > total {
			c.From = cp.id
			c.prev = parse(cp.Summary)
			from = cp.n
			// Everything after the checkpoint stays, if that leaves room to
			// continue; else a part of that is compacted as well.
			if j := x.before(min(i, cp.n)); j > 0 && x.left(j) <= fits*relief/100 {
				i = j
			}
		}
	}
	if i <= 0 {
		return c, false
	}
	put := x.suffix[0] - x.left(i)
	if put < least || !o.Force && put < total*gain/100 {
		return c, false
	}
	c.place(x, i, from)
	c.weight, c.former = put+l.Summary, l.Summary
	c.After = c.then(min(c.limit, max(c.weight/2, 1)))
	c.pins = pinned(s, c.all, c.prev)
	c.turns = x.turns(c.kept, c.pins)
	if c.pinTokens() >= c.weight { // the summary could not be shorter
		return c, false
	}
	return c, true
}

// place cuts before record i of x. prev covers the records before from.
func (c *Cut) place(x *layout, i, from int) {
	asked := map[int]bool{}
	first, covered := i, 0
	for _, q := range x.asked {
		if q < i {
			asked[q] = true
			c.asked = append(c.asked, x.recs[q])
			first = min(first, q)
		}
	}
	c.kept = append(append(c.kept, c.asked...), x.recs[i:]...)
	for k, r := range x.recs[:i] {
		if asked[k] {
			continue
		}
		c.all = append(c.all, r)
		if k < from {
			c.told++
		}
		if c.last != nil && k < c.last.n {
			covered++
		}
	}
	if c.last != nil && c.last.n > 0 {
		c.last.n = covered
	} else {
		c.last = nil
	}
	c.Asks = len(c.all) > c.told
	c.Keep = x.recs[first].ID
	// What an earlier compaction left out between its question and the rest stays
	// left out.
	if resume := max(i, x.resume); first < resume {
		c.Resume = x.recs[resume].ID
	}
	c.Compacted, c.Kept = x.messages(0, i)-len(asked), x.messages(i, len(x.recs))+len(asked)
}

// turns says of each turn what stays of it.
func (x *layout) turns(kept []session.Record, pins []pin) (out []Turn) {
	stays, word := map[string]bool{}, map[string]bool{}
	for _, r := range kept {
		stays[r.ID] = true
	}
	for _, p := range pins {
		word[p.ID] = true
	}
	for i, r := range x.recs {
		if x.weights[i] == 0 {
			continue
		}
		if m, ok := r.Body.(session.Message); ok && session.IsTurn(m) || len(out) == 0 {
			out = append(out, Turn{Seq: r.Seq, Text: m.Text()})
		}
		t := &out[len(out)-1]
		t.Tokens += x.weights[i]
		switch {
		case stays[r.ID]:
			t.Stays += x.weights[i]
		case word[r.ID]:
			t.Pinned++
		}
	}
	return out
}

// find returns the latest checkpoint that covers a part of recs. One that ends
// before the record where they resume does not cover what was left out there.
func find(s *session.Session, recs []session.Record, resume int) *checkpoint {
	at := map[string]int{}
	for i, r := range recs {
		if i >= resume {
			at[r.ID] = i + 1
		}
	}
	for i := len(s.Branch) - 1; i >= 0; i-- {
		if cp, ok := s.Branch[i].Body.(session.Checkpoint); ok && cp.Summary != "" {
			if n := at[cp.Covers]; n > 0 {
				return &checkpoint{s.Branch[i].ID, cp, n}
			}
		}
	}
	return nil
}

// layout is the shape of what is sent: weights, and where it can be cut.
type layout struct {
	recs    []session.Record
	weights []int
	suffix  []int // what is sent from each record on
	split   []int // how many pairs of call and result a cut before each record would part
	asked   []int // the questions that are being worked on, which stay wherever the cut falls
	resume  int   // where the compaction in effect resumes; 0: it left nothing out
}

// lay returns the layout of recs. last is the compaction in effect, or nil.
func lay(last *session.Compaction, recs []session.Record, weights []int) *layout {
	x := &layout{recs: recs, weights: weights, suffix: make([]int, len(recs)+1), split: make([]int, len(recs)+1)}
	if last != nil && last.Resume != "" {
		x.resume = max(0, indexOf(recs, last.Resume))
	}
	for i := len(recs) - 1; i >= 0; i-- {
		x.suffix[i] = x.suffix[i+1] + weights[i]
	}
	calls := map[string]int{}
	early := map[string]int{} // results whose call comes later
	for i, r := range recs {
		m, ok := r.Body.(session.Message)
		if !ok {
			continue
		}
		for _, c := range m.Calls() {
			if j, ok := early[c.ID]; ok {
				x.join(j, i)
				delete(early, c.ID)
			}
			calls[c.ID] = i
		}
		for _, res := range m.Results() {
			if j, ok := calls[res.CallID]; ok {
				x.join(j, i)
			} else {
				early[res.CallID] = i
			}
		}
	}
	n := 0
	for i := range x.split {
		n += x.split[i]
		x.split[i] = n
	}
	return x
}

// keepAsked notes which of the questions that are being worked on stay, word
// for word: the last one, unless it leaves too little room for everything else
// to continue, and those before it that are short.
func (x *layout) keepAsked(fits int) {
	var open []int
	for i, r := range x.recs {
		m, ok := r.Body.(session.Message)
		switch {
		case !ok:
		case session.IsTurn(m) && x.weights[i] > 0:
			open = append(open, i)
		case answers(m):
			open = nil
		}
	}
	room := fits / 2
	for k := len(open) - 1; k >= 0 && x.weights[open[k]] <= room; k-- {
		room = min(room, fits/8) - x.weights[open[k]]
		x.asked = append([]int{open[k]}, x.asked...)
	}
}

// left is what stays with a cut before record i.
func (x *layout) left(i int) int {
	n := x.suffix[i]
	for _, q := range x.asked {
		if q < i {
			n += x.weights[q]
		}
	}
	return n
}

func indexOf(recs []session.Record, id string) int {
	return slices.IndexFunc(recs, func(r session.Record) bool { return r.ID == id })
}

// join forbids every cut between records i < j.
func (x *layout) join(i, j int) {
	x.split[i+1]++
	x.split[j+1]--
}

// block forbids every cut after calls that are still to be answered.
func (x *layout) block(open []llm.ToolCall) {
	for _, c := range open {
		for i := len(x.recs) - 1; i >= 0; i-- {
			if m, ok := x.recs[i].Body.(session.Message); ok && slices.ContainsFunc(m.Calls(), func(o llm.ToolCall) bool { return o.ID == c.ID }) {
				for k := i + 1; k < len(x.split); k++ {
					x.split[k]++
				}
				break
			}
		}
	}
}

// clean reports whether what is sent can be cut before record i.
func (x *layout) clean(i int) bool {
	return i > 0 && i < len(x.recs) && x.split[i] == 0 && x.weights[i] > 0
}

// before is the last place to cut at i or before it; 0 if there is none.
func (x *layout) before(i int) int {
	for i = min(i, len(x.recs)-1); i > 0 && !x.clean(i); i-- {
	}
	return max(i, 0)
}

// covered is the place to cut at after the first n records: after those that
// are not sent as well, or before a pair that n parts.
func (x *layout) covered(n int) int {
	for n < len(x.recs) && x.weights[n] == 0 {
		n++
	}
	if n == len(x.recs) {
		return n
	}
	return x.before(n)
}

func (x *layout) prefix(i int) int { return x.suffix[0] - x.suffix[i] }

// messages counts what is sent from record i to j.
func (x *layout) messages(i, j int) int {
	n := 0
	for ; i < j; i++ {
		if x.weights[i] > 0 {
			n++
		}
	}
	return n
}

// choose returns where to cut; 0 if nowhere. want tokens and least messages
// stay where fits allows it.
func (x *layout) choose(want, least, fits int) int {
	turn, inside, fit, ease := 0, 0, 0, 0 // the best places so far
	left := 0
	for i := len(x.recs) - 1; i > 0; i-- {
		if x.weights[i] > 0 {
			left++
		}
		if !x.clean(i) {
			continue
		}
		if x.left(i) <= fits {
			fit = i // the earliest place that leaves what fits
		} else if fit == 0 {
			fit = i // nothing fits: as little as possible stays
		}
		if x.left(i) <= fits*relief/100 {
			ease = i
		}
		if x.left(i) < want || left < least {
			continue
		}
		if inside == 0 {
			inside = i
		}
		if turn == 0 && session.IsTurn(x.recs[i].Body) {
			turn = i
		}
	}
	switch {
	case turn > 0 && x.left(turn) <= max(fits/2, want+want/2):
		return turn
	case x.suffix[0] <= fits: // no need to cut a turn in two
		return turn
	case inside > 0 && x.left(inside) <= fits:
		return inside
	case ease > 0:
		return ease
	}
	return fit
}

// pin is a record that a summary has word for word.
type pin struct{ ID, Text string }

// pinned returns the pins among the records past, and those of an earlier
// summary that nobody has removed.
func pinned(s *session.Session, past []session.Record, prev Summary) []pin {
	var out []pin
	labels := map[string]string{}
	for _, r := range s.Branch {
		if l, ok := r.Body.(session.Label); ok {
			labels[l.Target] = l.Label
		}
	}
	seen := map[string]bool{}
	for _, p := range prev.Pinned {
		if l, ok := labels[p.ID]; (!ok || l == session.Pin) && !seen[p.ID] {
			seen[p.ID] = true
			out = append(out, p)
		}
	}
	for _, r := range past {
		if labels[r.ID] == session.Pin && !seen[r.ID] {
			if t := plainText(r.Body); t != "" {
				seen[r.ID] = true
				out = append(out, pin{r.ID, t})
			}
		}
	}
	return out
}
