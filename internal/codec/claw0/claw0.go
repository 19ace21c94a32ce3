// Package claw0 reads and writes the lines of claw0, in its two forms.
package claw0

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"goclaw/internal/codec/native"
	"goclaw/internal/rawjson"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Encode returns the lines of r in claw0's form: a record that claw0 has a
// line for is that line, with the native line in the field "goclaw", and any
// other record is its native line, which claw0 skips. A record may take several
// lines; those after the first carry "goclaw":false and say nothing of their
// own.
func Encode(r session.Record, old bool) ([]byte, error) {
	line, err := native.Encode(r)
	if err != nil || r.Side {
		return line, err
	}
	var out []byte
	for i, v := range views(r, old) {
		w := rawjson.Writer{B: make([]byte, 0, 2*len(line)+200)}
		w.Object("", func() {
			w.Text("type", v.typ)
			v.fields(&w)
			if v.typ == "session" {
				stamp(&w, "created", r.Time, old)
			} else {
				stamp(&w, "ts", r.Time, old)
			}
			switch {
			case i > 0:
				w.Bool("goclaw", false)
			case len(native.Trim(line)) == len(line):
				w.Raw("goclaw", string(line))
			default: // the space around the value must come back as well
				w.Text("goclaw", string(line))
			}
		})
		if w.Err != nil || len(w.B) > storekit.MaxRecord {
			return line, nil
		}
		if i == 0 {
			out = w.B
		} else {
			out = append(append(out, '\n'), w.B...)
		}
	}
	if out == nil {
		return line, nil
	}
	return out, nil
}

// view is a line that claw0 sees of a record.
type view struct {
	typ    string
	fields func(*rawjson.Writer)
}

// views returns the lines that claw0 sees of r: none where claw0 could not send
// it to a model.
func views(r session.Record, old bool) (out []view) {
	line := func(typ string, fields func(*rawjson.Writer)) {
		out = append(out, view{typ, fields})
	}
	text := func(typ, s string) {
		if s != "" {
			line(typ, func(w *rawjson.Writer) { w.Text("content", s) })
		}
	}
	switch b := r.Body.(type) {
	case session.Header:
		line("session", func(w *rawjson.Writer) {
			w.Text("id", string(b.ID))
			w.Text("key", string(b.Key))
		})
	case session.CustomMessage:
		text("user", llm.Message{Blocks: b.Blocks}.Text())
	case session.Message:
		switch {
		case b.Excluded || b.Stop == llm.StopError || b.Stop == llm.StopAborted:
		case b.Role == llm.User:
			field := "content"
			if old {
				field = "output"
			}
			for _, res := range b.Results() {
				line("tool_result", func(w *rawjson.Writer) {
					w.Text("tool_use_id", res.CallID)
					w.Text(field, res.Text())
				})
			}
			text("user", b.Text())
		case b.Role == llm.Assistant && old:
			for _, bl := range b.Blocks {
				switch bl := bl.(type) {
				case llm.Text:
					text("assistant", bl.Text)
				case llm.ToolCall:
					line("tool_use", func(w *rawjson.Writer) {
						w.Text("name", bl.Name)
						w.Text("tool_use_id", bl.ID)
						w.JSON("input", native.Args(bl))
					})
				}
			}
		case b.Role == llm.Assistant && (b.Text() != "" || len(b.Calls()) > 0):
			line("assistant", func(w *rawjson.Writer) { w.Array("content", func() { blocks(w, b.Blocks) }) })
		}
	}
	return out
}

// blocks writes an answer in the new form.
func blocks(w *rawjson.Writer, list []llm.Block) {
	for _, bl := range list {
		switch bl := bl.(type) {
		case llm.Text:
			if bl.Text == "" {
				continue
			}
			w.Object("", func() {
				w.Text("type", "text")
				w.Text("text", bl.Text)
			})
		case llm.ToolCall:
			w.Object("", func() {
				w.Text("type", "tool_use")
				w.Text("id", bl.ID)
				w.Text("name", bl.Name)
				w.JSON("input", native.Args(bl))
			})
		}
	}
}

// stamp writes a time as claw0 does: ISO with a zone in the old form, seconds
// in the new one.
func stamp(w *rawjson.Writer, k string, t time.Time, old bool) {
	w.Key(k)
	if old {
		w.B = t.UTC().AppendFormat(w.B, `"2006-01-02T15:04:05.000000+00:00"`)
		return
	}
	w.B = strconv.AppendFloat(w.B, float64(t.UnixMilli())/1000, 'f', 3, 64)
}

