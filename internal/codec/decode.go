package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// Native is the native form. Decode returns exactly one record for each line
// that is not blank; Raw is a copy of the line, so that the caller may use
// the line's memory again. White space around the value and a byte order mark
// before it are read over, and are part of Raw.
//
// A line that is no JSON is an error, and so is one with half a UTF-8
// sequence. A line that is JSON always gives a record: what is not an object,
// or lacks what its type needs, is Unknown.
var Native Codec = native{}

type native struct{}

func (native) Decode(line []byte) ([]session.Record, error) {
	if len(line) > session.MaxRecord {
		return nil, fmt.Errorf("codec: a line of %d bytes, the limit is %d: %w", len(line), session.MaxRecord, session.ErrTooLarge)
	}
	if len(trim(line)) == 0 {
		return nil, nil
	}
	d := decoders.Get().(*decoder)
	defer d.done()
	r, err := d.record(bytes.Clone(line))
	if err != nil {
		return nil, err
	}
	return []session.Record{r}, nil
}

func (native) Encode(r session.Record) ([]byte, error) { return encodeNative(r) }

var bom = []byte("\xef\xbb\xbf")

// trim takes away what may stand around a value.
func trim(line []byte) []byte {
	if n := len(line); n > 0 && line[0] == '{' && line[n-1] == '}' {
		return line
	}
	line = bytes.TrimPrefix(line, bom)
	return bytes.Trim(line, " \t\r\n")
}

