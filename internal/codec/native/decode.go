// Package native reads and writes the line that goclaw, OpenClaw and pi write
// (version 3).
package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"sync"
	"time"

	"goclaw/internal/rawjson"
	"goclaw/llm"
	"goclaw/session"
)

// Trim removes a byte order mark and the space around the value of a line.
func Trim(line []byte) []byte {
	if n := len(line); n > 0 && line[0] == '{' && line[n-1] == '}' {
		return line
	}
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	return bytes.Trim(line, " \t\r\n")
}

// Decoder reads lines. It keeps its memory from line to line, and the strings
// that lines repeat. The tape is that of the latest line.
type Decoder struct {
	rawjson.Tape
	typ, id, api, provider, model, tool string
}

var decoders = sync.Pool{New: func() any { return new(Decoder) }}

// Borrow returns a decoder. Call Release when the line was read.
func Borrow() *Decoder { return decoders.Get().(*Decoder) }

// Release gives d back.
func (d *Decoder) Release() {
	d.Reset()
	decoders.Put(d)
}

// Line parses a line. kept says that its bytes never change.
func (d *Decoder) Line(line []byte, kept bool) error {
	if err := d.Parse(Trim(line), kept); err != nil {
		return fmt.Errorf("codec: not a JSON line: %w", err)
	}
	return nil
}

// Record reads the line raw, which it keeps.
func (d *Decoder) Record(raw []byte) (session.Record, error) {
	if err := d.Line(raw, true); err != nil {
		return session.Record{}, err
	}
	r := session.Record{Raw: raw}
	if d.Kind(0) != rawjson.Object {
		r.Link = session.Absent
		r.Body = session.Unknown{}
		return r, nil
	}
	get := func(key string) int { return d.Get(0, key) }
	r.Time = d.Time(get("timestamp"))
	typ := d.Same(get("type"), &d.typ)
	if typ == "session" {
		r.Body = d.header()
		return r, nil
	}
	r.Link, r.Parent = d.parent(get("parentId"))
	r.ID = d.Same(get("id"), &d.id)
	r.Side = d.Is(get("appendMode"), "side")
	r.Body = d.body(typ)
	return r, nil
}

func (d *Decoder) parent(n int) (session.Link, string) {
	switch {
	case n < 0:
		return session.Absent, ""
	case d.Kind(n) == rawjson.Null:
		return session.Given, ""
	case d.Kind(n) != rawjson.String:
		return session.Absent, ""
	}
	s := d.Same(n, &d.id)
	if strings.TrimSpace(s) == "" {
		return session.Blank, ""
	}
	return session.Given, s
}

// body reads what a line of type typ says.
func (d *Decoder) body(typ string) session.Body {
	get := func(key string) int { return d.Get(0, key) }
	text := func(key string) string { return d.String(get(key)) }
	switch typ {
	case "message":
		if b := d.message(get("message")); b != nil {
			return b
		}
	case "model_change":
		return session.ModelChange{Provider: d.Same(get("provider"), &d.provider), Model: d.Same(get("modelId"), &d.model), Chosen: d.True(get("chosen"))}
	case "thinking_level_change":
		return session.ThinkingChange{Level: text("thinkingLevel")}
	case "compaction":
		return session.Compaction{
			Summary:        text("summary"),
			FirstKept:      text("firstKeptEntryId"),
			Resume:         text("resumeEntryId"),
			TokensBefore:   d.Int(get("tokensBefore")),
			TokensAfter:    d.Int(get("tokensAfter")),
			FromCheckpoint: text("fromCheckpoint"),
			Details:        d.keep(get("details")),
			Usage:          d.usage(get("usage")),
		}
	case "branch_summary":
		return session.BranchSummary{From: text("fromId"), Summary: text("summary"), Details: d.keep(get("details"))}
	case "custom":
		return d.custom(text("customType"), get("data"))
	case "custom_message":
		return session.CustomMessage{
			Type: text("customType"), Blocks: d.Content(get("content")),
			Display: d.True(get("display")), Details: d.keep(get("details")),
		}
	case "label":
		return session.Label{Target: text("targetId"), Label: text("label")}
	case "session_info":
		return session.Title{Title: strings.TrimSpace(text("name"))}
	case "reset":
		return session.Reset{Reason: text("reason"), FirstKept: text("firstKeptEntryId")}
	case "redaction":
		var b session.Redaction
		if n := get("targets"); n >= 0 && json.Unmarshal(d.keep(n), &b.Targets) == nil {
			return b
		}
	case "leaf":
		return session.Leaf{Target: text("targetId"), AppendParent: text("appendParentId")}
	case "usage":
		if n := get("usage"); d.Kind(n) == rawjson.Object {
			return session.Usage{Kind: text("kind"), Provider: text("provider"), Model: text("model"), Usage: d.usage(n), Note: text("note")}
		}
	case "context_edit":
		n := get("replacement")
		if drop := n >= 0 && d.Kind(n) == rawjson.Null; drop || d.Kind(n) == rawjson.Object {
			return session.Edit{Target: text("targetId"), Drop: drop, Blocks: d.Content(d.Get(n, "content"))}
		}
	case "checkpoint":
		if d.Kind(get("summary")) == rawjson.String {
			return session.Checkpoint{
				Summary: text("summary"), Topics: d.texts(get("topics")), Decisions: d.texts(get("decisions")),
				Questions: d.texts(get("questions")), Covers: text("covers"), Tokens: d.Int(get("tokens")),
				Messages: d.Int(get("messages")), Model: text("model"), Usage: d.usage(get("usage")),
			}
		}
		if c, ok := d.nestedCheckpoint(); ok {
			return c
		}
	}
	return session.Unknown{Type: typ}
}

