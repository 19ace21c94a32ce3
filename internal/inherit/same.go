package inherit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// sameness is how a log fits its source.
type sameness struct {
	prefix bool // the log is the beginning of the source
	all    bool // the source is the beginning of the log
	last   session.Seq
	moved  bool           // the log ends where its end was moved to, and the source does not say so
	open   *growing       // an answer that has gone on since, or nil: it comes first
	rec    session.Record // the first that the log lacks, if more
	more   bool
}

// same compares a log with its source, record by record. Headers differ, and
// titles, labels and redactions may have been added here. An answer that was imported before
// it was complete is in the log in parts.
func (im *importer) same(ctx context.Context, id session.ID, pull func() (session.Record, bool, error)) (sameness, error) {
	var s sameness
	r, ok, err := pull() // the header
	if err != nil {
		return s, err
	}
	r, ok, err = pull()
	for have, herr := range im.st.Read(ctx, id, 0) {
		var d *session.Damage
		if errors.As(herr, &d) {
			continue
		}
		if herr != nil {
			return s, herr
		}
		if err != nil {
			return s, err
		}
		s.last = have.Seq
		if have.Seq == 1 {
			continue
		}
		if s.open != nil && s.open.took(have) {
			if have.ID == s.open.rec.ID {
				s.open = nil
			}
			continue
		}
		if ok && (equal(have, r) || reread(have, r) || changed(have, r)) && (s.open == nil || have.Side || have.ID == "") {
			s.moved = s.moved && (have.Side || have.ID == "")
			r, ok, err = pull()
			continue
		}
		if ok && s.open == nil {
			if s.open = goesOn(have, r); s.open != nil {
				r, ok, err = pull()
				continue
			}
		}
		if u, ok := takenBack(have); ok {
			if s.open != nil {
				s.open.counted = s.open.counted.Add(u)
			}
			continue
		}
		switch have.Body.(type) {
		case session.Leaf:
			s.moved = true
			continue
		case session.Title, session.Label, session.Moved, session.Marked, session.Redaction:
			continue
		}
		if !ok && s.open == nil {
			s.all = true
		}
		return s, nil
	}
	s.prefix, s.all, s.rec, s.more = true, !ok && s.open == nil, r, ok
	return s, err
}

// changed reports whether r says the same as have, although the row that it
// carries has changed since: a program that keeps rows updates them.
func changed(have, r session.Record) bool {
	return have.ID != "" && have.ID == r.ID && r.Raw != nil && alike(have, r)
}

func equal(a, b session.Record) bool {
	if len(a.Raw) > 0 && len(b.Raw) > 0 {
		return string(a.Raw) == string(b.Raw) || sameAside(a, b)
	}
	return a.ID == b.ID && a.Parent == b.Parent || sameAside(a, b)
}

// sameAside reports whether a and b were made of the same line, which has no place
// in the conversation. Where it stands may differ: the answer that it comes after
// has gone on since.
func sameAside(a, b session.Record) bool {
	if a.Side && b.Side && a.ID != "" && a.ID == b.ID && reflect.DeepEqual(a.Body, b.Body) {
		return true
	}
	line, ok := source.AsideLine(a)
	if !ok {
		return false
	}
	other, ok := source.AsideLine(b)
	return ok && bytes.Equal(line, other)
}

