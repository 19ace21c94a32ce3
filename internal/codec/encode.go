package codec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"goclaw/llm"
	"goclaw/session"
)

// encodeNative returns the line of r: Raw if there is one. The fields stand
// in the order in which pi writes them, goclaw's own behind them.
func encodeNative(r session.Record) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("codec: record %d (%q): "+format, append([]any{r.Seq, r.ID}, args...)...)
	}
	if len(r.Raw) > 0 {
		switch {
		case bytes.IndexByte(r.Raw, '\n') >= 0:
			return fail("a line end in the middle of its line")
		case len(r.Raw) > session.MaxRecord:
			return fail("%d bytes, the limit is %d: %w", len(r.Raw), session.MaxRecord, session.ErrTooLarge)
		}
		return r.Raw, nil
	}
	if y := r.Time.UTC().Year(); y < 0 || y > 9999 {
		return fail("a time in the year %d", y)
	}
	w := writers.Get().(*writer)
	w.b, w.err = w.b[:0], nil
	defer func() {
		if cap(w.b) <= maxSpare {
			writers.Put(w)
		}
	}()
	w.record(r)
	switch {
	case w.err != nil:
		return fail("%w", w.err)
	case !utf8.Valid(w.b):
		return fail("text that is not UTF-8")
	case len(w.b) > session.MaxRecord:
		return fail("%d bytes, the limit is %d: %w", len(w.b), session.MaxRecord, session.ErrTooLarge)
	}
	return bytes.Clone(w.b), nil
}

// writers are used again and again, unless a line was very long.
var writers = sync.Pool{New: func() any { return &writer{b: make([]byte, 0, 4<<10)} }}

const maxSpare = 256 << 10

// writer builds a line. Its methods for fields put the comma themselves.
type writer struct {
	b   []byte
	err error
}

func (w *writer) record(r session.Record) {
	typ := typeOf(r)
	w.open('{')
	w.text("type", typ)
	switch b := r.Body.(type) {
	case session.Header:
		w.header(b, r.Time)
	case session.Custom, session.Notice, session.Undo, session.Moved, session.CustomMessage:
		if typ == "message" {
			w.link(r)
			w.body(r)
			break
		}
		w.body(r)
		w.link(r)
	default:
		w.link(r)
		w.body(r)
	}
	if _, header := r.Body.(session.Header); r.Side && !header {
		w.text("appendMode", "side")
	}
	w.close('}')
}

// typeOf returns the type of r's line.
func typeOf(r session.Record) string {
	switch b := r.Body.(type) {
	case session.Header:
		return "session"
	case session.Message, session.Shell:
		return "message"
	case session.CustomMessage:
		if !b.At.IsZero() { // only a message has a time of its own
			return "message"
		}
		return "custom_message"
	case session.Compaction:
		return "compaction"
	case session.Checkpoint:
		return "checkpoint"
	case session.BranchSummary:
		return "branch_summary"
	case session.Custom, session.Notice, session.Undo, session.Moved:
		return "custom"
	case session.ModelChange:
		return "model_change"
	case session.ThinkingChange:
		return "thinking_level_change"
	case session.Label:
		return "label"
	case session.Title:
		return "session_info"
	case session.Reset:
		return "reset"
	case session.Leaf:
		return "leaf"
	case session.Edit:
		return "context_edit"
	case session.Unknown:
		return b.Type
	}
	return ""
}

// link writes id, parentId and timestamp.
func (w *writer) link(r session.Record) {
	w.text("id", r.ID)
	switch {
	case r.Link == session.Blank:
		w.text("parentId", "")
	case r.Link == session.Absent:
	case r.Parent == "":
		w.raw("parentId", "null")
	default:
		w.text("parentId", r.Parent)
	}
	w.iso("timestamp", r.Time)
}