// nestedCheckpoint reads a checkpoint as the first GoClaw wrote it: in an
// separate object, covering everything up to its parent.
func (d *Decoder) nestedCheckpoint() (session.Checkpoint, bool) {
	at := d.Get(0, "checkpoint")
	if d.Kind(at) != rawjson.Object || d.Kind(d.Get(at, "summary")) != rawjson.String {
		return session.Checkpoint{}, false
	}
	get := func(key string) int { return d.Get(at, key) }
	_, covers := d.parent(d.Get(0, "parentId"))
	return session.Checkpoint{
		Summary: d.String(get("summary")), Topics: d.texts(get("topics")), Decisions: d.texts(get("keyDecisions")),
		Questions: d.texts(get("openQuestions")), Covers: covers, Tokens: d.Int(get("tokensAtCheckpoint")),
		Messages: d.Int(get("messageCountAtCheckpoint")),
	}, true
}

func (d *Decoder) header() session.Header {
	get := func(key string) int { return d.Get(0, key) }
	h := session.Header{
		Version: 1, // a header that does not say is of the first version
		ID:      session.ID(d.String(get("id"))),
		Key:     session.Key(d.String(get("key"))),
		CWD:     d.String(get("cwd")),
		Parent:  d.String(get("parentSession")),
	}
	switch n := get("version"); d.Kind(n) {
	case rawjson.Number:
		h.Version = d.Int(n)
	case rawjson.String: // as JavaScript compares it
		if h.Version = d.Int(n); h.Version == 0 {
			h.Version = session.Version
		}
	}
	if o := get("origin"); d.Kind(o) == rawjson.Object {
		h.Origin = session.Origin{
			Program: d.String(d.Get(o, "program")), Path: d.String(d.Get(o, "path")),
			Key: session.Key(d.String(d.Get(o, "key"))), ID: session.ID(d.String(d.Get(o, "id"))),
			Seq: session.Seq(d.Int(d.Get(o, "seq"))), Mark: d.String(d.Get(o, "mark")),
		}
	}
	return h
}

// The customTypes of goclaw's own records.
const (
	typeNotice  = "goclaw.notice"
	typeUndo    = "goclaw.unfold"
	typeMoved   = "goclaw.key"
	typeMarked  = "goclaw.mark"
	typeRefused = "goclaw.refused"
	typePartial = "goclaw.partial"
)