// Stream reads a file of either form: they differ in what a line looks
// like, not in its meaning.
//
// In the old form the results of a turn come before its user line and its
// calls after it, one line for each block; the model's answers are put
// together again, and results follow their calls. In the new form a call
// is part of its answer and occurs again on a separate line, which is
// skipped. A result without its call, which no model would accept, is kept as
// custom data.
//
// Every record keeps the lines that it was made of, in the field "claw0" of
// its native line. Its id is made of the first one and its number.
type Stream struct {
	d     native.Decoder
	prev  string // the record that the next one continues
	whole bool   // the last line was exactly one record

	midway bool // the records before are not known: "" in prev does not mean a root

	answer  *draft            // the answer of the model, as far as it was read
	open    map[string]string // calls without a result, and their tools
	results []*draft          // read before their calls
	turn    []*draft          // those of the current turn
	doubled []doubledUse      // lines to go with the results of their calls
}

// draft is a record in the making.
type draft struct {
	id    string
	lines [][]byte
	rec   session.Record
	call  string // of a result: the call that it answers
}

type doubledUse struct {
	call string
	n    int
	line []byte
}

// NewStream returns a stream that continues after the record leaf. midway: what
// comes before is not known, so that no leaf does not mean a root.
func NewStream(leaf string, midway bool) *Stream {
	return &Stream{open: map[string]string{}, prev: leaf, midway: midway}
}

// WholeLine reports whether the latest line was exactly one record.
func (s *Stream) WholeLine() bool { return s.whole }

// Line implements codec.Stream.
func (s *Stream) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	d := &s.d
	s.whole = false
	if err := d.Line(line, false); err != nil {
		return out, err
	}
	if d.Kind(0) == rawjson.Object {
		g := d.Get(0, "goclaw")
		switch {
		case d.Kind(g) == rawjson.Bool:
			return out, nil
		case d.Kind(g) == rawjson.Object:
			return s.ours(bytes.Clone(d.Raw(g)), out)
		case d.Kind(g) == rawjson.String:
			return s.ours([]byte(d.String(g)), out)
		}
		switch typ := d.String(d.Get(0, "type")); typ {
		case "user":
			out = s.endTurn(out)
			s.turn, s.results = s.results, nil
			return s.emit(out, s.draft(n, line, session.Message{Message: llm.Message{Role: llm.User, Blocks: s.blocks(d.Get(0, "content"))}})), nil
		case "assistant":
			return s.assistant(n, line, out), nil
		case "tool_use":
			return s.toolUse(n, line, out), nil
		case "tool_result":
			return s.toolResult(n, line, out), nil
		case "session":
			if d.Kind(d.Get(0, "created")) != rawjson.Null {
				out = s.endTurn(out)
				return s.emit(out, s.draft(n, line, session.Header{
					Version: session.Version, ID: session.ID(d.String(d.Get(0, "id"))), Key: session.Key(d.String(d.Get(0, "key"))),
				})), nil
			}
		}
	}
	return s.ours(line, out)
}

// ours reads a native line.
func (s *Stream) ours(line []byte, out []session.Record) ([]session.Record, error) {
	if bytes.IndexByte(line, '\n') >= 0 {
		return out, fmt.Errorf("codec: a line end in the middle of its native line")
	}
	r, err := s.d.Record(line)
	if err != nil {
		return out, err
	}
	// Whatever is held back comes first, as it does at the end of the file:
	// a record that is appended keeps the number that it was given.
	out = s.End(out)
	s.follow(r)
	s.whole = true
	return append(out, r), nil
}

// follow notes which record the next one continues, and which calls are open.
func (s *Stream) follow(r session.Record) {
	switch b := r.Body.(type) {
	case session.Header, session.Unknown:
		return
	case session.Leaf:
		s.prev = b.Target
		return
	case session.Message:
		if r.Side {
			return
		}
		for _, c := range b.Calls() {
			s.open[c.ID] = c.Name
		}
		for _, res := range b.Results() {
			delete(s.open, res.CallID)
		}
	}
	if r.ID != "" && !r.Side {
		s.prev = r.ID
	}
}