// decoder reads lines. It keeps its memory from line to line, and the
// strings that lines repeat.
type decoder struct {
	tape
	typ, id, api, provider, model, tool string
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// done gives d back, unless a huge line has made it huge.
func (d *decoder) done() {
	d.kept = false
	if d.b = nil; cap(d.nodes) <= 1<<16 && cap(d.buf) <= 1<<20 {
		decoders.Put(d)
	}
}

// entry is where the fields stand that many types have.
type entry struct{ typ, id, parent, time, mode, message int }

// record reads the line raw, which it keeps.
func (d *decoder) record(raw []byte) (session.Record, error) {
	b := trim(raw)
	if err := d.parse(b); err != nil {
		return session.Record{}, fmt.Errorf("codec: not a JSON line: %w", err)
	}
	d.kept = true
	r := session.Record{Raw: raw}
	if d.nodes[0].kind != object {
		r.Link = session.Absent
		r.Body = session.Unknown{}
		return r, nil
	}
	e := d.entry()
	r.Time = d.time(e.time)
	typ := d.same(e.typ, &d.typ)
	if typ == "session" {
		r.Body = d.header()
		return r, nil
	}
	r.Link, r.Parent = d.parent(e.parent)
	r.ID = d.same(e.id, &d.id)
	r.Side = d.is(e.mode, "side")
	r.Body = d.body(typ, e)
	return r, nil
}

func (d *decoder) entry() (e entry) {
	e = entry{-1, -1, -1, -1, -1, -1}
	for k, end := 1, int(d.nodes[0].next); k < end; k = int(d.nodes[k+1].next) {
		switch string(d.text(k)) {
		case "type":
			e.typ = k + 1
		case "id":
			e.id = k + 1
		case "parentId":
			e.parent = k + 1
		case "timestamp":
			e.time = k + 1
		case "appendMode":
			e.mode = k + 1
		case "message":
			e.message = k + 1
		}
	}
	return e
}

func (t *tape) text0(n int) []byte {
	if t.kindOf(n) != str {
		return nil
	}
	return t.text(n)
}

func (d *decoder) parent(n int) (session.Link, string) {
	switch {
	case n < 0:
		return session.Absent, ""
	case d.nodes[n].kind == null:
		return session.Given, ""
	case d.nodes[n].kind != str:
		return session.Absent, ""
	}
	s := d.same(n, &d.id)
	if strings.TrimSpace(s) == "" {
		return session.Blank, ""
	}
	return session.Given, s
}

// body reads what a line of type typ says.
func (d *decoder) body(typ string, e entry) session.Body {
	get := func(key string) int { return d.get(0, key) }
	text := func(key string) string { return d.string(get(key)) }
	switch typ {
	case "message":
		if b := d.message(e.message); b != nil {
			return b
		}
	case "model_change":
		return session.ModelChange{Provider: d.same(get("provider"), &d.provider), Model: d.same(get("modelId"), &d.model), Chosen: d.bool(get("chosen"))}
	case "thinking_level_change":
		return session.ThinkingChange{Level: text("thinkingLevel")}
	case "compaction":
		return session.Compaction{
			Summary:        text("summary"),
			FirstKept:      text("firstKeptEntryId"),
			Resume:         text("resumeEntryId"),
			TokensBefore:   d.int(get("tokensBefore")),
			TokensAfter:    d.int(get("tokensAfter")),
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
			Type: text("customType"), Blocks: d.content(get("content")),
			Display: d.bool(get("display")), Details: d.keep(get("details")),
		}
	case "label":
		return session.Label{Target: text("targetId"), Label: text("label")}
	case "session_info":
		return session.Title{Title: strings.TrimSpace(text("name"))}
	case "reset":
		return session.Reset{Reason: text("reason"), FirstKept: text("firstKeptEntryId")}
	case "leaf":
		return session.Leaf{Target: text("targetId"), AppendParent: text("appendParentId")}
	case "context_edit":
		n := get("replacement")
		switch {
		case n >= 0 && d.nodes[n].kind == null:
			return session.Edit{Target: text("targetId"), Drop: true}
		case n >= 0 && d.nodes[n].kind == object:
			return session.Edit{Target: text("targetId"), Blocks: d.content(d.get(n, "content"))}
		}
	case "checkpoint":
		if d.kindOf(get("summary")) == str {
			return session.Checkpoint{
				Summary: text("summary"), Topics: d.texts(get("topics")), Decisions: d.texts(get("decisions")),
				Questions: d.texts(get("questions")), Covers: text("covers"), Tokens: d.int(get("tokens")),
				Messages: d.int(get("messages")), Model: text("model"), Usage: d.usage(get("usage")),
			}
		}
		if c, ok := d.nestedCheckpoint(e); ok {
			return c
		}
	}
	return session.Unknown{Type: typ}
}

// nestedCheckpoint reads a checkpoint as the first GoClaw wrote it: in an
// object of its own, covering everything up to its parent.
func (d *decoder) nestedCheckpoint(e entry) (session.Checkpoint, bool) {
	at := d.get(0, "checkpoint")
	if d.kindOf(at) != object || d.kindOf(d.get(at, "summary")) != str {
		return session.Checkpoint{}, false
	}
	get := func(key string) int { return d.get(at, key) }
	_, covers := d.parent(e.parent)
	return session.Checkpoint{
		Summary: d.string(get("summary")), Topics: d.texts(get("topics")), Decisions: d.texts(get("keyDecisions")),
		Questions: d.texts(get("openQuestions")), Covers: covers, Tokens: d.int(get("tokensAtCheckpoint")),
		Messages: d.int(get("messageCountAtCheckpoint")),
	}, true
}

func (d *decoder) header() session.Header {
	get := func(key string) int { return d.get(0, key) }
	h := session.Header{
		Version: 1, // a header that does not say is of the first version
		ID:      session.ID(d.string(get("id"))),
		Key:     session.Key(d.string(get("key"))),
		CWD:     d.string(get("cwd")),
		Parent:  d.string(get("parentSession")),
	}
	switch n := get("version"); d.kindOf(n) {
	case number:
		h.Version = d.int(n)
	case str: // as JavaScript compares it
		if h.Version = d.int(n); h.Version == 0 {
			h.Version = session.Version
		}
	}
	if o := get("origin"); d.kindOf(o) == object {
		h.Origin = session.Origin{
			Program: d.string(d.get(o, "program")), Path: d.string(d.get(o, "path")),
			Key: session.Key(d.string(d.get(o, "key"))), ID: session.ID(d.string(d.get(o, "id"))),
			Seq: session.Seq(d.int(d.get(o, "seq"))),
		}
	}
	return h
}

// The customTypes of goclaw's own records.
const (
	typeNotice = "goclaw.notice"
	typeUndo   = "goclaw.unfold"
	typeMoved  = "goclaw.key"
)

func (d *decoder) custom(typ string, data int) session.Body {
	switch typ {
	case typeNotice:
		if text := d.get(max(data, 0), "text"); data > 0 && d.kindOf(text) == str {
			return session.Notice{Percent: d.int(d.get(data, "percent")), Text: d.string(text), As: d.string(d.get(data, "as")), Once: d.bool(d.get(data, "once"))}
		}
	case typeUndo:
		if target := d.get(max(data, 0), "targetId"); data > 0 && d.kindOf(target) == str {
			return session.Undo{Target: d.string(target)}
		}
	case typeMoved:
		if key := d.get(max(data, 0), "key"); data > 0 && d.kindOf(key) == str {
			return session.Moved{Key: session.Key(d.string(key))}
		}
	}
	return session.Custom{Type: typ, Data: d.keep(data)}
}

// message reads the object n of a message line. It is nil if there is none.
func (d *decoder) message(n int) session.Body {
	if d.kindOf(n) != object {
		return nil
	}
	role, content, usage, callID, name, details, custom := -1, -1, -1, -1, -1, -1, -1
	var m session.Message
	isError, display := false, false
	for k, end := n+1, int(d.nodes[n].next); k < end; k = int(d.nodes[k+1].next) {
		v := k + 1
		switch string(d.text(k)) {
		case "role":
			role = v
		case "content":
			content = v
		case "timestamp":
			m.At = d.time(v)
		case "api":
			m.API = d.same(v, &d.api)
		case "provider":
			m.Provider = d.same(v, &d.provider)
		case "model":
			m.Model = d.same(v, &d.model)
		case "usage":
			usage = v
		case "stopReason":
			m.Stop = stop(d.text0(v))
		case "errorMessage":
			m.Error = d.string(v)
		case "cutRequest":
			m.Cut = d.bool(v)
		case "excludeFromContext":
			m.Excluded = d.bool(v)
		case "details":
			details = v
		case "toolCallId":
			callID = v
		case "toolName":
			name = v
		case "isError":
			isError = d.bool(v)
		case "customType":
			custom = v
		case "display":
			display = d.bool(v)
		}
	}
	m.Usage = d.usage(usage)
	m.Details = d.keep(details)
	switch string(d.text0(role)) {
	case "user":
		m.Role = llm.User
	case "assistant":
		m.Role = llm.Assistant
	case "system":
		m.Role = llm.System
	case "toolResult":
		m.Role = llm.User
		m.Blocks = []llm.Block{llm.ToolResult{
			CallID: d.string(callID), Name: d.same(name, &d.tool), Blocks: d.content(content), IsError: isError,
		}}
		return m
	case "bashExecution":
		return d.shell(n, m)
	case "custom", "hookMessage":
		return session.CustomMessage{Type: d.string(custom), Blocks: d.content(content), Display: display, Details: m.Details, At: m.At}
	default:
		// Nobody sends a role that he does not know.
		m.Role, m.Excluded = llm.Role(d.string(role)), true
	}
	m.Blocks = d.content(content)
	return m
}

func (d *decoder) shell(n int, m session.Message) session.Shell {
	get := func(key string) int { return d.get(n, key) }
	s := session.Shell{
		Command: d.string(get("command")), Output: d.string(get("output")),
		Cancelled: d.bool(get("cancelled")), Truncated: d.bool(get("truncated")),
		FullOutput: d.string(get("fullOutputPath")), Excluded: m.Excluded, At: m.At,
	}
	if c := get("exitCode"); d.kindOf(c) == number {
		code := d.int(c)
		s.ExitCode = &code
	}
	return s
}

// stop avoids a string for each answer.
func stop(s []byte) llm.Stop {
	for _, known := range [...]llm.Stop{llm.StopEnd, llm.StopTool, llm.StopLength, llm.StopError, llm.StopAborted} {
		if string(s) == string(known) {
			return known
		}
	}
	return llm.Stop(s)
}

func (d *decoder) usage(n int) (u llm.Usage) {
	if d.kindOf(n) != object {
		return u
	}
	for k, end := n+1, int(d.nodes[n].next); k < end; k = int(d.nodes[k+1].next) {
		switch string(d.text(k)) {
		case "input":
			u.Input = d.int(k + 1)
		case "output":
			u.Output = d.int(k + 1)
		case "cacheRead":
			u.CacheRead = d.int(k + 1)
		case "cacheWrite":
			u.CacheWrite = d.int(k + 1)
		case "cost":
			u.Cost = d.cost(k + 1)
		case "estimated":
			u.Estimated = d.bool(k + 1)
		}
	}
	return u
}

func (d *decoder) cost(n int) (c llm.Cost) {
	if d.kindOf(n) != object {
		return c
	}
	for k, end := n+1, int(d.nodes[n].next); k < end; k = int(d.nodes[k+1].next) {
		switch string(d.text(k)) {
		case "input":
			c.Input = d.dollars(k + 1)
		case "output":
			c.Output = d.dollars(k + 1)
		case "cacheRead":
			c.CacheRead = d.dollars(k + 1)
		case "cacheWrite":
			c.CacheWrite = d.dollars(k + 1)
		case "total":
			c.Total = d.dollars(k + 1)
		}
	}
	return c
}

// dollars returns the amount n, or 0 if it is no number.
func (d *decoder) dollars(n int) float64 {
	if d.kindOf(n) != number {
		return 0
	}
	s := d.raw(n)
	if len(s) == 1 && s[0] == '0' {
		return 0
	}
	usd, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return 0
	}
	return usd
}

