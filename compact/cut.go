package compact

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Details is what a Compaction says besides its summary. The files are those
// that pi writes there.
type Details struct {
	Read      []string `json:"readFiles"`
	Modified  []string `json:"modifiedFiles"`
	By        string   `json:"by,omitempty"`      // the model, or "checkpoint", or "extract"
	Extract   bool     `json:"extract,omitempty"` // made without a model, to be improved
	Compacted int      `json:"folded,omitempty"`  // messages
	Kept      int      `json:"kept,omitempty"`
	Problem   string   `json:"problem,omitempty"` // why no model made it
}

// DetailsOf returns what c says of itself; the zero value where another
// program made it.
func DetailsOf(c session.Compaction) Details {
	var d Details
	if json.Unmarshal(c.Details, &d) != nil {
		return Details{}
	}
	return d
}

// byExtract names the maker of a summary that no model made.
const byExtract = "extract"

// Extractor is the Summarizer where there is no model that could be asked: it
// makes extracts, which a model improves when one is there.
type Extractor struct{}

// Summarize implements Summarizer.
func (Extractor) Summarize(_ context.Context, j Job) (Summary, string, llm.Usage, error) {
	s := extract(j.Prev, j.Past)
	if s.Text == "" {
		return s, "", llm.Usage{}, errNoSummary
	}
	return s, byExtract, llm.Usage{}, nil
}

// extractMark opens a summary that was made without a model.
const extractMark = "(No model was there to write this summary: it is an extract of what was said.)"

// Compact returns the record that puts a summary in the place of the past. It
// asks sum, which may be nil, unless a checkpoint will do. If no model gives a
// summary, the last checkpoint and an extract take its place. Any other error
// is ctx's.
//
// What must not be lost is checked and added from the log: the task, open
// requests, files, pinned records word for word, and the identifiers that the
// kept part refers to.
//
// A summary that would take more room than what it replaces is not made: the
// error is a *LargerError.
func (c Cut) Compact(ctx context.Context, sum Summarizer) (session.Compaction, error) {
	s, d, from := c.prev, Details{By: "checkpoint", Compacted: c.Compacted, Kept: c.Kept}, c.From
	var spent llm.Usage
	if c.Asks {
		err := errNoSummary
		if sum != nil {
			s, d.By, spent, err = sum.Summarize(ctx, Job{Prev: c.prev, Past: c.all[c.told:], Asked: c.asked, Focus: c.focus, Limit: c.limit, Retrying: c.Retrying})
		}
		if ctx.Err() != nil {
			return session.Compaction{}, ctx.Err()
		}
		if err != nil {
			s, from = c.extract()
			d.By = byExtract
			d.Problem = text.OneLine(err.Error(), 300)
		}
		d.Extract = d.By == byExtract
	}
	hint := s.Task
	if d.Extract {
		hint = ""
	}
	s = c.complete(s, hint)
	text := s.String()
	if d.Extract {
		text = extractMark + "\n\n" + text
	}
	n := c.weigh(text)
	if n >= c.weight {
		return session.Compaction{}, &LargerError{Before: c.Before, After: c.then(n), Usage: spent}
	}
	d.Read, d.Modified = append([]string{}, s.Read...), append([]string{}, s.Written...) // never null
	details, err := json.Marshal(d)
	if err != nil {
		return session.Compaction{}, err
	}
	return session.Compaction{Summary: text, FirstKept: c.Keep, Resume: c.Resume, TokensBefore: c.Before, TokensAfter: c.then(n), FromCheckpoint: from, Details: details, Usage: spent}, nil
}

// LargerError says that a compaction was not made because it would have made
// the context larger.
type LargerError struct {
	Before, After int       // tokens in use
	Usage         llm.Usage // what the attempt took
}

func (e *LargerError) Error() string {
	return fmt.Sprintf("not compacted: the summary would take more room than what it replaces (%s tokens now, about %s then)", window.Short(e.Before), window.Short(e.After))
}

// extract is the summary without a model: the last checkpoint and what was said
// after it, or what was said.
func (c Cut) extract() (s Summary, from string) {
	if cp := c.last; cp != nil {
		return extract(parse(cp.Summary), c.all[cp.n:]), cp.id
	}
	return extract(c.prev, c.all[c.told:]), c.From
}

// pinTokens is what the pins alone come to.
func (c Cut) pinTokens() int {
	n := 0
	for _, p := range c.pins {
		n += c.count(p.Text) + overhead
	}
	return n
}

// Shares of the limit, in percent: what verification may add, and what pins
// may take on top of the limit.
const (
	addShare = 40
	pinShare = 100
)

// leastText is how many tokens the text of a summary has however little room
// there is.
const leastText = 40

// complete returns s with everything that must be in it, within the limit.
// hint is what a model takes for the task.
func (c Cut) complete(s Summary, hint string) Summary {
	s.carry(c.prev)
	s.Task, s.Earlier = c.task(hint)
	text := s.String()
	for _, d := range demands(c.all) {
		if !says(text, d) {
			s.Constraints = append(s.Constraints, d)
		}
	}
	read, written := files(c.all)
	s.Read, s.Written = union(s.Read, read), union(s.Written, written)
	// A summary is shorter than what it replaces, with its pins; one of
	// little, by little.
	limit := min(c.limit, max(leastText, c.weight-c.weigh("")-c.pinTokens()))
	if c.weight > 400 {
		limit = min(limit, c.weight*2/3)
	}
	adds := limit * addShare / 100
	s.Pinned = nil
	s.fit(limit-adds, c.count)
	s.Requests = slices.DeleteFunc(s.Requests, func(r string) bool { return c.isAsked(r) || c.isAnswered(r) })
	s.Requests = append(s.Requests, c.missing(s.String(), adds/2, c.count)...)
	s.Identifiers = append(s.Identifiers, c.referred(s, adds, c.count)...)
	s.fit(limit, c.count)
	s.Pinned = c.fitPins(max(limit, c.limit) * pinShare / 100)
	return s
}