// reread reports whether r is another reading of the lines that have was made of
// by an older version, in the same place: have stays as it is.
func reread(have, r session.Record) bool {
	if have.ID != r.ID || have.Parent != r.Parent {
		if !beside(have) || !beside(r) {
			return false
		}
	}
	return slices.EqualFunc(linesOf(have), linesOf(r), func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// beside reports whether nothing continues r.
func beside(r session.Record) bool {
	_, unknown := r.Body.(session.Unknown)
	return r.Side || unknown
}

// linesOf returns the lines that r was made of, or its own.
func linesOf(r session.Record) []json.RawMessage {
	if lines, ok := carried(r); ok {
		return lines
	}
	return []json.RawMessage{r.Raw}
}

// growing is an answer on several lines, the first of which a log has as a record
// for itself. The complete answer becomes another record in the same place,
// which carries only the lines that the log lacks.
type growing struct {
	rec   session.Record
	lines []json.RawMessage // of the whole
	has   int               // how many of them the log has
	// counted is the usage of the parts, which the log has added up.
	counted llm.Usage
}

// goesOn returns the answer that begins with have, or nil.
func goesOn(have, r session.Record) *growing {
	if have.ID == r.ID || have.Parent != r.Parent || !isAnswer(have) || !isAnswer(r) {
		return nil
	}
	g := &growing{rec: r}
	var ok bool
	if g.lines, ok = carried(r); !ok || !g.took(have) {
		return nil
	}
	return g
}

func isAnswer(r session.Record) bool {
	m, ok := r.Body.(session.Message)
	return ok && m.Role == llm.Assistant
}

// took reports whether have is the next part of g.
func (g *growing) took(have session.Record) bool {
	if have.Parent != g.rec.Parent || !isAnswer(have) {
		return false
	}
	part, ok := carried(have)
	if !ok || len(part) > len(g.lines)-g.has || !reflect.DeepEqual(part, g.lines[g.has:][:len(part):len(part)]) {
		return false
	}
	g.has += len(part)
	g.counted = g.counted.Add(have.Body.(session.Message).Usage)
	return true
}

// takes begins the ids of records that take back what parts of an answer have
// counted.
const takes = "goclaw.usage."

// takenBack returns the usage in a record that takes some back.
func takenBack(r session.Record) (llm.Usage, bool) {
	u, ok := r.Body.(session.Usage)
	return u.Usage, ok && strings.HasPrefix(r.ID, takes)
}

// takeBack takes back the usage of the parts: the whole answer counts its own. ok
// is false if they have counted nothing.
func (g *growing) takeBack() (r session.Record, ok bool) {
	m, u := g.rec.Body.(session.Message), g.counted
	back := llm.Usage{Input: -u.Input, Output: -u.Output, CacheRead: -u.CacheRead, CacheWrite: -u.CacheWrite}
	return session.Record{ID: takes + g.rec.ID, Parent: g.rec.ID, Side: true, Time: g.rec.Time, Body: session.Usage{Kind: "parts", Provider: m.Provider, Model: m.Model, Usage: back}}, back != (llm.Usage{})
}

// rest is the whole answer, with the lines that the log lacks.
func (g *growing) rest() session.Record {
	name, line := carrier(g.rec.Raw)
	at := len(g.rec.Raw) - len(line) - 1 // it is the last field
	if name == "" || at < 0 || !bytes.Equal(g.rec.Raw[at:len(g.rec.Raw)-1], line) {
		return g.rec
	}
	rest := append([]byte("["), bytes.Join(asBytes(g.lines[g.has:]), []byte(","))...)
	own := append(bytes.Clone(g.rec.Raw[:at]), append(rest, ']', '}')...)
	recs, err := codec.Native.Decode(own)
	if err != nil || len(recs) != 1 {
		return g.rec
	}
	return recs[0]
}

func asBytes(lines []json.RawMessage) [][]byte {
	out := make([][]byte, len(lines))
	for i, l := range lines {
		out[i] = l
	}
	return out
}

// carriers are the fields that hold the lines that a record was made of: the
// programs that write one answer on several lines.
var carriers = func() (names []string) {
	for _, src := range newSources(nil) {
		if _, ok := src.(source.Joiner); ok {
			names = append(names, src.Program())
		}
	}
	return names
}()

// carrier returns the field of a native line that holds the lines that it was
// made of.
func carrier(raw []byte) (name string, value json.RawMessage) {
	if !slices.ContainsFunc(carriers, func(name string) bool { return bytes.Contains(raw, []byte(`"`+name+`":`)) }) {
		return "", nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return "", nil
	}
	for _, name := range carriers {
		if v, ok := fields[name]; ok {
			return name, v
		}
	}
	return "", nil
}

// carried returns the lines that r was made of.
func carried(r session.Record) ([]json.RawMessage, bool) {
	name, value := carrier(r.Raw)
	if name == "" {
		return nil, false
	}
	if value[0] != '[' {
		return []json.RawMessage{value}, true
	}
	lines := []json.RawMessage{}
	return lines, json.Unmarshal(value, &lines) == nil
}
