package codec

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strconv"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// Claw0 and Claw0Old are the two forms of claw0, as they are written: a
// record that claw0 has a line for is that line, with the native line in the
// field "goclaw", and any other record is its native line, which claw0 reads
// over. A record may take several lines; those behind the first carry
// "goclaw":false and say nothing of their own.
//
// Decode gives back the very record, Raw being the native line. A line that
// claw0 itself wrote is read as well as one line can be: use a Scanner for
// files that it wrote, where the lines of a turn belong together.
var (
	Claw0    Codec = claw0{}
	Claw0Old Codec = claw0{old: true}
)

type claw0 struct{ old bool }

func (claw0) Decode(line []byte) ([]session.Record, error) {
	if len(line) > session.MaxRecord {
		return nil, fmt.Errorf("codec: a line of %d bytes, the limit is %d: %w", len(line), session.MaxRecord, session.ErrTooLarge)
	}
	if len(trim(line)) == 0 {
		return nil, nil
	}
	s := newClaw0Stream()
	recs, err := s.Line(1, bytes.Clone(line), nil)
	if err != nil {
		return nil, err
	}
	return s.End(recs), nil
}

func (c claw0) Encode(r session.Record) ([]byte, error) {
	line, err := encodeNative(r)
	if err != nil {
		return nil, err
	}
	var views []func(*writer)
	if !r.Side {
		views = c.views(r)
	}
	if len(views) == 0 {
		return line, nil
	}
	w := &writer{b: make([]byte, 0, 2*len(line)+200)}
	for i, view := range views {
		if i > 0 {
			w.b = append(w.b, '\n')
		}
		begin := len(w.b)
		w.b = append(w.b, '{')
		view(w)
		w.key("goclaw")
		switch {
		case i > 0:
			w.b = append(w.b, "false"...)
		case len(trim(line)) == len(line):
			w.b = append(w.b, line...)
		default: // what stands around the value must come back as well
			w.b = appendString(w.b, string(line))
		}
		w.b = append(w.b, '}')
		if len(w.b)-begin > session.MaxRecord {
			return line, nil
		}
	}
	if w.err != nil {
		return line, nil
	}
	return w.b, nil
}

// views returns what claw0 shall see of r, a line each: nothing where claw0
// could not send it to a model.
func (c claw0) views(r session.Record) []func(*writer) {
	var out []func(*writer)
	var at time.Time
	line := func(typ string, fields func(*writer)) {
		out = append(out, func(w *writer) {
			w.text("type", typ)
			fields(w)
			w.stamp("ts", at, c.old)
		})
	}
	user := func(blocks []llm.Block) {
		text := llm.Message{Blocks: blocks}.Text()
		if text != "" {
			line("user", func(w *writer) { w.text("content", text) })
		}
	}
	switch b := r.Body.(type) {
	case session.Header:
		out = append(out, func(w *writer) {
			w.text("type", "session")
			w.text("id", string(b.ID))
			w.text("key", string(b.Key))
			w.stamp("created", r.Time, c.old)
		})
	case session.CustomMessage:
		at = r.Time
		user(b.Blocks)
	case session.Message:
		at = r.Time
		if b.Excluded || b.Stop == llm.StopError || b.Stop == llm.StopAborted {
			return nil
		}
		switch b.Role {
		case llm.User:
			for _, res := range b.Results() {
				line("tool_result", func(w *writer) {
					w.text("tool_use_id", res.CallID)
					if c.old {
						w.text("output", res.Text())
					} else {
						w.text("content", res.Text())
					}
				})
			}
			user(b.Blocks)
		case llm.Assistant:
			if c.old {
				for _, bl := range b.Blocks {
					switch bl := bl.(type) {
					case llm.Text:
						if bl.Text != "" {
							line("assistant", func(w *writer) { w.text("content", bl.Text) })
						}
					case llm.ToolCall:
						line("tool_use", func(w *writer) {
							w.text("name", bl.Name)
							w.text("tool_use_id", bl.ID)
							w.input(bl)
						})
					}
				}
				return out
			}
			if b.Text() == "" && len(b.Calls()) == 0 {
				return nil
			}
			line("assistant", func(w *writer) {
				w.key("content")
				w.open('[')
				for _, bl := range b.Blocks {
					switch bl := bl.(type) {
					case llm.Text:
						if bl.Text != "" {
							w.comma()
							w.open('{')
							w.text("type", "text")
							w.text("text", bl.Text)
							w.close('}')
						}
					case llm.ToolCall:
						w.comma()
						w.open('{')
						w.text("type", "tool_use")
						w.text("id", bl.ID)
						w.text("name", bl.Name)
						w.input(bl)
						w.close('}')
					}
				}
				w.close(']')
			})
		}
	}
	return out
}