func (d *Decoder) custom(typ string, data int) session.Body {
	get := func(key string) int { return d.Get(data, key) }
	text := func(key string) string { return d.String(get(key)) }
	is := func(t, key string) bool { return typ == t && d.Kind(get(key)) == rawjson.String }
	switch {
	case is(typeNotice, "text"):
		return session.Notice{Percent: d.Int(get("percent")), Text: text("text"), As: text("as"), Once: d.True(get("once"))}
	case is(typeUndo, "targetId"):
		return session.Undo{Target: text("targetId")}
	case is(typeMoved, "key"):
		return session.Moved{Key: session.Key(text("key"))}
	case is(typeMarked, "mark"):
		return session.Marked{Mark: text("mark")}
	case is(typeRefused, "targetId"):
		return session.Refused{Target: text("targetId"), Block: d.Int(get("block")), Why: text("problem")}
	case is(typePartial, "text"), is(typePartial, "thinking"):
		return session.Partial{Offset: d.Int(get("offset")), Thinking: text("thinking"), Text: text("text"), Provider: text("provider"), Model: text("model")}
	}
	return session.Custom{Type: typ, Data: d.keep(data)}
}

// message reads the object n of a message line. It is nil if n is not one.
func (d *Decoder) message(n int) session.Body {
	if d.Kind(n) != rawjson.Object {
		return nil
	}
	get := func(key string) int { return d.Get(n, key) }
	m := session.Message{
		API:       d.Same(get("api"), &d.api),
		Provider:  d.Same(get("provider"), &d.provider),
		Model:     d.Same(get("model"), &d.model),
		Usage:     d.usage(get("usage")),
		Stop:      stop(d.Text(get("stopReason"))),
		Error:     d.String(get("errorMessage")),
		Continues: d.String(get("continues")),
		Cut:       d.True(get("cutRequest")),
		Excluded:  d.True(get("excludeFromContext")),
		Details:   d.keep(get("details")),
		At:        d.Time(get("timestamp")),
	}
	switch role := get("role"); string(d.Text(role)) {
	case "user":
		m.Role = llm.User
	case "assistant":
		m.Role = llm.Assistant
	case "system":
		m.Role = llm.System
	case "toolResult":
		m.Role, m.Blocks = llm.User, []llm.Block{d.result(n)}
		return m
	case "bashExecution":
		return d.shell(n, m)
	case "custom", "hookMessage":
		return session.CustomMessage{
			Type: d.String(get("customType")), Blocks: d.Content(get("content")),
			Display: d.True(get("display")), Details: m.Details, At: m.At,
		}
	default:
		// No program sends a role that it does not know.
		m.Role, m.Excluded = llm.Role(d.String(role)), true
	}
	m.Blocks = d.Content(get("content"))
	return m
}

// result reads the tool result n, which is a message or a block.
func (d *Decoder) result(n int) llm.ToolResult {
	return llm.ToolResult{
		CallID: d.String(d.Get(n, "toolCallId")), Name: d.Same(d.Get(n, "toolName"), &d.tool),
		Blocks: d.Content(d.Get(n, "content")), IsError: d.True(d.Get(n, "isError")),
	}
}

func (d *Decoder) shell(n int, m session.Message) session.Shell {
	get := func(key string) int { return d.Get(n, key) }
	s := session.Shell{
		Command: d.String(get("command")), Output: d.String(get("output")),
		Cancelled: d.True(get("cancelled")), Truncated: d.True(get("truncated")),
		FullOutput: d.String(get("fullOutputPath")), Excluded: m.Excluded, At: m.At,
	}
	if c := get("exitCode"); d.Kind(c) == rawjson.Number {
		code := d.Int(c)
		s.ExitCode = &code
	}
	return s
}

// stop avoids allocating a string for each answer.
func stop(s []byte) llm.Stop {
	for _, known := range [...]llm.Stop{llm.StopEnd, llm.StopTool, llm.StopLength, llm.StopError, llm.StopAborted} {
		if string(s) == string(known) {
			return known
		}
	}
	return llm.Stop(s)
}

func (d *Decoder) usage(n int) llm.Usage {
	if d.Kind(n) != rawjson.Object {
		return llm.Usage{}
	}
	count := func(key string) int { return d.Int(d.Get(n, key)) }
	cost := d.Get(n, "cost")
	dollars := func(key string) float64 { return d.Float(d.Get(cost, key)) }
	return llm.Usage{
		Input: count("input"), Output: count("output"), CacheRead: count("cacheRead"), CacheWrite: count("cacheWrite"),
		Cost: llm.Cost{
			Input: dollars("input"), Output: dollars("output"), CacheRead: dollars("cacheRead"), CacheWrite: dollars("cacheWrite"),
			Total: dollars("total"),
		},
		Estimated: d.True(d.Get(n, "estimated")),
	}
}