func (s *Stream) draft(n int, line []byte, b session.Body) *draft {
	t := s.d.Get(0, "ts")
	if _, ok := b.(session.Header); ok {
		t = s.d.Get(0, "created")
	}
	at := s.stampOf(t)
	if m, ok := b.(session.Message); ok {
		m.At = at
		b = m
	}
	return &draft{id: native.LineID(n, line), lines: [][]byte{native.Trim(line)}, rec: session.Record{Time: at, Body: b}}
}

// stampOf reads an ISO time or seconds, down to the millisecond.
func (s *Stream) stampOf(n int) time.Time {
	if s.d.Kind(n) == rawjson.Number {
		f, err := strconv.ParseFloat(string(s.d.Raw(n)), 64)
		if err != nil || f < -62135596800 || f >= 253402300800 { // years 1 to 9999
			return time.Time{}
		}
		return time.UnixMilli(int64(math.Floor(f * 1000))).UTC()
	}
	return s.d.Time(n).Truncate(time.Millisecond)
}

// blocks reads content: a string, or blocks as Anthropic names them.
func (s *Stream) blocks(n int) []llm.Block {
	d := &s.d
	if d.Kind(n) != rawjson.Array {
		return d.Content(n)
	}
	var out []llm.Block
	for v := range d.Values(n) {
		get := func(key string) int { return d.Get(v, key) }
		switch {
		case d.Is(get("type"), "tool_use"):
			out = append(out, s.call(get("id"), get("name"), get("input")))
		case d.Is(get("type"), "tool_result"):
			out = append(out, llm.ToolResult{CallID: d.String(get("tool_use_id")), Blocks: s.blocks(get("content")), IsError: d.True(get("is_error"))})
		case d.Is(get("type"), "thinking"):
			out = append(out, llm.Thinking{Text: d.String(get("thinking")), Signature: d.String(get("signature"))})
		case d.Is(get("type"), "redacted_thinking"):
			out = append(out, llm.Thinking{Signature: d.String(get("data")), Redacted: true})
		case d.Is(get("type"), "image") && d.Kind(d.Get(get("source"), "data")) == rawjson.String:
			out = append(out, llm.Image{MIME: d.String(d.Get(get("source"), "media_type")), Data: d.String(d.Get(get("source"), "data"))})
		default:
			out = append(out, d.Block(v))
		}
	}
	return out
}

func (s *Stream) call(id, name, input int) llm.ToolCall {
	c := llm.ToolCall{ID: s.d.String(id), Name: s.d.String(name), Args: []byte("{}")}
	if s.d.Kind(input) == rawjson.Object {
		c.Args = s.d.Raw(input)
	}
	return c
}

func (s *Stream) assistant(n int, line []byte, out []session.Record) []session.Record {
	content := s.d.Get(0, "content")
	m := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: s.blocks(content)}}
	whole := s.d.Kind(content) == rawjson.Array
	if s.answer != nil && !whole && len(answerOf(s.answer).Calls()) == 0 {
		s.extend(line, m.Blocks...)
		return out
	}
	out = s.endAnswer(out)
	s.answer = s.draft(n, line, m)
	if whole {
		out = s.endAnswer(out)
	}
	return out
}

func (s *Stream) toolUse(n int, line []byte, out []session.Record) []session.Record {
	d := &s.d
	call := s.call(d.Get(0, "tool_use_id"), d.Get(0, "name"), d.Get(0, "input"))
	if _, ok := s.open[call.ID]; ok && s.answer == nil {
		s.doubled = append(s.doubled, doubledUse{call.ID, n, line})
		return out
	}
	if s.answer != nil {
		s.extend(line, call)
		return out
	}
	s.answer = s.draft(n, line, session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: []llm.Block{call}}})
	return out
}

func (s *Stream) toolResult(n int, line []byte, out []session.Record) []session.Record {
	d := &s.d
	content := d.Get(0, "content")
	if content < 0 {
		content = d.Get(0, "output")
	}
	res := llm.ToolResult{CallID: d.String(d.Get(0, "tool_use_id")), Blocks: s.blocks(content), IsError: d.True(d.Get(0, "is_error"))}
	r := s.draft(n, line, session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{res}}})
	r.call = res.CallID
	// A result ends the answer, whether it is for one of its calls or for
	// one of the turn to come.
	out = s.endAnswer(out)
	if _, ok := s.open[res.CallID]; ok {
		return s.emitResult(out, r)
	}
	s.results = append(s.results, r)
	return out
}