func (w *writer) input(c llm.ToolCall) {
	if len(c.Args) == 0 {
		w.raw("input", "{}")
		return
	}
	w.json("input", c.Args)
}

// stamp writes a time as claw0 does: ISO with a zone in the old form, seconds
// in the new one.
func (w *writer) stamp(k string, t time.Time, old bool) {
	w.key(k)
	if old {
		w.b = append(w.b, '"')
		w.b = t.UTC().AppendFormat(w.b, "2006-01-02T15:04:05.000000+00:00")
		w.b = append(w.b, '"')
		return
	}
	w.b = strconv.AppendFloat(w.b, float64(t.UnixMilli())/1000, 'f', 3, 64)
}

// claw0Stream reads a file of either form: they differ in what a line looks
// like, not in what it can mean.
//
// In the old form the results of a turn stand before its user line and its
// calls behind it, one line for each block; the model's answers are put
// together again, and results follow their calls. In the new form a call
// stands in its answer and once more on a line of its own, which is passed
// over. A result without its call, which no model would accept, is kept as
// custom data.
//
// Every record keeps the lines that it was made of, in the field "claw0" of
// its native line. Its id is made of the first one and its number.
type claw0Stream struct {
	d    decoder
	prev string // the record that the next one continues
	own  bool   // the line before gave a record of ours

	midway bool // what comes before is not known: "" in prev is no root

	answer  *draft            // what the model says, as far as it is read
	open    map[string]string // calls without a result, and their tools
	results []*draft          // read before their calls
	turn    []*draft          // those of the turn that goes on
	doubled []doubledUse      // lines to go with the results of their calls
}

// draft is a record in the making.
type draft struct {
	id    string
	lines [][]byte
	rec   session.Record
	call  string // of a result: what it answers
}

type doubledUse struct {
	call string
	n    int
	line []byte
}

func newClaw0Stream() *claw0Stream { return &claw0Stream{open: map[string]string{}} }

// Line implements Stream.
func (s *claw0Stream) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	d := &s.d
	s.own = false
	if err := d.parse(trim(line)); err != nil {
		return out, fmt.Errorf("codec: not a JSON line: %w", err)
	}
	if d.nodes[0].kind == object {
		g := d.get(0, "goclaw")
		switch {
		case d.kindOf(g) == boolean:
			return out, nil
		case d.kindOf(g) == object:
			return s.ours(bytes.Clone(d.raw(g)), out)
		case d.kindOf(g) == str:
			return s.ours([]byte(d.string(g)), out)
		}
		switch typ := d.string(d.get(0, "type")); typ {
		case "user":
			out = s.endTurn(out)
			s.turn, s.results = s.results, nil
			return s.emit(out, s.draft(n, line, session.Message{Message: llm.Message{Role: llm.User, Blocks: s.blocks(d.get(0, "content"))}})), nil
		case "assistant":
			return s.assistant(n, line, out), nil
		case "tool_use":
			return s.toolUse(n, line, out), nil
		case "tool_result":
			return s.toolResult(n, line, out), nil
		case "session":
			if d.kindOf(d.get(0, "created")) != null {
				out = s.endTurn(out)
				return s.emit(out, s.draft(n, line, session.Header{
					Version: session.Version, ID: session.ID(d.string(d.get(0, "id"))), Key: session.Key(d.string(d.get(0, "key"))),
				})), nil
			}
		}
	}
	return s.ours(line, out)
}