func (w *writer) header(h session.Header, t time.Time) {
	v := h.Version
	if v == 0 {
		v = session.Version
	}
	w.int("version", v)
	w.text("id", string(h.ID))
	w.iso("timestamp", t)
	w.text("cwd", h.CWD)
	w.opt("parentSession", h.Parent)
	w.opt("key", string(h.Key))
	if h.Origin != (session.Origin{}) {
		w.key("origin")
		w.open('{')
		w.opt("program", h.Origin.Program)
		w.opt("path", h.Origin.Path)
		w.opt("key", string(h.Origin.Key))
		w.opt("id", string(h.Origin.ID))
		if h.Origin.Seq != 0 {
			w.int("seq", int(h.Origin.Seq))
		}
		w.close('}')
	}
}

func (w *writer) body(r session.Record) {
	switch b := r.Body.(type) {
	case session.Message:
		w.key("message")
		w.message(b)
	case session.Shell:
		w.key("message")
		w.shell(b)
	case session.CustomMessage:
		if b.At.IsZero() {
			w.custom(b)
			return
		}
		w.key("message")
		w.open('{')
		w.text("role", "custom")
		w.custom(b)
		w.ms("timestamp", b.At)
		w.close('}')
	case session.Compaction:
		w.text("summary", b.Summary)
		w.text("firstKeptEntryId", b.FirstKept)
		w.opt("resumeEntryId", b.Resume)
		w.int("tokensBefore", b.TokensBefore)
		if b.TokensAfter != 0 {
			w.int("tokensAfter", b.TokensAfter)
		}
		w.json("details", b.Details)
		if b.Usage != (llm.Usage{}) {
			w.usage(b.Usage)
		}
		w.opt("fromCheckpoint", b.FromCheckpoint)
	case session.Checkpoint:
		w.text("summary", b.Summary)
		w.texts("topics", b.Topics)
		w.texts("decisions", b.Decisions)
		w.texts("questions", b.Questions)
		w.text("covers", b.Covers)
		w.int("tokens", b.Tokens)
		w.int("messages", b.Messages)
		w.opt("model", b.Model)
		if b.Usage != (llm.Usage{}) {
			w.usage(b.Usage)
		}
	case session.BranchSummary:
		w.text("fromId", b.From)
		w.text("summary", b.Summary)
		w.json("details", b.Details)
	case session.Custom:
		w.text("customType", b.Type)
		w.json("data", b.Data)
	case session.Notice:
		w.text("customType", typeNotice)
		w.key("data")
		w.open('{')
		w.int("percent", b.Percent)
		w.text("text", b.Text)
		w.text("as", b.As)
		if b.Once {
			w.bool("once", true)
		}
		w.close('}')
	case session.Undo:
		w.text("customType", typeUndo)
		w.key("data")
		w.open('{')
		w.text("targetId", b.Target)
		w.close('}')
	case session.Moved:
		w.text("customType", typeMoved)
		w.key("data")
		w.open('{')
		w.text("key", string(b.Key))
		w.close('}')
	case session.ModelChange:
		w.text("provider", b.Provider)
		w.text("modelId", b.Model)
		if b.Chosen {
			w.bool("chosen", true)
		}
	case session.ThinkingChange:
		w.text("thinkingLevel", b.Level)
	case session.Label:
		w.text("targetId", b.Target)
		w.opt("label", b.Label)
	case session.Title:
		w.text("name", strings.TrimSpace(b.Title))
	case session.Reset:
		w.text("reason", b.Reason)
		w.opt("firstKeptEntryId", b.FirstKept)
	case session.Leaf:
		w.text("targetId", b.Target)
		w.opt("appendParentId", b.AppendParent)
	case session.Edit:
		w.text("targetId", b.Target)
		if b.Drop {
			w.raw("replacement", "null")
			return
		}
		w.key("replacement")
		w.open('{')
		w.key("content")
		w.blocks(b.Blocks)
		w.close('}')
	case session.Unknown:
		w.err = fmt.Errorf("a record of the unknown kind %q without its line", b.Type)
	default:
		w.err = fmt.Errorf("a record without a body")
	}
}

func (w *writer) custom(b session.CustomMessage) {
	w.text("customType", b.Type)
	w.key("content")
	w.content(b.Blocks)
	w.bool("display", b.Display)
	w.json("details", b.Details)
}

