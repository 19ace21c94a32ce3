package window

import (
	"math"
	"slices"

	"goclaw/llm"
	"goclaw/session"
)

// Measure returns b with Used and Counted set: the usage that the model reported
// last, plus a count of what came after it, corrected by the ratio that this
// session's reports show. It ignores reports from before the compaction in
// effect, from another model, and those that cannot be of what is sent: above
// the window, or far below the length of the text.
//
// It depends only on the log from the first record sent on, and counts only
// what no report covers.
func Measure(s *session.Session, p Prompt, tok Tokenizer, b Budget) Budget {
	b.Used, b.Counted = newScale(s, p, tok, b.Window).used()
	return b
}

// Ledger is what a context is made of, in tokens of the model asked.
type Ledger struct {
	Ratio   float64 // tokens of the model for one of the vocabulary's, as the session shows
	Fixed   int     // system prompt and tools
	Summary int     // of the compaction in effect
	Records []int   // one for each record of Sent
	Used    int     // as Measure sets it
	Ref     string  // id of the answer whose report Used builds on; "": everything is counted
}

// Weigh returns the ledger of s. window may be 0.
func Weigh(s *session.Session, p Prompt, tok Tokenizer, window int) Ledger {
	x := newScale(s, p, tok, window)
	l := Ledger{Ratio: x.ratio, Fixed: x.fixed(), Summary: x.summary(), Records: make([]int, len(x.recs))}
	l.Used, _ = x.used()
	if x.ref >= 0 {
		l.Ref = x.recs[x.ref].ID
	}
	for i := range x.recs {
		l.Records[i] = x.weight(i)
	}
	return l
}

// scale weighs the records of one session for one model.
type scale struct {
	*Counter
	id      session.ID
	p       Prompt
	comp    *session.Compaction // in effect; nil: none
	recs    []session.Record
	changes map[string]change
	turn    int // the user's last message
	ratio   float64
	ref     int // the report that Used builds on; -1: none
	after   int // without one: the first record after the compaction whose TokensAfter it builds on; 0: none
}

func newScale(s *session.Session, p Prompt, tok Tokenizer, window int) *scale {
	x := &scale{Counter: counter(tok), id: s.ID, p: p, ref: -1}
	x.comp, x.recs = Sent(s)
	x.changes = changesOf(x.recs)
	x.turn = lastTurn(x.recs)
	refs := references(x.recs, p, window)
	since := session.Seq(0) // the compaction: reports before it are of another context
	if at, _, ok := s.Compaction(); ok {
		since = s.Branch[at].Seq
	}
	x.ratio = x.learn(refs, since)
	x.choose(refs, since)
	return x
}

func (x *scale) scaled(n int) int { return int(math.Round(float64(n) * x.ratio)) }

func (x *scale) fixed() int { return x.scaled(x.stable(x.p.System) + x.tools(x.p.Tools)) }

func (x *scale) summary() int {
	if x.comp == nil {
		return 0
	}
	return x.scaled(x.stable(SummaryText(x.comp.Summary)) + overhead)
}

func (x *scale) count(i int) counted { return x.record(x.id, x.recs[i], x.p, x.changes[x.recs[i].ID]) }

// used is the report to build on plus a count of everything after it.
func (x *scale) used() (n, counted int) {
	told, from := 0, 0
	switch {
	case x.ref >= 0:
		told, from = x.recs[x.ref].Body.(session.Message).Usage.Prompt()+x.weight(x.ref), x.ref+1
	case x.after > 0:
		counted, from = x.comp.TokensAfter, x.after
	default:
		counted = x.fixed() + x.summary()
	}
	for i := from; i < len(x.recs); i++ {
		counted += x.weight(i)
	}
	return told + counted, counted
}

// weight is how many tokens record i adds to the context. A complete answer
// reports its own size; its thinking is dropped once the user has spoken again.
func (x *scale) weight(i int) int {
	n := x.count(i)
	w := x.scaled(n.text) + n.images
	m, ok := x.recs[i].Body.(session.Message)
	if !ok || m.Role != llm.Assistant || n == (counted{}) {
		return w
	}
	past := x.turn > i
	if !past {
		w += x.scaled(n.thinking)
	}
	if out, ok := reported(m, past); ok && plausible(out, w, n.calls) {
		return out
	}
	return w
}

// reported is the size that a model reported for its answer, if the context
// holds all of the answer.
func reported(m session.Message, past bool) (int, bool) {
	if m.Stop == llm.StopAborted || m.Stop == llm.StopError || m.Usage.Output <= 0 {
		return 0, false
	}
	for _, b := range m.Blocks {
		if _, ok := b.(llm.Thinking); ok && past {
			return 0, false
		}
	}
	return m.Usage.Output, true
}

// plausible reports whether an answer counted as w can have out tokens. Hidden
// reasoning is reported as well, but not sent again.
func plausible(out, w, calls int) bool { return out <= 3*w+60*calls+100 && w <= 3*out+20 }