// ours reads a native line.
func (s *claw0Stream) ours(line []byte, out []session.Record) ([]session.Record, error) {
	if bytes.IndexByte(line, '\n') >= 0 {
		return out, fmt.Errorf("codec: a line end in the middle of its native line")
	}
	r, err := s.d.record(line)
	if err != nil {
		return out, err
	}
	// Whatever is held back comes first, as it does at the end of the file:
	// a record that is appended keeps the number that it was given.
	out = s.End(out)
	s.follow(r)
	s.own = true
	return append(out, r), nil
}

// follow notes which record the next one continues, and which calls are open.
func (s *claw0Stream) follow(r session.Record) {
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

func (s *claw0Stream) draft(n int, line []byte, b session.Body) *draft {
	t := s.d.get(0, "ts")
	if _, ok := b.(session.Header); ok {
		t = s.d.get(0, "created")
	}
	at := s.stampOf(t)
	if m, ok := b.(session.Message); ok {
		m.At = at
		b = m
	}
	return &draft{id: LineID(n, line), lines: [][]byte{trim(line)}, rec: session.Record{Time: at, Body: b}}
}

// LineID makes an id for a record whose line has none: of the line and its
// number, so that it is the same whenever the file is read, and no other
// line's, wherever the record goes.
func LineID(n int, line []byte) string {
	return fmt.Sprintf("%08x%08x", n, crc32.ChecksumIEEE(trim(line)))
}

// stampOf reads an ISO time or seconds, down to the millisecond.
func (s *claw0Stream) stampOf(n int) time.Time {
	if s.d.kindOf(n) == number {
		f, err := strconv.ParseFloat(string(s.d.raw(n)), 64)
		if err != nil || f < -62135596800 || f >= 253402300800 { // years 1 to 9999
			return time.Time{}
		}
		return time.UnixMilli(int64(math.Floor(f * 1000))).UTC()
	}
	return s.d.time(n).Truncate(time.Millisecond)
}

// blocks reads content: a string, or blocks as Anthropic names them.
func (s *claw0Stream) blocks(n int) []llm.Block {
	d := &s.d
	if d.kindOf(n) != array {
		return d.content(n)
	}
	var out []llm.Block
	for v, end := n+1, int(d.nodes[n].next); v < end; v = int(d.nodes[v].next) {
		get := func(key string) int { return d.get(v, key) }
		switch {
		case d.is(get("type"), "tool_use"):
			out = append(out, s.call(get("id"), get("name"), get("input")))
		case d.is(get("type"), "tool_result"):
			out = append(out, llm.ToolResult{CallID: d.string(get("tool_use_id")), Blocks: s.blocks(get("content")), IsError: d.bool(get("is_error"))})
		case d.is(get("type"), "thinking"):
			out = append(out, llm.Thinking{Text: d.string(get("thinking")), Signature: d.string(get("signature"))})
		case d.is(get("type"), "redacted_thinking"):
			out = append(out, llm.Thinking{Signature: d.string(get("data")), Redacted: true})
		case d.is(get("type"), "image") && d.kindOf(d.get(get("source"), "data")) == str:
			out = append(out, llm.Image{MIME: d.string(d.get(get("source"), "media_type")), Data: d.string(d.get(get("source"), "data"))})
		default:
			out = append(out, d.block(v))
		}
	}
	return out
}

func (s *claw0Stream) call(id, name, input int) llm.ToolCall {
	c := llm.ToolCall{ID: s.d.string(id), Name: s.d.string(name), Args: []byte("{}")}
	if s.d.kindOf(input) == object {
		c.Args = s.d.raw(input)
	}
	return c
}

func (s *claw0Stream) assistant(n int, line []byte, out []session.Record) []session.Record {
	content := s.d.get(0, "content")
	m := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: s.blocks(content)}}
	whole := s.d.kindOf(content) == array
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

