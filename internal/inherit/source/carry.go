package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Carry returns r as it is read from its native line, with the line that it
// was made of in the field name. What is too long for that, or cannot be
// written, is kept as its own bytes and says nothing.
func Carry(r session.Record, name string, line []byte) session.Record {
	line = bytes.TrimSpace(line)
	verbatim := session.Record{Link: session.Absent, Time: r.Time, Body: session.Unknown{Type: name}, Raw: line}
	// Without a checksum, so that a file gives the lines that it gave to older
	// versions.
	own, err := native.Bare(r)
	if err != nil {
		return verbatim
	}
	if len(own)+len(name)+len(line)+8 <= storekit.MaxRecord {
		own = append(own[:len(own)-1:len(own)-1], ',', '"')
		own = append(append(append(own, name...), '"', ':'), line...)
		own = append(own, '}')
	}
	recs, err := codec.Native.Decode(own)
	if err != nil || len(recs) != 1 {
		return verbatim
	}
	return recs[0]
}

// Made returns r as it is read from its native line. Another record carries the
// line that it was made of.
func Made(r session.Record) session.Record {
	own, err := native.Bare(r)
	if err != nil {
		return r
	}
	recs, err := codec.Native.Decode(own)
	if err != nil || len(recs) != 1 {
		return r
	}
	return recs[0]
}

// Draft is an answer that is written on several lines, as far as it is read.
// Its id is that of its last line: when more of it comes, it is another record
// in the place of this one, and a log that has this one continues next to it.
type Draft struct {
	Rec   session.Record
	lines [][]byte
	after []Aside // what stood between its lines and has no place
	size  int     // of all of it
}

// Aside makes the record of a line that has no place in the conversation. It says
// what it comes after, so that a program that takes the last line of a file for
// the end of the conversation, as pi does, finds the conversation from there.
type Aside func(parent string) session.Record

// maxDraft is the size at which an answer is not waited for any longer.
const maxDraft = 4 << 20

// NewDraft begins an answer with its first line.
func NewDraft(r session.Record, line []byte) *Draft {
	return &Draft{Rec: r, lines: [][]byte{bytes.TrimSpace(line)}, size: len(line)}
}

// Aside takes in a line that has no place in the conversation. It stands
// after the answer whose lines are being put together, which end emits if that
// becomes too large. Without such an answer its record is emitted at once, after
// leaf.
func (d *Draft) Aside(out []session.Record, line []byte, record Aside, leaf string, end func([]session.Record) []session.Record) []session.Record {
	if d == nil {
		return append(out, record(leaf))
	}
	d.after = append(d.after, record)
	d.size += len(line)
	if d.Full() {
		return end(out)
	}
	return out
}

// Full reports whether the answer is too large to be waited for.
func (d *Draft) Full() bool { return d.size > maxDraft || len(d.after) > maxDraft>>10 }

// Add takes in the next line of the answer.
func (d *Draft) Add(id string, m session.Message, line []byte) {
	have := d.Rec.Body.(session.Message)
	have.Blocks = append(have.Blocks, m.Blocks...)
	have.Stop = m.Stop
	if m.Usage != (llm.Usage{}) {
		have.Usage = m.Usage
	}
	d.Rec.ID, d.Rec.Body = id, have
	d.lines = append(d.lines, bytes.TrimSpace(line))
	d.size += len(line)
}

// Emit appends the answer, and what stood between its lines.
func (d *Draft) Emit(name string, out []session.Record) []session.Record {
	if d == nil {
		return out
	}
	line := d.lines[0]
	if len(d.lines) > 1 {
		line = append(append([]byte("["), bytes.Join(d.lines, []byte(","))...), ']')
	}
	out = append(out, Carry(d.Rec, name, line))
	for _, record := range d.after {
		out = append(out, record(d.Rec.ID))
	}
	return out
}

// Verbatim keeps a line that has no place in the conversation, in a line of ours.
func Verbatim(n int, line []byte, at time.Time) Aside {
	return func(parent string) session.Record {
		return Carry(session.Record{ID: "line." + native.LineID(n, line), Parent: parent, Side: true, Time: at, Body: session.Custom{Type: verbatim}}, "line", line)
	}
}

const verbatim = "verbatim"

// AsideLine returns the line of a record that has no place in the conversation,
// wherever it stands: Verbatim's, or what older versions made of such a line,
// which was the line itself.
func AsideLine(r session.Record) (line []byte, ok bool) {
	switch b := r.Body.(type) {
	case session.Unknown:
		return r.Raw, r.ID == "" || r.Link != session.Given
	case session.Custom:
		if b.Type != verbatim || !r.Side {
			return nil, false
		}
		var f struct {
			Line json.RawMessage `json:"line"`
		}
		err := json.Unmarshal(r.Raw, &f)
		return f.Line, err == nil && len(f.Line) > 0
	}
	return nil, false
}

// Anthropic reads content in the form of the Anthropic API: a string or
// blocks. What it does not know is kept as Other.
func Anthropic(raw json.RawMessage) []llm.Block {
	text, list := TextOrList(raw)
	if text != "" {
		return []llm.Block{llm.Text{Text: text}}
	}
	var out []llm.Block
	for _, item := range list {
		out = append(out, anthropicBlock(item))
	}
	return out
}

func anthropicBlock(raw json.RawMessage) llm.Block {
	var b struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		Data      string          `json:"data"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
		Source    struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
		} `json:"source"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return llm.Other{Raw: raw}
	}
	switch b.Type {
	case "text":
		return llm.Text{Text: b.Text}
	case "thinking":
		return llm.Thinking{Text: b.Thinking, Signature: b.Signature}
	case "redacted_thinking":
		return llm.Thinking{Signature: b.Data, Redacted: true}
	case "tool_use":
		return llm.ToolCall{ID: b.ID, Name: b.Name, Args: Arguments(b.Input)}
	case "tool_result":
		return llm.ToolResult{CallID: b.ToolUseID, Blocks: Anthropic(b.Content), IsError: b.IsError}
	case "image":
		if b.Source.Type == "base64" {
			return llm.Image{MIME: b.Source.MediaType, Data: b.Source.Data}
		}
	}
	return llm.Other{Raw: raw}
}

// TextOrList reads what is either a text or a list. What is neither is
// nothing.
func TextOrList(raw json.RawMessage) (text string, list []json.RawMessage) {
	if len(raw) == 0 {
		return "", nil
	}
	switch raw[0] {
	case '"':
		_ = json.Unmarshal(raw, &text)
	case '[':
		_ = json.Unmarshal(raw, &list)
	}
	return text, list
}

// Broken reports whether a line could not be read because it is no JSON, and
// not because its fields have other types than they had.
func Broken(err error) bool {
	var s *json.SyntaxError
	return errors.As(err, &s)
}

// Arguments returns raw if it is an object, else one that holds it.
func Arguments(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return json.RawMessage("{}")
	case raw[0] == '{' && json.Valid(raw):
		return raw
	case json.Valid(raw):
		return json.RawMessage(`{"input":` + string(raw) + `}`)
	}
	text, _ := json.Marshal(string(raw))
	return json.RawMessage(`{"input":` + string(text) + `}`)
}

// DataURL reads an image that is written as an address. One that is not base64
// stays as it is: the request says that it cannot be sent.
func DataURL(url string) (llm.Image, bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return llm.Image{}, false
	}
	mime, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		return llm.Image{Data: url}, true
	}
	return llm.Image{MIME: mime, Data: data}, true
}

// ISOTime reads a time as JavaScript writes it; the zero time if it is not one.
func ISOTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