// Content reads a string or a list of blocks. Anything else is nothing.
func (d *Decoder) Content(n int) []llm.Block {
	switch d.Kind(n) {
	case rawjson.String:
		if len(d.Raw(n)) > len(`""`) {
			return []llm.Block{llm.Text{Text: d.String(n)}}
		}
	case rawjson.Array:
		if count := d.Len(n); count > 0 {
			blocks := make([]llm.Block, 0, count)
			for v := range d.Values(n) {
				blocks = append(blocks, d.Block(v))
			}
			return blocks
		}
	}
	return nil
}

// Block reads one block. What cannot be read whole is Other.
func (d *Decoder) Block(n int) llm.Block {
	get := func(key string) int { return d.Get(n, key) }
	text := func(key string) string { return d.String(get(key)) }
	has := func(key string) bool { return d.Kind(get(key)) == rawjson.String }
	switch typ := string(d.Text(get("type"))); {
	case typ == "text" && has("text"):
		return llm.Text{Text: text("text"), Signature: text("textSignature")}
	case typ == "thinking" && has("thinking"):
		return llm.Thinking{Text: text("thinking"), Signature: text("thinkingSignature"), Redacted: d.True(get("redacted"))}
	case typ == "toolCall":
		c := llm.ToolCall{ID: text("id"), Name: d.Same(get("name"), &d.tool), Signature: text("thoughtSignature"), Args: json.RawMessage("{}")}
		if args := get("arguments"); d.Kind(args) == rawjson.Object {
			c.Args = d.Raw(args)
		}
		return c
	case typ == "image" && has("data"):
		return llm.Image{MIME: text("mimeType"), Data: text("data")}
	case typ == "toolResult":
		return d.result(n)
	}
	return llm.Other{Raw: d.Raw(n)}
}

// keep returns the bytes of a value, nil for null. They are part of the
// record's Raw, which never changes.
func (d *Decoder) keep(n int) json.RawMessage {
	if d.Kind(n) == rawjson.Null {
		return nil
	}
	return d.Raw(n)
}

func (d *Decoder) texts(n int) []string {
	var out []string
	for v := range d.Values(n) {
		if d.Kind(v) == rawjson.String {
			out = append(out, d.String(v))
		}
	}
	return out
}

// Time reads a time, the zero time if n is not one. A number is milliseconds.
func (d *Decoder) Time(n int) time.Time {
	switch d.Kind(n) {
	case rawjson.String:
		return parseTime(d.Text(n))
	case rawjson.Number:
		return unixMilli(d.Raw(n))
	}
	return time.Time{}
}

func unixMilli(s []byte) time.Time {
	ms := int64(0)
	for _, c := range s {
		if c < '0' || c > '9' || len(s) > 15 {
			var f float64
			if json.Unmarshal(s, &f) != nil || math.Abs(f) > 8.64e15 { // what a JavaScript date can hold
				return time.Time{}
			}
			return time.UnixMicro(int64(f * 1000)).UTC()
		}
		ms = ms*10 + int64(c-'0')
	}
	return time.UnixMilli(ms).UTC()
}

// parseTime reads an ISO time of any precision; one without a zone is UTC.
func parseTime(s []byte) time.Time {
	const form = "0000-00-00T00:00:00.000Z"
	if len(s) == len(form) {
		v, ok := [7]int{}, true
		at, was := 0, byte('0')
		for i := 0; i < len(form) && ok; i++ {
			switch {
			case form[i] != '0':
				ok = s[i] == form[i]
			case s[i] < '0' || s[i] > '9':
				ok = false
			default:
				if was != '0' {
					at++
				}
				v[at] = v[at]*10 + int(s[i]-'0')
			}
			was = form[i]
		}
		if ok && v[1] >= 1 && v[1] <= 12 && v[2] >= 1 && v[2] <= 28 && v[3] < 24 && v[4] < 60 && v[5] < 60 {
			return time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6]*1e6, time.UTC)
		}
	}
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(layout, string(s)); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// LineID makes an id for a record whose line has none, from the line and its
// number: it is the same whenever the file is read, and differs from the ids of
// all other lines.
func LineID(n int, line []byte) string {
	return fmt.Sprintf("%08x%08x", n, crc32.ChecksumIEEE(Trim(line)))
}