func (s *claw0Stream) toolUse(n int, line []byte, out []session.Record) []session.Record {
	d := &s.d
	call := s.call(d.get(0, "tool_use_id"), d.get(0, "name"), d.get(0, "input"))
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

func (s *claw0Stream) toolResult(n int, line []byte, out []session.Record) []session.Record {
	d := &s.d
	content := d.get(0, "content")
	if content < 0 {
		content = d.get(0, "output")
	}
	res := llm.ToolResult{CallID: d.string(d.get(0, "tool_use_id")), Blocks: s.blocks(content), IsError: d.bool(d.get(0, "is_error"))}
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

func (s *claw0Stream) extend(line []byte, blocks ...llm.Block) {
	m := answerOf(s.answer)
	m.Blocks = append(m.Blocks, blocks...)
	s.answer.rec.Body = m
	s.answer.lines = append(s.answer.lines, trim(line))
}

// endAnswer emits the answer, and the results that were there before it.
func (s *claw0Stream) endAnswer(out []session.Record) []session.Record {
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
	clear(s.open) // what an earlier answer left open stays so
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
func (s *claw0Stream) emitResult(out []session.Record, r *draft) []session.Record {
	m := answerOf(r)
	res := m.Blocks[0].(llm.ToolResult)
	res.Name = s.open[r.call]
	m.Blocks = []llm.Block{res}
	r.rec.Body = m
	for i, u := range s.doubled {
		if u.call == r.call {
			r.lines = append([][]byte{trim(u.line)}, r.lines...)
			s.doubled = append(s.doubled[:i], s.doubled[i+1:]...)
			break
		}
	}
	return s.emit(out, r)
}

// endTurn emits what is open, and what has found no place.
func (s *claw0Stream) endTurn(out []session.Record) []session.Record {
	out = s.endAnswer(out)
	for _, r := range s.turn {
		out = s.stray(out, r)
	}
	s.turn = nil
	for _, u := range s.doubled {
		out = s.stray(out, &draft{id: LineID(u.n, u.line), lines: [][]byte{trim(u.line)}})
	}
	s.doubled = nil
	clear(s.open)
	return out
}

// stray emits a line that belongs nowhere.
func (s *claw0Stream) stray(out []session.Record, r *draft) []session.Record {
	if r == nil {
		return out
	}
	r.rec.Body = session.Custom{Type: "claw0", Data: r.lines[0]}
	return s.emit(out, r)
}

// End implements Stream.
func (s *claw0Stream) End(out []session.Record) []session.Record {
	out = s.endTurn(out)
	for _, r := range s.results {
		out = s.stray(out, r)
	}
	s.results = nil
	return out
}

// emit appends the record of a draft, as it is read from its native line.
func (s *claw0Stream) emit(out []session.Record, a *draft) []session.Record {
	r := a.rec
	if _, header := r.Body.(session.Header); !header {
		r.ID, r.Parent = a.id, s.prev
		if s.midway && s.prev == "" {
			r.Link = session.Absent
		}
	}
	line, err := encodeNative(r)
	if err != nil {
		// It was read from JSON: only its size can be wrong. Its bytes stay.
		return append(out, session.Record{Link: session.Absent, Time: r.Time, Body: session.Unknown{}, Raw: a.lines[0]})
	}
	if _, stray := r.Body.(session.Custom); !stray {
		line = withOrigin(line, a.lines)
	}
	var d decoder
	if r, err = d.record(line); err != nil {
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
	if size > session.MaxRecord {
		return line
	}
	b := append(make([]byte, 0, size), line[:len(line)-1]...)
	b = append(b, `,"claw0":[`...)
	b = append(b, bytes.Join(from, []byte{','})...)
	return append(b, `]}`...)
}
