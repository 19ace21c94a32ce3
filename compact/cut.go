package compact

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/window"
)

// Details is what a Compaction says beside its summary. The files are those
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

// extracted is who made a summary that no model made.
const extracted = "extract"

// Extractor is the Summarizer where there is no model that could be asked: it
// makes extracts, which a model improves when one is there.
type Extractor struct{}

// Summarize implements Summarizer.
func (Extractor) Summarize(_ context.Context, j Job) (Summary, string, llm.Usage, error) {
	s := Extract(j.Prev, j.Past)
	if s.Text == "" {
		return s, "", llm.Usage{}, ErrNoSummary
	}
	return s, extracted, llm.Usage{}, nil
}

// Extracted opens a summary that was made without a model.
const Extracted = "(No model was there to write this summary: it is an extract of what was said.)"

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
		err := ErrNoSummary
		if sum != nil {
			s, d.By, spent, err = sum.Summarize(ctx, Job{Prev: c.prev, Past: c.past, Asked: c.asked, Focus: c.Focus, Limit: c.Limit})
		}
		if ctx.Err() != nil {
			return session.Compaction{}, ctx.Err()
		}
		if err != nil {
			s, from = c.extract()
			d.By = extracted
			d.Problem = oneLine(err.Error(), 300)
		}
		d.Extract = d.By == extracted
	}
	hint := s.Task
	if d.Extract {
		hint = ""
	}
	s = c.complete(s, hint)
	text := s.String()
	if d.Extract {
		text = Extracted + "\n\n" + text
	}
	n := c.weigh(text)
	if n >= c.Weight {
		return session.Compaction{}, &LargerError{Before: c.Before, After: c.then(n), Usage: spent}
	}
	d.Read, d.Modified = nonNil(s.Read), nonNil(s.Written)
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

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// extract is the fold without a model: the last checkpoint and what was said
// after it, or what was said.
func (c Cut) extract() (s Summary, from string) {
	if cp := c.last; cp != nil && cp.n > 0 {
		return Extract(Parse(cp.Summary), c.since), cp.id
	}
	return Extract(c.prev, c.past), c.From
}

func (c Cut) count(text string) int {
	return int(math.Ceil(float64(c.tok.Count(text)) * c.rate))
}

// weigh is what a summary comes to in the context.
func (c Cut) weigh(summary string) int { return c.count(window.SummaryText(summary)) + overhead }

// overhead is what a message or a pin costs beside its text, about.
const overhead = 16

// pinTokens is what the pins alone come to.
func (c Cut) pinTokens() int {
	n := 0
	for _, p := range c.pins {
		n += c.count(p.Text) + overhead
	}
	return n
}

// Shares of the limit, in percent: what verification may add, and what pins
// may take beside the limit.
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
	limit := min(c.Limit, max(leastText, c.Weight-c.weigh("")-c.pinTokens()))
	if c.Weight > 400 {
		limit = min(limit, c.Weight*2/3)
	}
	adds := limit * addShare / 100
	s.Pinned = nil
	s.fit(limit-adds, c.count)
	s.Requests = slices.DeleteFunc(s.Requests, func(r string) bool { return c.isAsked(r) || c.isAnswered(r) })
	s.Requests = append(s.Requests, c.missing(s.String(), adds/2)...)
	s.Identifiers = append(s.Identifiers, c.referred(s, adds)...)
	s.fit(limit, c.count)
	s.Pinned = c.fitPins(max(limit, c.Limit) * pinShare / 100)
	return s
}

// isAsked reports whether a request is one of the questions that stay.
func (c Cut) isAsked(request string) bool {
	return slices.ContainsFunc(c.asked, func(r session.Record) bool { return isOf(request, plainText(r.Body)) })
}

// isAnswered reports whether a request is the question of a turn that the cut
// goes through, and that ends with an answer in what stays.
func (c Cut) isAnswered(request string) bool {
	_, answered := c.open()
	return answered != "" && isOf(request, answered)
}

// isOf reports whether a request is what text asks for.
func isOf(request, text string) bool {
	return says(text, request) || strings.Contains(text, strings.TrimSuffix(request, " …"))
}

// open returns what the user asked for in the past and got no answer to, and
// the question of the past that is answered in what stays, if there is one.
func (c Cut) open() (asked []string, answered string) {
	asked = open(c.all)
	last := len(asked) - 1
	if last < 0 || len(open(c.all[lastTurn(c.all):])) == 0 {
		return asked, ""
	}
	for _, r := range c.kept {
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

// missing returns the open requests of the past that text does not tell,
// newest first where there is not room for all.
func (c Cut) missing(text string, limit int) []string {
	var out []string
	asked, _ := c.open()
	for i := len(asked) - 1; i >= 0 && limit > 0; i-- {
		a := asked[i]
		if strings.Contains(text, a) {
			continue
		}
		for n := len(a); n > 100 && c.count(a) > limit; n /= 2 {
			a = clip(a, n)
		}
		if k := c.count(a); k <= limit || len(out) == 0 {
			limit -= k
			out = append([]string{a}, out...)
		}
	}
	return out
}

// referred returns the identifiers that the kept part shares with the past
// and that s does not tell, each with the line it stood in, as many as fit.
func (c Cut) referred(s Summary, limit int) []string {
	if len(c.kept) == 0 {
		return nil
	}
	var out []string
	ids := c.lost(s.String(), c.kept)
	for _, id := range ids {
		line := id
		if l := c.lineOf(id); l != "" && l != id {
			line = id + ": " + l
		}
		k := c.count(line) + 2
		if k > limit {
			line, k = id, c.count(id)+2
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
func (c Cut) lost(text string, of []session.Record) []string {
	var refer map[string]bool
	if of != nil {
		refer = map[string]bool{}
		for _, r := range of {
			for _, id := range Identifiers(referText(r.Body)) {
				refer[id] = true
			}
		}
	}
	var out []string
	seen := map[string]bool{}
	for _, r := range c.all {
		for _, id := range Identifiers(referText(r.Body)) {
			if !seen[id] && (refer == nil || refer[id]) && !strings.Contains(text, id) {
				out = append(out, id)
			}
			seen[id] = true
		}
	}
	return out
}

// referText is what a record says and calls; of a tool's long output only the
// beginning refers to anything.
func referText(b session.Body) string {
	t := plainText(b)
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
func (c Cut) lineOf(id string) string {
	for i := len(c.all) - 1; i >= 0; i-- {
		m, ok := c.all[i].Body.(session.Message)
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
		return clip(line, 160)
	}
	return ""
}

// fitPins keeps pins word for word as long as there is room, the newest first;
// those beyond it are cut, and say so.
func (c Cut) fitPins(limit int) []Pinned {
	var out []Pinned
	for i := len(c.pins) - 1; i >= 0; i-- {
		p := c.pins[i]
		k := c.count(p.Text) + overhead
		if k > limit {
			p.Text = clip(p.Text, max(80, 2*limit))
			k = c.count(p.Text) + overhead
		}
		limit = max(0, limit-k)
		out = append([]Pinned{p}, out...)
	}
	return out
}
