package compact

import (
	"context"
	"errors"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Due reports whether it is time for a checkpoint: the window has passed one
// of the percents since the last one, or so many user messages came, and
// there is something to cover. A compaction restarts the count.
func Due(s *session.Session, b window.Budget, o Options) bool {
	if b.Used < o.MinTokens || len(o.Percents) == 0 && o.Turns == 0 {
		return false
	}
	turns, level := 0, 0
	for i := len(s.Branch) - 1; i >= 0; i-- {
		r := s.Branch[i]
		if cp, ok := r.Body.(session.Checkpoint); ok {
			if b.Window > 0 {
				level = cp.Tokens * 100 / b.Window
			}
			// What came between the snapshot and the record counts.
			for k := i - 1; k >= 0 && s.Branch[k].ID != cp.Covers; k-- {
				if session.IsTurn(s.Branch[k].Body) {
					turns++
				}
			}
			break
		}
		if _, ok := r.Body.(session.Compaction); ok {
			break
		}
		if session.IsTurn(r.Body) {
			turns++
		}
	}
	if o.Turns > 0 && turns >= o.Turns {
		return true
	}
	for _, p := range o.Percents {
		if level < p && p <= b.Percent() && turns >= minTurns {
			return true
		}
	}
	return false
}

// minTurns is how many user messages must have come since a compaction or the last
// checkpoint for another to be worth a call.
const minTurns = 2

// Snapshot returns what a checkpoint of s would be made of: everything that
// is sent now. It holds on to records only, which never change, so that the
// session may continue. ok is false in the middle of a turn.
func Snapshot(s *session.Session, p window.Prompt, tok window.Tokenizer, b window.Budget) (c Cut, ok bool) {
	last, recs := window.Sent(s)
	if len(recs) == 0 || len(s.Unanswered()) > 0 {
		return c, false
	}
	l := window.Weigh(s, p, tok, b.Window)
	c = Cut{Before: l.Used, Asks: true, meter: meter{tok, l.Ratio}, limit: maxSummary(b.Window), weight: l.Used - l.Fixed, counted: l.Used}
	if last != nil {
		c.prev = parse(last.Summary)
	}
	x := lay(last, recs, l.Records)
	if cp := find(s, recs, x.resume); cp != nil {
		c.prev, c.told = parse(cp.Summary), cp.n
	}
	c.all = recs
	c.Compacted = x.messages(0, len(recs))
	c.pins = pinned(s, recs, c.prev)
	return c, c.told < len(recs)
}

// Checkpoint returns the checkpoint of a Snapshot. It is made by a model or
// not at all.
func (c Cut) Checkpoint(ctx context.Context, sum Summarizer) (session.Checkpoint, error) {
	if sum == nil || len(c.all) == 0 {
		return session.Checkpoint{}, errors.New("compact: there is nothing to make a checkpoint of, or no model to make it")
	}
	s, by, spent, err := sum.Summarize(ctx, Job{Prev: c.prev, Past: c.all[c.told:], Limit: c.limit})
	if err != nil {
		return session.Checkpoint{}, err
	}
	s = c.complete(s, s.Task)
	return session.Checkpoint{
		Summary: s.String(), Topics: s.Topics, Decisions: s.Decisions, Questions: s.Questions,
		Covers: c.all[len(c.all)-1].ID, Tokens: c.Before, Messages: c.Compacted, Model: by, Usage: spent,
	}, nil
}

// Again plans the compaction in effect once more, if it was made without a model:
// the record that a model then makes keeps what the extract kept. s must be
// loaded from the beginning of what that compaction covers.
func Again(s *session.Session, p window.Prompt, tok window.Tokenizer, b window.Budget) (c Cut, ok bool) {
	at, keep, ok := s.Compaction()
	if !ok || keep == at {
		return c, false
	}
	old, ok := s.Branch[at].Body.(session.Compaction)
	if !ok || !DetailsOf(old).Extract {
		return c, false
	}
	before := s.WithBranch(s.Branch[:at])
	last, recs := window.Sent(before)
	first := indexOf(recs, s.Branch[keep].ID)
	i := first
	if old.Resume != "" {
		i = indexOf(recs, old.Resume)
	}
	if i <= 0 || first < 0 || i < first {
		return c, false
	}
	l := window.Weigh(before, p, tok, b.Window)
	x := lay(last, recs, l.Records)
	for q := first; q < i; q++ {
		if session.IsTurn(recs[q].Body) {
			x.asked = append(x.asked, q)
		}
	}
	c = Cut{Before: l.Used, meter: meter{tok, l.Ratio}, limit: maxSummary(b.Window), counted: l.Fixed + l.Summary + x.suffix[0]}
	c.place(x, i, 0)
	c.weight = x.suffix[0] - x.left(i) + l.Summary
	c.After = c.then(c.limit)
	if last != nil {
		c.prev = parse(last.Summary)
	}
	c.pins = pinned(s, c.all, c.prev)
	return c, len(c.all) > 0
}

// IsExtract reports whether the compaction in effect was made without a model.
func IsExtract(s *session.Session) bool {
	at, _, ok := s.Compaction()
	if !ok {
		return false
	}
	c, ok := s.Branch[at].Body.(session.Compaction)
	return ok && DetailsOf(c).Extract
}

// Improve has a model write the summary of the compaction in effect. The error says that
// none answered.
func (c Cut) Improve(ctx context.Context, sum Summarizer) (session.Compaction, error) {
	comp, err := c.Compact(ctx, sum)
	if err == nil && DetailsOf(comp).Extract {
		err = errNoSummary
	}
	return comp, err
}

// Report is what a compaction would do.
type Report struct {
	Compacted, Kept int       // messages
	Before, After   int       // tokens
	Keep            string    // id of the first record that stays
	From            string    // the checkpoint that is used; "": none
	Asks            bool      // whether a model is asked
	Cost            llm.Usage // what a model will probably use
	Lost            []string  // identifiers that neither the summary nor what is kept would tell
	Pinned          int
	Open            []string // requests that are carried over
	Preview         string   // the summary: the checkpoint's, or the extract that stands in for a model's
	Summary         int      // tokens of Preview in the context
	Former          int      // tokens of the summary that it replaces; 0: there is none
	Turns           []Turn   // of the context, oldest first
}

// Turn is what a compaction does to a turn.
type Turn struct {
	Seq    session.Seq // of its first record
	Text   string      // what the user said
	Tokens int
	Stays  int // of these, what stays word for word; 0: the summary stands for the whole turn
	Pinned int // messages that the summary has word for word
}

// Estimate returns what sum will probably use for the summary, and what that
// costs if it is known. A sum that asks no model uses nothing; nil is a model
// without a price.
func (c Cut) Estimate(sum Summarizer) llm.Usage {
	if _, extracts := sum.(Extractor); extracts || !c.Asks {
		return llm.Usage{}
	}
	u := llm.Usage{Input: c.count(instructions) + c.count(c.prev.String()), Output: c.limit / 2, Estimated: true}
	for _, l := range lines(c.all[c.told:]) {
		u.Input += c.count(l) + 2
	}
	if chain, ok := sum.(Chain); ok && len(chain) > 0 && chain[0].Price != nil {
		u.Cost = chain[0].Price(u)
	}
	return u
}

// DryRun returns what compacting at c would do, without asking a model: since
// its words are not known, Lost is judged by the checkpoint or the extract.
func (c Cut) DryRun() Report {
	r := Report{Compacted: c.Compacted, Kept: c.Kept, Before: c.Before, Keep: c.Keep, From: c.From, Asks: c.Asks, Pinned: len(c.pins), Former: c.former, Turns: c.turns}
	r.Open, _ = c.open()
	s := c.prev
	hint := s.Task
	if c.Asks {
		s, _ = c.extract()
		hint = ""
		if r.Cost = c.Uses; r.Cost.Total() == 0 {
			r.Cost = c.Estimate(nil)
		}
	}
	s = c.complete(s, hint)
	r.Preview = s.String()
	r.Summary = c.weigh(r.Preview)
	r.After = c.then(r.Summary)
	kept := r.Preview
	for _, k := range c.kept {
		kept += "\n" + referText(k.Body)
	}
	r.Lost = c.lost(kept, nil)
	return r
}
