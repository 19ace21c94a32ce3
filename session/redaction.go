package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"unicode/utf8"

	"goclaw/llm"
)

// Redaction takes secrets out of earlier records. Their lines stay as they are;
// whoever reads the log gets them redacted: Session.Apply and
// storekit.Redacted see to it.
//
// Targets say where the secrets are, never what they are. A place is one in the
// record as it was read when the redaction was made, after earlier ones.
type Redaction struct {
	Targets []Target `json:"targets,omitempty"`
}

func (Redaction) body() {}

// Target is a record, and what to take out of it.
type Target struct {
	ID    string `json:"id"`
	Spans []Span `json:"spans,omitempty"`
}

// Span is a piece of one text of a record: the bytes from Start up to End. Field
// names the text, as Record.Texts does.
type Span struct {
	Field string `json:"field"`
	Start int    `json:"start"`
	End   int    `json:"end"`
	Rule  string `json:"rule,omitempty"` // by which the secret was found
}

// Redacted is what a reader gets in place of a secret.
const Redacted = "[redacted]"

// RedactionPrefix begins the id of a redaction, so that stores find those of a
// log without reading it.
const RedactionPrefix = "redaction-"

// Applied returns b without the places in the targets for which done is true:
// nobody takes anything out of them again.
func (b Redaction) Applied(done func(id string) bool) Redaction {
	b.Targets = slices.Clone(b.Targets)
	for i, t := range b.Targets {
		if done(t.ID) {
			b.Targets[i].Spans = nil
		}
	}
	return b
}

// Open reports whether b has places that were not taken out yet.
func (b Redaction) Open() bool {
	return slices.ContainsFunc(b.Targets, func(t Target) bool { return len(t.Spans) > 0 })
}

// Apply returns r without what t takes out of it. A text that is not as t
// expects is taken out as a whole.
func (t Target) Apply(r Record) Record {
	if len(t.Spans) == 0 {
		return r
	}
	by := map[string][]Span{}
	for _, s := range t.Spans {
		by[s.Field] = append(by[s.Field], s)
	}
	out := r.Texts(func(field, text string) string {
		spans := by[field]
		delete(by, field)
		return cut(text, spans)
	})
	if len(by) > 0 { // a text that this version does not find
		out = r.Texts(func(string, string) string { return Redacted })
	}
	return out
}

// cut returns text with Redacted in place of spans.
func cut(text string, spans []Span) string {
	sort.Slice(spans, func(i, j int) bool { return spans[i].Start > spans[j].Start })
	for i, s := range spans {
		if s.Start < 0 || s.End < s.Start || s.End > len(text) || i > 0 && s.End > spans[i-1].Start {
			return Redacted
		}
		text = text[:s.Start] + Redacted + text[s.End:]
	}
	if !utf8.ValidString(text) {
		return Redacted
	}
	return text
}

// Texts calls f for every text of r that may hold a secret, and returns r with
// what f returned in its place. Images are left out. If a text changed, Raw is
// gone, except for a record of an unknown kind, which is its line.
func (r Record) Texts(f func(field, text string) string) Record {
	e := &editor{f: f}
	body := e.body(r)
	if !e.changed {
		return r
	}
	r.Body, r.Raw = body, e.line
	return r
}

// editor walks over the texts of a record.
type editor struct {
	f       func(field, text string) string
	changed bool
	line    json.RawMessage // the line of a record of an unknown kind
}

func (e *editor) text(field, s string) string {
	if s == "" {
		return s
	}
	out := e.f(field, s)
	if out != s {
		e.changed = true
	}
	return out
}

// json edits the text of a JSON value. If what is left is not JSON, nothing of
// it is left.
func (e *editor) json(field string, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	out := json.RawMessage(e.text(field, string(raw)))
	if !json.Valid(out) && json.Valid(raw) {
		return json.RawMessage(`{"redacted":true}`)
	}
	return out
}

func (e *editor) texts(field string, list []string) []string {
	out := slices.Clone(list)
	for i, s := range list {
		out[i] = e.text(fmt.Sprint(field, ".", i), s)
	}
	return out
}

func (e *editor) body(r Record) Body {
	switch b := r.Body.(type) {
	case Message:
		b.Blocks, b.Error, b.Details = e.blocks("blocks", b.Blocks), e.text("error", b.Error), e.json("details", b.Details)
		return b
	case CustomMessage:
		b.Blocks, b.Details = e.blocks("blocks", b.Blocks), e.json("details", b.Details)
		return b
	case Edit:
		b.Blocks = e.blocks("blocks", b.Blocks)
		return b
	case Shell:
		b.Command, b.Output = e.text("command", b.Command), e.text("output", b.Output)
		return b
	case Compaction:
		b.Summary, b.Details = e.text("summary", b.Summary), e.json("details", b.Details)
		return b
	case BranchSummary:
		b.Summary, b.Details = e.text("summary", b.Summary), e.json("details", b.Details)
		return b
	case Checkpoint:
		b.Summary = e.text("summary", b.Summary)
		b.Topics, b.Decisions, b.Questions = e.texts("topics", b.Topics), e.texts("decisions", b.Decisions), e.texts("questions", b.Questions)
		return b
	case Notice:
		b.Text = e.text("text", b.Text)
		return b
	case Custom:
		b.Data = e.json("data", b.Data)
		return b
	case Title:
		b.Title = e.text("title", b.Title)
		return b
	case Label:
		b.Label = e.text("label", b.Label)
		return b
	case Partial:
		b.Thinking, b.Text = e.text("thinking", b.Thinking), e.text("text", b.Text)
		return b
	case Refused:
		b.Why = e.text("why", b.Why)
		return b
	case Reset:
		b.Reason = e.text("reason", b.Reason)
		return b
	case Unknown:
		e.line = e.json("line", r.Raw)
		return b
	}
	return r.Body
}

func (e *editor) blocks(field string, blocks []llm.Block) []llm.Block {
	out := slices.Clone(blocks)
	for i, b := range blocks {
		at := fmt.Sprint(field, ".", i)
		switch b := b.(type) {
		case llm.Text:
			if s := e.text(at, b.Text); s != b.Text {
				out[i] = llm.Text{Text: s} // its signature is of the other text
			}
		case llm.Thinking:
			if s := e.text(at, b.Text); s != b.Text {
				out[i] = llm.Thinking{Text: s}
			}
		case llm.ToolCall:
			if s := e.json(at, b.Args); string(s) != string(b.Args) {
				b.Args, b.Signature = s, ""
				out[i] = b
			}
		case llm.ToolResult:
			b.Blocks = e.blocks(at, b.Blocks)
			out[i] = b
		case llm.Other:
			b.Raw = e.json(at, b.Raw)
			out[i] = b
		}
	}
	return out
}

// redact applies the redaction that was added last to the records that are
// loaded. It keeps no places: a fork copies the records as they are now.
func (s *Session) redact(b Redaction) {
	if !b.Open() {
		return
	}
	by := map[string]Target{}
	for _, t := range b.Targets {
		by[t.ID] = t
	}
	s.recs = slices.Clone(s.recs) // others may hold the slice
	for i, r := range s.recs {
		if t, ok := by[r.ID]; ok && r.ID != "" {
			s.recs[i] = t.Apply(r)
		}
	}
	last := &s.recs[len(s.recs)-1]
	last.Body, last.Raw = b.Applied(func(string) bool { return true }), nil
	s.Branch, s.open = nil, nil // settle walks it again
}