func (w *writer) message(m session.Message) {
	w.open('{')
	result, ok := soleResult(m)
	if ok {
		w.text("role", "toolResult")
		w.text("toolCallId", result.CallID)
		w.text("toolName", result.Name)
		w.key("content")
		w.blocks(result.Blocks)
		w.json("details", m.Details)
		w.bool("isError", result.IsError)
	} else {
		w.text("role", string(m.Role))
		w.key("content")
		if m.Role == llm.Assistant {
			w.blocks(m.Blocks)
		} else {
			w.content(m.Blocks)
		}
		w.json("details", m.Details)
	}
	if m.Role == llm.Assistant { // pi adds up the usage and cost of every answer: they must be there
		w.text("api", m.API)
		w.text("provider", m.Provider)
		w.text("model", m.Model)
		w.usage(m.Usage)
	} else {
		w.opt("api", m.API)
		w.opt("provider", m.Provider)
		w.opt("model", m.Model)
		if m.Usage != (llm.Usage{}) {
			w.usage(m.Usage)
		}
	}
	w.opt("stopReason", string(m.Stop))
	w.opt("errorMessage", m.Error)
	if m.Cut {
		w.bool("cutRequest", true)
	}
	if m.Excluded {
		w.bool("excludeFromContext", true)
	}
	w.ms("timestamp", m.At)
	w.close('}')
}

// soleResult returns m's tool result if m is nothing else.
func soleResult(m session.Message) (llm.ToolResult, bool) {
	if m.Role != llm.User || len(m.Blocks) != 1 {
		return llm.ToolResult{}, false
	}
	r, ok := m.Blocks[0].(llm.ToolResult)
	return r, ok
}

func (w *writer) shell(s session.Shell) {
	w.open('{')
	w.text("role", "bashExecution")
	w.text("command", s.Command)
	w.text("output", s.Output)
	if s.ExitCode != nil {
		w.int("exitCode", *s.ExitCode)
	}
	w.bool("cancelled", s.Cancelled)
	w.bool("truncated", s.Truncated)
	w.opt("fullOutputPath", s.FullOutput)
	if s.Excluded {
		w.bool("excludeFromContext", true)
	}
	w.ms("timestamp", s.At)
	w.close('}')
}

// content writes plain text as a string, anything else as blocks.
func (w *writer) content(blocks []llm.Block) {
	if len(blocks) == 1 {
		if t, ok := blocks[0].(llm.Text); ok && t.Signature == "" && t.Text != "" {
			w.b = appendString(w.b, t.Text)
			return
		}
	}
	w.blocks(blocks)
}

func (w *writer) blocks(blocks []llm.Block) {
	w.open('[')
	for _, b := range blocks {
		w.comma()
		w.block(b)
	}
	w.close(']')
}

func (w *writer) block(b llm.Block) {
	if o, ok := b.(llm.Other); ok {
		w.value(o.Raw)
		return
	}
	w.open('{')
	switch b := b.(type) {
	case llm.Text:
		w.text("type", "text")
		w.text("text", b.Text)
		w.opt("textSignature", b.Signature)
	case llm.Thinking:
		w.text("type", "thinking")
		w.text("thinking", b.Text)
		w.opt("thinkingSignature", b.Signature)
		if b.Redacted {
			w.bool("redacted", true)
		}
	case llm.ToolCall:
		w.text("type", "toolCall")
		w.text("id", b.ID)
		w.text("name", b.Name)
		if len(b.Args) == 0 {
			w.raw("arguments", "{}")
		} else {
			w.json("arguments", b.Args)
		}
		w.opt("thoughtSignature", b.Signature)
	case llm.ToolResult:
		w.text("type", "toolResult")
		w.text("toolCallId", b.CallID)
		w.text("toolName", b.Name)
		w.key("content")
		w.blocks(b.Blocks)
		w.bool("isError", b.IsError)
	case llm.Image:
		w.text("type", "image")
		w.text("data", b.Data)
		w.text("mimeType", b.MIME)
	default:
		w.err = fmt.Errorf("a block without a kind")
	}
	w.close('}')
}