func answerOf(a *draft) session.Message { return a.rec.Body.(session.Message) }

func (s *Stream) extend(line []byte, blocks ...llm.Block) {
	m := answerOf(s.answer)
	m.Blocks = append(m.Blocks, blocks...)
	s.answer.rec.Body = m
	s.answer.lines = append(s.answer.lines, native.Trim(line))
}

// endAnswer emits the answer, and the results that were there before it.
func (s *Stream) endAnswer(out []session.Record) []session.Record {
	if s.answer == nil {
		return out
	}
	a := s.answer
	s.answer = nil
	m := answerOf(a)
	m.Stop = llm.StopEnd
	if len(m.Calls()) > 0 {
		m.Stop = llm.StopTool
	}
	a.rec.Body = m
	clear(s.open) // calls of earlier answers stay without a result
	out = s.emit(out, a)
	for _, c := range m.Calls() {
		for _, list := range []*[]*draft{&s.turn, &s.results} {
			for i, r := range *list {
				if r != nil && r.call == c.ID {
					out = s.emitResult(out, r)
					(*list)[i] = nil
					break
				}
			}
		}
	}
	return out
}

// emitResult emits a result whose call is open.
func (s *Stream) emitResult(out []session.Record, r *draft) []session.Record {
	m := answerOf(r)
	res := m.Blocks[0].(llm.ToolResult)
	res.Name = s.open[r.call]
	m.Blocks = []llm.Block{res}
	r.rec.Body = m
	for i, u := range s.doubled {
		if u.call == r.call {
			r.lines = append([][]byte{native.Trim(u.line)}, r.lines...)
			s.doubled = append(s.doubled[:i], s.doubled[i+1:]...)
			break
		}
	}
	return s.emit(out, r)
}

// endTurn emits what is held back: the answer, and lines that belong nowhere.
func (s *Stream) endTurn(out []session.Record) []session.Record {
	out = s.endAnswer(out)
	for _, r := range s.turn {
		out = s.stray(out, r)
	}
	s.turn = nil
	for _, u := range s.doubled {
		out = s.stray(out, &draft{id: native.LineID(u.n, u.line), lines: [][]byte{native.Trim(u.line)}})
	}
	s.doubled = nil
	clear(s.open)
	return out
}

// stray emits a line that belongs nowhere.
func (s *Stream) stray(out []session.Record, r *draft) []session.Record {
	if r == nil {
		return out
	}
	r.rec.Body = session.Custom{Type: "claw0", Data: r.lines[0]}
	return s.emit(out, r)
}

// End implements codec.Stream.
func (s *Stream) End(out []session.Record) []session.Record {
	out = s.endTurn(out)
	for _, r := range s.results {
		out = s.stray(out, r)
	}
	s.results = nil
	return out
}

// emit appends the record of a draft, as it is read from its native line.
func (s *Stream) emit(out []session.Record, a *draft) []session.Record {
	r := a.rec
	if _, header := r.Body.(session.Header); !header {
		r.ID, r.Parent = a.id, s.prev
		if s.midway && s.prev == "" {
			r.Link = session.Absent
		}
	}
	// Without a checksum, so that a file gives the lines that it gave to older
	// versions.
	line, err := native.Bare(r)
	if err != nil {
		// It was read from JSON, so only its size can be wrong. Its bytes are kept.
		return append(out, session.Record{Link: session.Absent, Time: r.Time, Body: session.Unknown{}, Raw: a.lines[0]})
	}
	if _, stray := r.Body.(session.Custom); !stray {
		line = withOrigin(line, a.lines)
	}
	var d native.Decoder
	if r, err = d.Record(line); err != nil {
		panic("codec: wrote a line that it cannot read: " + err.Error())
	}
	s.follow(r)
	return append(out, r)
}

// withOrigin adds the lines that a native line was made of, if there is room.
func withOrigin(line []byte, from [][]byte) []byte {
	size := len(line) + len(`,"claw0":[]`)
	for _, l := range from {
		size += len(l) + 1
	}
	if size > storekit.MaxRecord {
		return line
	}
	b := append(make([]byte, 0, size), line[:len(line)-1]...)
	b = append(b, `,"claw0":[`...)
	b = append(b, bytes.Join(from, []byte{','})...)
	return append(b, `]}`...)
}