// isAsked reports whether a request is one of the questions that stay.
func (p past) isAsked(request string) bool {
	return slices.ContainsFunc(p.asked, func(r session.Record) bool { return isOf(request, plainText(r.Body)) })
}

// isAnswered reports whether a request is the question of a turn that the cut
// goes through, and that ends with an answer in what stays.
func (p past) isAnswered(request string) bool {
	_, answered := p.open()
	return answered != "" && isOf(request, answered)
}

// isOf reports whether a request is what text asks for.
func isOf(request, text string) bool {
	return says(text, request) || strings.Contains(text, strings.TrimSuffix(request, " …"))
}

// open returns what the user asked for in the past and got no answer to, and
// the question of the past that is answered in what stays, if there is one.
func (p past) open() (asked []string, answered string) {
	asked = open(p.all)
	last := len(asked) - 1
	if last < 0 || len(open(p.all[lastTurn(p.all):])) == 0 {
		return asked, ""
	}
	for _, r := range p.kept {
		m, ok := r.Body.(session.Message)
		switch {
		case ok && session.IsTurn(m):
			return asked, ""
		case ok && answers(m):
			return asked[:last], asked[last]
		}
	}
	return asked, ""
}

// lastTurn is the index of what the user said last in recs, or 0.
func lastTurn(recs []session.Record) int {
	for i := len(recs) - 1; i > 0; i-- {
		if session.IsTurn(recs[i].Body) {
			return i
		}
	}
	return 0
}

// missing returns the open requests of the past that a summary does not have,
// newest first where there is not room for all.
func (p past) missing(summary string, limit int, count func(string) int) []string {
	var out []string
	asked, _ := p.open()
	for i := len(asked) - 1; i >= 0 && limit > 0; i-- {
		a := asked[i]
		if strings.Contains(summary, a) {
			continue
		}
		for n := len(a); n > 100 && count(a) > limit; n /= 2 {
			a = text.Clip(a, n)
		}
		if k := count(a); k <= limit || len(out) == 0 {
			limit -= k
			out = append([]string{a}, out...)
		}
	}
	return out
}

// referred returns the identifiers that the kept part shares with the past
// and that s does not tell, each with the line it stood in, as many as fit.
func (p past) referred(s Summary, limit int, count func(string) int) []string {
	if len(p.kept) == 0 {
		return nil
	}
	var out []string
	for _, id := range p.lost(s.String(), p.kept) {
		line := id
		if l := p.lineOf(id); l != "" && l != id {
			line = id + ": " + l
		}
		k := count(line) + 2
		if k > limit {
			line, k = id, count(id)+2
		}
		if k > limit {
			break
		}
		limit -= k
		out = append(out, line)
	}
	return out
}

// lost returns the identifiers of the past that text does not tell; if of is
// not nil, only those that it refers to.
func (p past) lost(text string, of []session.Record) []string {
	var refer map[string]bool
	if of != nil {
		refer = map[string]bool{}
		for _, r := range of {
			for _, id := range identifiers(referText(r.Body)) {
				refer[id] = true
			}
		}
	}
	var out []string
	seen := map[string]bool{}
	for _, r := range p.all {
		for _, id := range identifiers(referText(r.Body)) {
			if !seen[id] && (refer == nil || refer[id]) && !strings.Contains(text, id) {
				out = append(out, id)
			}
			seen[id] = true
		}
	}
	return out
}

// maxRefer is how much of a message is read for what it refers to.
const maxRefer = 256 << 10

// referText is what a record says and calls; of a tool's long output only the
// beginning refers to anything.
func referText(b session.Body) string {
	t := middle(plainText(b), maxRefer)
	if m, ok := b.(session.Message); ok {
		if len(m.Results()) > 0 {
			t = middle(t, maxResult)
		}
		for _, call := range m.Calls() {
			t += "\n" + middle(string(call.Args), maxArgs)
		}
	}
	return t
}

// lineOf returns the latest line of what was said that has id, shortened.
func (p past) lineOf(id string) string {
	for i := len(p.all) - 1; i >= 0; i-- {
		m, ok := p.all[i].Body.(session.Message)
		if !ok || len(m.Results()) > 0 {
			continue
		}
		t := m.Text()
		at := strings.Index(t, id)
		if at < 0 {
			continue
		}
		from := strings.LastIndexByte(t[:at], '\n') + 1
		line := t[from:]
		if to := strings.IndexByte(line, '\n'); to >= 0 {
			line = line[:to]
		}
		if len(line) > 160 {
			from := max(0, strings.Index(line, id)-80)
			for from > 0 && line[from]&0xc0 == 0x80 {
				from--
			}
			line = line[from:]
		}
		return text.Clip(line, 160)
	}
	return ""
}

// fitPins keeps pins word for word as long as there is room, the newest first;
// those beyond it are cut, and say so.
func (c Cut) fitPins(limit int) []pin {
	var out []pin
	for i := len(c.pins) - 1; i >= 0; i-- {
		p := c.pins[i]
		k := c.count(p.Text) + overhead
		if k > limit {
			p.Text = text.Clip(p.Text, max(80, 2*limit))
			k = c.count(p.Text) + overhead
		}
		limit = max(0, limit-k)
		out = append([]pin{p}, out...)
	}
	return out
}
