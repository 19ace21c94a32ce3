package window

import (
	"math"
	"sort"

	"goclaw/llm"
	"goclaw/session"
)

// Part is one thing that fills a window.
type Part struct {
	Name   string // system, tools, summary, user, assistant, notice, or tool:NAME for its results
	Tokens int
	Count  int // how many messages or results
}

// Item is one message or tool result that fills a window.
type Item struct {
	Seq    session.Seq
	Part   string // the name of the Part that it belongs to
	Tokens int
	Text   string       // what it says
	Call   llm.ToolCall // what it is the result of
}

// maxItems is how many items a Breakdown has.
const maxItems = 5

// Breakdown says what fills the window. Parts and Other add up to Budget.Used;
// Other is what the model counts besides what the log knows is sent. If the
// model counts less, the parts are scaled down to its count.
type Breakdown struct {
	Budget      Budget
	Parts       []Part // in the order of a request: system, tools, summary, then by size
	Other       int
	Largest     []Item // among the messages and results, the largest first
	Pinned      int    // tokens of pinned records among the parts
	Pins        int    // how many records are pinned
	Ratio       float64
	Compactions int // how many; 0 if none is in effect
	// Warned: a notice was given since the latest compaction. Saved: the model
	// wrote a memory file after it.
	Warned, Saved bool
	Spent         llm.Usage
	Cost          float64 // of Spent, in dollars; 0: not known
}

// inEffect counts the compactions of s without those that were undone since the
// one in effect.
func inEffect(s *session.Session) int {
	if _, _, ok := s.Compaction(); !ok {
		return 0
	}
	n := s.Compactions
	for _, r := range s.Branch {
		if _, undone := r.Body.(session.Undo); undone {
			n--
		}
	}
	return max(n, 0)
}

// Explain returns what fills the window. The caller sets Cost.
func Explain(s *session.Session, p Prompt, tok Tokenizer, b Budget) Breakdown {
	c := counter(tok)
	l := Weigh(s, p, tok, b.Window)
	b.Used = l.Used
	out := Breakdown{Budget: b, Ratio: l.Ratio, Compactions: inEffect(s), Warned: Warned(s), Saved: Saved(s), Spent: s.Spent}
	sum := 0
	put := func(name string, tokens, count int) {
		if tokens == 0 {
			return
		}
		sum += tokens
		for i := range out.Parts {
			if out.Parts[i].Name == name {
				out.Parts[i].Tokens += tokens
				out.Parts[i].Count += count
				return
			}
		}
		out.Parts = append(out.Parts, Part{name, tokens, count})
	}
	tools := int(math.Round(float64(c.tools(p.Tools)) * l.Ratio))
	system := l.Fixed - tools
	var sources []Part
	for _, from := range p.Sources {
		n := min(int(math.Round(float64(c.tok.Count(from.Text))*l.Ratio)), system)
		system -= n
		sources = append(sources, Part{from.Name, n, 1})
	}
	put("system", system, 1)
	for _, part := range sources {
		put(part.Name, part.Tokens, part.Count)
	}
	put("tools", tools, len(p.Tools))
	put("summary", l.Summary, 1)
	fixed := len(out.Parts)
	_, recs := Sent(s)
	pins := pinned(s)
	out.Largest = largest(recs, l.Records)
	for i, r := range recs {
		if l.Records[i] == 0 {
			continue
		}
		if pins[r.ID] {
			out.Pinned += l.Records[i]
			out.Pins++
		}
		put(partName(r.Body), l.Records[i], 1)
	}
	parts := out.Parts[fixed:]
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].Tokens > parts[j].Tokens })
	if sum > l.Used {
		out.Pinned = out.Pinned * l.Used / sum
		was := sum
		sum = 0
		for i := range out.Parts {
			out.Parts[i].Tokens = out.Parts[i].Tokens * l.Used / was
			sum += out.Parts[i].Tokens
		}
		for i := range out.Largest {
			out.Largest[i].Tokens = out.Largest[i].Tokens * l.Used / was
		}
	}
	out.Other = l.Used - sum
	return out
}

// largest returns the items of recs that take most of the window.
func largest(recs []session.Record, tokens []int) []Item {
	var at []int
	for i := range recs {
		if tokens[i] > 0 {
			at = append(at, i)
		}
	}
	sort.SliceStable(at, func(i, j int) bool { return tokens[at[i]] > tokens[at[j]] })
	at = at[:min(len(at), maxItems)]
	out := make([]Item, len(at))
	results := map[string]*Item{}
	for i, n := range at {
		out[i] = Item{Seq: recs[n].Seq, Part: partName(recs[n].Body), Tokens: tokens[n]}
		m, ok := recs[n].Body.(session.Message)
		if !ok {
			continue
		}
		out[i].Text = m.Text()
		for _, r := range m.Results() {
			results[r.CallID] = &out[i]
			break
		}
	}
	for _, r := range recs {
		if m, ok := r.Body.(session.Message); ok && len(results) > 0 {
			for _, c := range m.Calls() {
				if item := results[c.ID]; item != nil {
					item.Call = c
				}
			}
		}
	}
	return out
}

func partName(b session.Body) string {
	switch b := b.(type) {
	case session.Message:
		for _, r := range b.Results() {
			return "tool:" + r.Name
		}
		return string(b.Role)
	case session.Notice:
		return "notice"
	case session.BranchSummary:
		return "branch"
	case session.Shell:
		return "shell"
	}
	return "user"
}

// pinned returns the ids of the loaded records that are pinned.
func pinned(s *session.Session) map[string]bool {
	pins := map[string]bool{}
	for _, r := range s.Branch {
		if l, ok := r.Body.(session.Label); ok {
			pins[l.Target] = l.Label == session.Pin
		}
	}
	return pins
}