// content reads a string or a list of blocks. Anything else is nothing.
func (d *decoder) content(n int) []llm.Block {
	switch d.kindOf(n) {
	case str:
		if d.nodes[n].start == d.nodes[n].end {
			return nil
		}
		return []llm.Block{llm.Text{Text: d.string(n)}}
	case array:
		count, end := 0, int(d.nodes[n].next)
		for v := n + 1; v < end; v = int(d.nodes[v].next) {
			count++
		}
		if count == 0 {
			return nil
		}
		blocks := make([]llm.Block, 0, count)
		for v := n + 1; v < end; v = int(d.nodes[v].next) {
			blocks = append(blocks, d.block(v))
		}
		return blocks
	}
	return nil
}

// block reads one block. What it cannot read whole is Other.
func (d *decoder) block(n int) llm.Block {
	if d.nodes[n].kind != object {
		return llm.Other{Raw: d.raw(n)}
	}
	typ, text, sig, redacted, id, name, args, isError := -1, -1, -1, -1, -1, -1, -1, -1
	content, mime := -1, -1
	for k, end := n+1, int(d.nodes[n].next); k < end; k = int(d.nodes[k+1].next) {
		v := k + 1
		switch string(d.text(k)) {
		case "type":
			typ = v
		case "text", "thinking", "data":
			text = v
		case "textSignature", "thinkingSignature", "thoughtSignature":
			sig = v
		case "redacted":
			redacted = v
		case "id", "toolCallId":
			id = v
		case "name", "toolName":
			name = v
		case "arguments":
			args = v
		case "mimeType":
			mime = v
		case "content":
			content = v
		case "isError":
			isError = v
		}
	}
	switch string(d.text0(typ)) {
	case "text":
		if d.kindOf(text) == str {
			return llm.Text{Text: d.string(text), Signature: d.string(sig)}
		}
	case "thinking":
		if d.kindOf(text) == str {
			return llm.Thinking{Text: d.string(text), Signature: d.string(sig), Redacted: d.bool(redacted)}
		}
	case "toolCall":
		c := llm.ToolCall{ID: d.string(id), Name: d.same(name, &d.tool), Signature: d.string(sig), Args: json.RawMessage("{}")}
		if d.kindOf(args) == object {
			c.Args = d.raw(args)
		}
		return c
	case "image":
		if d.kindOf(text) == str {
			return llm.Image{MIME: d.string(mime), Data: d.string(text)}
		}
	case "toolResult":
		return llm.ToolResult{CallID: d.string(id), Name: d.same(name, &d.tool), Blocks: d.content(content), IsError: d.bool(isError)}
	}
	return llm.Other{Raw: d.raw(n)}
}

// keep returns the bytes of a value, nil for null or none. They are part of
// the record's Raw, which nobody changes.
func (d *decoder) keep(n int) json.RawMessage {
	if d.kindOf(n) == null {
		return nil
	}
	return d.raw(n)
}

func (d *decoder) texts(n int) []string {
	if d.kindOf(n) != array {
		return nil
	}
	var out []string
	for v, end := n+1, int(d.nodes[n].next); v < end; v = int(d.nodes[v].next) {
		if d.nodes[v].kind == str {
			out = append(out, d.string(v))
		}
	}
	return out
}

// time reads a time, the zero time if it is none. A number is milliseconds.
func (t *tape) time(n int) time.Time {
	switch t.kindOf(n) {
	case str:
		return parseTime(t.text(n))
	case number:
		return unixMilli(t.raw(n))
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