// reference is an answer that reports the size of its prompt.
type reference struct{ at, prompt int }

// references returns the answers of the model asked that report usage, in
// order. The ratio is learnt from those before the compaction as well.
func references(recs []session.Record, p Prompt, window int) []reference {
	var refs []reference
	for i, r := range recs {
		m, ok := r.Body.(session.Message)
		if !ok || m.Role != llm.Assistant || m.Synthetic() || m.Cut || m.Stop == llm.StopError || m.Stop == llm.StopAborted {
			continue
		}
		n := m.Usage.Prompt()
		if n <= 0 || window > 0 && n > window {
			continue
		}
		if p.Model != "" && m.Model != "" && (m.Model != p.Model || m.Provider != "" && p.Provider != "" && m.Provider != p.Provider) {
			continue
		}
		refs = append(refs, reference{i, n})
	}
	return refs
}

// learn gives the expected ratio the weight of so many tokens (prior). It looks
// at the newest maxPairs pairs and learnFrom bytes, and at no pair with fewer
// bytes than minPair, which would show little but overhead.
const (
	prior     = 1000
	maxPairs  = 64
	minPair   = 120
	learnFrom = 64 << 10
)

// learn returns the ratio that successive reports show: how much the prompt grew
// apart from the answer between them, against the count of what was added. No
// pair counts for more than three times what is expected.
func (x *scale) learn(refs []reference, since session.Seq) float64 {
	grown, added := prior*x.Counter.ratio, float64(prior)
	for k, pairs, read := len(refs)-1, 0, 0; k > 0 && pairs < maxPairs && read < learnFrom; k-- {
		a, b := refs[k-1], refs[k]
		out, ok := reported(x.recs[a.at].Body.(session.Message), lastTurn(x.recs[a.at+1:b.at]) >= 0)
		size, straight := 0, x.recs[a.at].Seq > since || x.recs[b.at].Seq <= since
		for _, r := range x.recs[a.at+1 : b.at] {
			size += bodyBytes(r.Body)
			straight = straight && !changesPast(r.Body)
		}
		if !ok || !straight || size < minPair {
			continue
		}
		read += size
		text, other := 0, 0
		for i := a.at + 1; i < b.at; i++ {
			n := x.count(i)
			text += n.text + n.thinking
			other += n.images
		}
		g, want := float64(b.prompt-a.prompt-out-other), x.Counter.ratio*float64(text)
		if text == 0 || g < 0.4*want {
			continue // the second prompt was cut, or the first answer's reasoning is not sent
		}
		grown += min(g, 3*want)
		added += float64(text)
		pairs++
	}
	return grown / added
}

// changesPast reports whether b changes what is sent of earlier records.
func changesPast(b session.Body) bool {
	switch b.(type) {
	case session.Compaction, session.Undo, session.Reset, session.Edit, session.Refused, session.Redaction:
		return true
	}
	return false
}

// maxBytes is how many bytes a token has at most, on average over a prompt. A
// prompt that is reported as smaller was cut or miscounted.
const maxBytes = 6

// choose finds the report to build on: the last one of what is sent now. Until
// there is one, the compaction says how much it left.
func (x *scale) choose(refs []reference, since session.Seq) {
	first, after := 0, 0 // of the records sent as they are now, and of those after the compaction
	for i, r := range x.recs {
		if r.Seq <= since {
			after = i + 1
		}
		if changesPast(r.Body) || r.Seq <= since {
			first = i + 1
		}
	}
	if len(refs) == 0 {
		return
	}
	if refs[len(refs)-1].at < first {
		if first == after && x.comp != nil && x.comp.TokensAfter > 0 {
			x.after = after
		}
		return
	}
	before := make([]int, len(x.recs)+1) // bytes sent before each record
	for i, r := range x.recs {
		before[i+1] = before[i] + bodyBytes(r.Body)
	}
	for k := len(refs) - 1; k >= 0 && refs[k].at >= first; k-- {
		if refs[k].prompt >= before[refs[k].at]/maxBytes {
			x.ref = refs[k].at
			return
		}
	}
}

// bodyBytes is the length of a message without thinking and images.
func bodyBytes(b session.Body) int {
	switch b := b.(type) {
	case session.Message:
		if b.Excluded || b.Stop == llm.StopError || b.Stop == llm.StopAborted || b.Role == llm.System {
			return 0
		}
		return llm.SizeOf(b.Blocks).Text
	case session.CustomMessage:
		return llm.SizeOf(b.Blocks).Text
	}
	return 0
}

// lastTurn is the index of the user's last message, -1 if there is none.
func lastTurn(recs []session.Record) int {
	for i, r := range slices.Backward(recs) {
		if session.IsTurn(r.Body) {
			return i
		}
	}
	return -1
}

// Estimate is how many tokens of the model asked req has, which was built from
// s.
func Estimate(s *session.Session, p Prompt, tok Tokenizer, req llm.Request) int {
	x := newScale(s, p, tok, 0)
	return x.scaled(CountRequest(req, tok))
}