func (w *writer) usage(u llm.Usage) {
	w.key("usage")
	w.open('{')
	w.int("input", u.Input)
	w.int("output", u.Output)
	w.int("cacheRead", u.CacheRead)
	w.int("cacheWrite", u.CacheWrite)
	w.int("totalTokens", u.Total())
	w.key("cost")
	w.open('{')
	w.dollars("input", u.Cost.Input)
	w.dollars("output", u.Cost.Output)
	w.dollars("cacheRead", u.Cost.CacheRead)
	w.dollars("cacheWrite", u.Cost.CacheWrite)
	w.dollars("total", u.Cost.Total)
	w.close('}')
	if u.Estimated {
		w.bool("estimated", true)
	}
	w.close('}')
}

// dollars writes an amount. What is no number is not known.
func (w *writer) dollars(k string, usd float64) {
	if math.IsNaN(usd) || math.IsInf(usd, 0) {
		usd = 0
	}
	w.key(k)
	w.b = strconv.AppendFloat(w.b, usd, 'f', -1, 64)
}

func (w *writer) open(c byte)  { w.b = append(w.b, c) }
func (w *writer) close(c byte) { w.b = append(w.b, c) }

func (w *writer) comma() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

func (w *writer) key(k string) {
	w.comma()
	w.b = append(w.b, '"')
	w.b = append(w.b, k...)
	w.b = append(w.b, '"', ':')
}

func (w *writer) text(k, s string) {
	w.key(k)
	w.b = appendString(w.b, s)
}

func (w *writer) opt(k, s string) {
	if s != "" {
		w.text(k, s)
	}
}

func (w *writer) texts(k string, list []string) {
	if len(list) == 0 {
		return
	}
	w.key(k)
	w.open('[')
	for _, s := range list {
		w.comma()
		w.b = appendString(w.b, s)
	}
	w.close(']')
}

func (w *writer) int(k string, n int) {
	w.key(k)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *writer) bool(k string, v bool) {
	w.key(k)
	w.b = strconv.AppendBool(w.b, v)
}

func (w *writer) raw(k, json string) {
	w.key(k)
	w.b = append(w.b, json...)
}

// json writes a value that is JSON already, if there is one.
func (w *writer) json(k string, v json.RawMessage) {
	if len(v) == 0 {
		return
	}
	w.key(k)
	w.value(v)
}

// value writes v as it is, but on one line.
func (w *writer) value(v json.RawMessage) {
	d := decoders.Get().(*decoder)
	defer d.done()
	if err := d.parse(v); err != nil {
		w.err = fmt.Errorf("a part that is not JSON: %w", err)
		return
	}
	if bytes.IndexByte(v, '\n') < 0 {
		w.b = append(w.b, d.tape.raw(0)...)
		return
	}
	var one bytes.Buffer
	if err := json.Compact(&one, v); err != nil {
		w.err = fmt.Errorf("a part that is not JSON: %w", err)
		return
	}
	w.b = append(w.b, one.Bytes()...)
}

func (w *writer) iso(k string, t time.Time) {
	w.key(k)
	w.b = append(w.b, '"')
	w.b = t.UTC().AppendFormat(w.b, "2006-01-02T15:04:05.000Z")
	w.b = append(w.b, '"')
}

// ms writes a time that is known.
func (w *writer) ms(k string, t time.Time) {
	if t.IsZero() {
		return
	}
	w.key(k)
	w.b = strconv.AppendInt(w.b, t.UnixMilli(), 10)
}

// appendString quotes s as JSON.stringify does: only what must be escaped is.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(slices.Grow(b, len(s)+len(s)/16+2), '"')
	from := 0
	for i := 0; i < len(s); i++ {
		for i+8 <= len(s) {
			x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
				uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
			hit := special(x)
			if hit != 0 {
				i += bits.TrailingZeros64(hit) / 8
				break
			}
			i += 8
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(append(b, s[from:]...), '"')
}
