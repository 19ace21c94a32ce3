// Package compact folds the past of a conversation: it decides where to cut,
// has the part before the cut summarised, checks what comes back, and returns
// the record that puts the summary in its place.
//
// Plan and Due are pure functions of the session. A fold appends; it removes
// nothing, and can be taken back. Every record is kept or covered, and a call
// is never parted from its result. A model is only asked where no checkpoint
// will do, and a fold succeeds even if no model answers: an extract that is
// made without one takes the summary's place until a model is back.
package compact

import (
	"slices"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Options are how the past is folded. The zero value is useful.
type Options struct {
	Keep          int    // percent of what is used that stays as it is; 0: 20
	Messages      int    // messages that stay at least; 0: 4
	NoCheckpoints bool   // summarise anew even where a checkpoint would do
	Focus         string // what the user wants the summary to dwell on
	Force         bool   // fold even where it gains little

	// When checkpoints are made: at so many percent of the window, or every
	// so many user messages, but not below so many tokens. Nil and zero mean
	// never.
	Percents  []int
	Turns     int
	MinTokens int
}

func (o Options) keep() int {
	if o.Keep > 0 {
		return o.Keep
	}
	return 20
}

func (o Options) messages() int {
	if o.Messages > 0 {
		return o.Messages
	}
	return 4
}

// Cut is a place to fold at.
type Cut struct {
	Keep      string // id of the first record that stays as it is
	Resume    string // id of the record where what stays goes on, if Keep is a question that stands alone before it; else ""
	From      string // id of the checkpoint whose summary is used; "": none
	Asks      bool   // a model is to be asked
	Before    int    // tokens in use
	After     int    // tokens in use then, with a summary as long as is allowed
	Compacted int    // records that are folded away, of those that are sent
	Kept      int    // records that stay
	Limit     int    // tokens that a summary may have
	Weight    int    // tokens of what the summary replaces
	Focus     string

	prev    Summary          // what an earlier fold, or the checkpoint, says
	past    []session.Record // what is not in prev yet
	all     []session.Record // everything that is folded away
	since   []session.Record // what of it came after the last checkpoint
	kept    []session.Record
	asked   []session.Record // the questions among kept that are being worked on
	counted int              // tokens in use by our own count
	pins    []Pinned
	tok     window.Tokenizer
	rate    float64 // tokens of the model for one of tok's
	last    *checkpoint
}

// then is what is in use once a summary of n tokens is in the place of the
// past. It is in the model's own tokens, as Before is, so that both can be
// compared: what the model counts beside our count stays, and where it counts
// less, so does what is left.
func (c Cut) then(n int) int {
	less := c.Weight - n
	if c.counted > c.Before {
		return int(int64(c.Before) * int64(c.counted-less) / int64(c.counted))
	}
	return c.Before - less
}

// checkpoint is one that lies on the branch and covers the first n records of
// what is sent.
type checkpoint struct {
	id string
	session.Checkpoint
	n int
}

// room is what fits into a window beside the answer and fixed parts.
func room(b window.Budget, fixed int) int { return max(0, b.Window-b.Kept()-fixed) }

// limit is how long a summary may be.
func limit(window int) int {
	if window <= 0 {
		return 4000
	}
	return min(8000, max(300, window/8))
}

// gain is the part of what is used, in percent, that a fold must put away to
// be worth it.
const gain = 10

// least is how many tokens a fold must put away: a summary has as many.
const least = 100

// relief is the part of what fits, in percent, that should stay at most: a
// fold that leaves more is followed by the next one too soon.
const relief = 75

// Plan decides where to fold s: on the latest turn boundary that leaves the
// newest Keep percent and at least so many messages; inside a turn only where
// that turn alone is too much, and then without the question that the turn
// answers, which stays; and with less where the window leaves no choice. ok is
// false if there is nothing to fold, or too little to help.
func Plan(s *session.Session, p window.Prompt, tok window.Tokenizer, b window.Budget, o Options) (c Cut, ok bool) {
	l := window.Weigh(s, p, tok, b.Window)
	fold, recs := window.Sent(s)
	x := lay(fold, recs, l.Records)
	x.block(s.Unanswered())
	c = Cut{Before: l.Used, Limit: limit(b.Window), Focus: o.Focus, tok: tok, rate: l.Ratio}
	total := x.suffix[0] + l.Summary
	c.counted = l.Fixed + total
	fits := total / 2
	if b.Window > 0 {
		fits = room(b, l.Fixed) - c.Limit
	}
	x.keepAsked(fits)
	i := x.choose(total*o.keep()/100, o.messages(), fits)
	if fold != nil {
		c.prev = Parse(fold.Summary)
	}
	from := 0
	if cp := find(s, recs, x.resume); cp != nil {
		c.last = cp
		cp.n = x.covered(cp.n)
		if !o.NoCheckpoints && cp.n > 0 && 2*(x.prefix(cp.n)+l.Summary) > total {
			c.From = cp.id
			c.prev = Parse(cp.Summary)
			from = cp.n
			// Everything after the checkpoint stays, if that leaves room to
			// go on; else the part after it is folded as well.
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
	c.Weight = put + l.Summary
	c.After = c.then(min(c.Limit, max(c.Weight/2, 1)))
	c.pins = pinned(s, c.all, c.prev)
	if c.pinTokens() >= c.Weight { // the summary could not be shorter
		return c, false
	}
	return c, true
}

// place cuts before record i of x. prev tells of the records before from.
func (c *Cut) place(x *layout, i, from int) {
	asked := map[int]bool{}
	first := i
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
		if k >= from {
			c.past = append(c.past, r)
		}
		if c.last != nil && k >= c.last.n {
			c.since = append(c.since, r)
		}
	}
	c.Asks = len(c.past) > 0
	c.Keep = x.recs[first].ID
	// What an earlier fold left out between its question and the rest stays
	// left out.
	if resume := max(i, x.resume); first < resume {
		c.Resume = x.recs[resume].ID
	}
	c.Compacted, c.Kept = x.messages(0, i)-len(asked), x.messages(i, len(x.recs))+len(asked)
}

// find returns the latest checkpoint that covers a part of recs. One that ends
// before the record where they resume does not tell of what was left out there.
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
	resume  int   // where the fold in effect resumes; 0: it left nothing out
}

// lay returns the layout of recs, which fold, if there is one, has left.
func lay(fold *session.Compaction, recs []session.Record, weights []int) *layout {
	x := &layout{recs: recs, weights: weights, suffix: make([]int, len(recs)+1), split: make([]int, len(recs)+1)}
	if fold != nil && fold.Resume != "" {
		x.resume = max(0, indexOf(recs, fold.Resume))
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
// to go on, and those before it that are short.
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

// block forbids every cut behind calls that are still to be answered.
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

// covered is the place to cut at behind the first n records: behind those
// that are not sent as well, or before a pair that n parts.
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
			fit = i // nothing fits: as much as can be is folded
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

// Pinned is a record that is kept word for word.
type Pinned struct{ ID, Text string }

// pinned returns the pins among what is folded, and those that an earlier
// summary carries and nobody has taken away.
func pinned(s *session.Session, past []session.Record, prev Summary) []Pinned {
	var out []Pinned
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
				out = append(out, Pinned{r.ID, t})
			}
		}
	}
	return out
}
