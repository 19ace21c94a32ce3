package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"goclaw/internal/rawjson"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Encode returns the line of r: Raw if there is one. The fields are in the
// order in which pi writes them, goclaw's own after them, the checksum last.
func Encode(r session.Record) ([]byte, error) { return encode(r, true) }

// Bare is Encode without a checksum, for a line that is not complete yet or that
// is compared with one written by an older version.
func Bare(r session.Record) ([]byte, error) { return encode(r, false) }

func encode(r session.Record, seal bool) ([]byte, error) {
	fail := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("codec: record %d (%q): "+format, append([]any{r.Seq, r.ID}, args...)...)
	}
	if len(r.Raw) > 0 {
		switch {
		case bytes.IndexByte(r.Raw, '\n') >= 0:
			return fail("a line end in the middle of its line")
		case len(r.Raw) > storekit.MaxRecord:
			return fail("%d bytes, the limit is %d: %w", len(r.Raw), storekit.MaxRecord, session.ErrTooLarge)
		}
		return r.Raw, nil
	}
	if y := r.Time.UTC().Year(); y < 0 || y > 9999 {
		return fail("a time in the year %d", y)
	}
	w := writers.Get().(*writer)
	w.B, w.Err = w.B[:0], nil
	defer func() {
		if cap(w.B) <= maxSpare {
			writers.Put(w)
		}
	}()
	w.record(r)
	if seal {
		w.B = Seal(w.B)
	}
	switch {
	case w.Err != nil:
		return fail("%w", w.Err)
	case !utf8.Valid(w.B):
		return fail("text that is not UTF-8")
	case len(w.B) > storekit.MaxRecord:
		return fail("%d bytes, the limit is %d: %w", len(w.B), storekit.MaxRecord, session.ErrTooLarge)
	}
	return bytes.Clone(w.B), nil
}

// writers are used again and again, unless a line was very long.
var writers = sync.Pool{New: func() any {
	w := new(writer)
	w.B = make([]byte, 0, 4<<10)
	return w
}}

const maxSpare = 256 << 10

// writer builds a line.
type writer struct{ rawjson.Writer }

func (w *writer) record(r session.Record) {
	typ := typeOf(r)
	w.Object("", func() {
		w.Text("type", typ)
		if h, ok := r.Body.(session.Header); ok {
			w.header(h, r.Time)
			return
		}
		if typ == "custom" || typ == "custom_message" { // pi writes their body first
			w.body(r)
			w.link(r)
		} else {
			w.link(r)
			w.body(r)
		}
		if r.Side {
			w.Text("appendMode", "side")
		}
	})
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
	case session.Usage:
		return "usage"
	case session.BranchSummary:
		return "branch_summary"
	case session.Custom, session.Notice, session.Undo, session.Moved, session.Marked, session.Refused, session.Partial:
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
	case session.Redaction:
		return "redaction"
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
	w.Text("id", r.ID)
	switch {
	case r.Link == session.Blank:
		w.Text("parentId", "")
	case r.Link == session.Absent:
	case r.Parent == "":
		w.Raw("parentId", "null")
	default:
		w.Text("parentId", r.Parent)
	}
	w.iso("timestamp", r.Time)
}

func (w *writer) header(h session.Header, t time.Time) {
	v := h.Version
	if v == 0 {
		v = session.Version
	}
	w.Int("version", v)
	w.Text("id", string(h.ID))
	w.iso("timestamp", t)
	w.Text("cwd", h.CWD)
	w.Opt("parentSession", h.Parent)
	w.Opt("key", string(h.Key))
	if o := h.Origin; o != (session.Origin{}) {
		w.Object("origin", func() {
			w.Opt("program", o.Program)
			w.Opt("path", o.Path)
			w.Opt("key", string(o.Key))
			w.Opt("id", string(o.ID))
			if o.Seq != 0 {
				w.Int("seq", int(o.Seq))
			}
			w.Opt("mark", o.Mark)
		})
	}
}

func (w *writer) body(r session.Record) {
	switch b := r.Body.(type) {
	case session.Message:
		w.Object("message", func() { w.message(b) })
	case session.Shell:
		w.Object("message", func() { w.shell(b) })
	case session.CustomMessage:
		if b.At.IsZero() {
			w.custom(b)
			return
		}
		w.Object("message", func() {
			w.Text("role", "custom")
			w.custom(b)
			w.ms("timestamp", b.At)
		})
	case session.Compaction:
		w.Text("summary", b.Summary)
		w.Text("firstKeptEntryId", b.FirstKept)
		w.Opt("resumeEntryId", b.Resume)
		w.Int("tokensBefore", b.TokensBefore)
		if b.TokensAfter != 0 {
			w.Int("tokensAfter", b.TokensAfter)
		}
		w.JSON("details", b.Details)
		w.usage(b.Usage, false)
		w.Opt("fromCheckpoint", b.FromCheckpoint)
	case session.Checkpoint:
		w.Text("summary", b.Summary)
		w.Texts("topics", b.Topics)
		w.Texts("decisions", b.Decisions)
		w.Texts("questions", b.Questions)
		w.Text("covers", b.Covers)
		w.Int("tokens", b.Tokens)
		w.Int("messages", b.Messages)
		w.Opt("model", b.Model)
		w.usage(b.Usage, false)
	case session.Usage:
		w.Text("kind", b.Kind)
		w.Text("provider", b.Provider)
		w.Text("model", b.Model)
		w.usage(b.Usage, true)
		w.Opt("note", b.Note)
	case session.BranchSummary:
		w.Text("fromId", b.From)
		w.Text("summary", b.Summary)
		w.JSON("details", b.Details)
	case session.Custom:
		w.Text("customType", b.Type)
		w.JSON("data", b.Data)
	case session.Notice, session.Undo, session.Moved, session.Marked, session.Refused, session.Partial:
		w.own(b)
	case session.ModelChange:
		w.Text("provider", b.Provider)
		w.Text("modelId", b.Model)
		w.Flag("chosen", b.Chosen)
	case session.ThinkingChange:
		w.Text("thinkingLevel", b.Level)
	case session.Label:
		w.Text("targetId", b.Target)
		w.Opt("label", b.Label)
	case session.Title:
		w.Text("name", strings.TrimSpace(b.Title))
	case session.Reset:
		w.Text("reason", b.Reason)
		w.Opt("firstKeptEntryId", b.FirstKept)
	case session.Redaction:
		w.targets(b.Targets)
	case session.Leaf:
		w.Text("targetId", b.Target)
		w.Opt("appendParentId", b.AppendParent)
	case session.Edit:
		w.Text("targetId", b.Target)
		if b.Drop {
			w.Raw("replacement", "null")
			return
		}
		w.Object("replacement", func() { w.blocks(b.Blocks) })
	case session.Unknown:
		w.Err = fmt.Errorf("a record of the unknown kind %q without its line", b.Type)
	default:
		w.Err = fmt.Errorf("a record without a body")
	}
}

// own writes a record of goclaw's own as custom data, which other programs skip.
func (w *writer) own(b session.Body) {
	switch b := b.(type) {
	case session.Notice:
		w.Text("customType", typeNotice)
		w.Object("data", func() {
			w.Int("percent", b.Percent)
			w.Text("text", b.Text)
			w.Text("as", b.As)
			w.Flag("once", b.Once)
		})
	case session.Undo:
		w.Text("customType", typeUndo)
		w.Object("data", func() { w.Text("targetId", b.Target) })
	case session.Moved:
		w.Text("customType", typeMoved)
		w.Object("data", func() { w.Text("key", string(b.Key)) })
	case session.Marked:
		w.Text("customType", typeMarked)
		w.Object("data", func() { w.Text("mark", b.Mark) })
	case session.Refused:
		w.Text("customType", typeRefused)
		w.Object("data", func() {
			w.Text("targetId", b.Target)
			w.Int("block", b.Block)
			w.Text("problem", b.Why)
		})
	case session.Partial:
		w.Text("customType", typePartial)
		w.Object("data", func() {
			w.Int("offset", b.Offset)
			w.Opt("thinking", b.Thinking)
			w.Opt("text", b.Text)
			w.Opt("provider", b.Provider)
			w.Opt("model", b.Model)
		})
	}
}

func (w *writer) targets(list []session.Target) {
	data, err := json.Marshal(list)
	if err != nil {
		w.Err = err
	}
	w.JSON("targets", data)
}

func (w *writer) custom(b session.CustomMessage) {
	w.Text("customType", b.Type)
	w.content(b.Blocks)
	w.Bool("display", b.Display)
	w.JSON("details", b.Details)
}

func (w *writer) message(m session.Message) {
	answer := m.Role == llm.Assistant
	if result, ok := soleResult(m); ok {
		w.Text("role", "toolResult")
		w.Text("toolCallId", result.CallID)
		w.Text("toolName", result.Name)
		w.blocks(result.Blocks)
		w.JSON("details", m.Details)
		w.Bool("isError", result.IsError)
	} else {
		w.Text("role", string(m.Role))
		if answer {
			w.blocks(m.Blocks)
		} else {
			w.content(m.Blocks)
		}
		w.JSON("details", m.Details)
	}
	text := w.Opt
	if answer { // pi adds up the usage and cost of every answer: they must be there
		text = w.Text
	}
	text("api", m.API)
	text("provider", m.Provider)
	text("model", m.Model)
	w.usage(m.Usage, answer)
	w.Opt("stopReason", string(m.Stop))
	w.Opt("errorMessage", m.Error)
	w.Opt("continues", m.Continues)
	w.Flag("cutRequest", m.Cut)
	w.Flag("excludeFromContext", m.Excluded)
	w.ms("timestamp", m.At)
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
	w.Text("role", "bashExecution")
	w.Text("command", s.Command)
	w.Text("output", s.Output)
	if s.ExitCode != nil {
		w.Int("exitCode", *s.ExitCode)
	}
	w.Bool("cancelled", s.Cancelled)
	w.Bool("truncated", s.Truncated)
	w.Opt("fullOutputPath", s.FullOutput)
	w.Flag("excludeFromContext", s.Excluded)
	w.ms("timestamp", s.At)
}

// content writes plain text as a string, anything else as blocks.
func (w *writer) content(blocks []llm.Block) {
	if len(blocks) == 1 {
		if t, ok := blocks[0].(llm.Text); ok && t.Signature == "" && t.Text != "" {
			w.Text("content", t.Text)
			return
		}
	}
	w.blocks(blocks)
}

func (w *writer) blocks(blocks []llm.Block) {
	w.Array("content", func() {
		for _, b := range blocks {
			if o, ok := b.(llm.Other); ok {
				w.Value("", o.Raw)
				continue
			}
			w.Object("", func() { w.block(b) })
		}
	})
}

func (w *writer) block(b llm.Block) {
	switch b := b.(type) {
	case llm.Text:
		w.Text("type", "text")
		w.Text("text", b.Text)
		w.Opt("textSignature", b.Signature)
	case llm.Thinking:
		w.Text("type", "thinking")
		w.Text("thinking", b.Text)
		w.Opt("thinkingSignature", b.Signature)
		w.Flag("redacted", b.Redacted)
	case llm.ToolCall:
		w.Text("type", "toolCall")
		w.Text("id", b.ID)
		w.Text("name", b.Name)
		w.JSON("arguments", Args(b))
		w.Opt("thoughtSignature", b.Signature)
	case llm.ToolResult:
		w.Text("type", "toolResult")
		w.Text("toolCallId", b.CallID)
		w.Text("toolName", b.Name)
		w.blocks(b.Blocks)
		w.Bool("isError", b.IsError)
	case llm.Image:
		w.Text("type", "image")
		w.Text("data", b.Data)
		w.Text("mimeType", b.MIME)
	default:
		w.Err = fmt.Errorf("a block without a kind")
	}
}

// Args returns the arguments of c, an empty object if it has none.
func Args(c llm.ToolCall) []byte {
	if len(c.Args) == 0 {
		return []byte("{}")
	}
	return c.Args
}

// usage writes u if it says anything, or must be there.
func (w *writer) usage(u llm.Usage, must bool) {
	if u == (llm.Usage{}) && !must {
		return
	}
	w.Object("usage", func() {
		w.Int("input", u.Input)
		w.Int("output", u.Output)
		w.Int("cacheRead", u.CacheRead)
		w.Int("cacheWrite", u.CacheWrite)
		w.Int("totalTokens", u.Total())
		w.Object("cost", func() {
			w.dollars("input", u.Cost.Input)
			w.dollars("output", u.Cost.Output)
			w.dollars("cacheRead", u.Cost.CacheRead)
			w.dollars("cacheWrite", u.Cost.CacheWrite)
			w.dollars("total", u.Cost.Total)
		})
		w.Flag("estimated", u.Estimated)
	})
}

// dollars writes an amount, 0 if it is not a number.
func (w *writer) dollars(k string, usd float64) {
	if math.IsNaN(usd) || math.IsInf(usd, 0) {
		usd = 0
	}
	w.Key(k)
	w.B = strconv.AppendFloat(w.B, usd, 'f', -1, 64)
}

func (w *writer) iso(k string, t time.Time) {
	w.Key(k)
	w.B = t.UTC().AppendFormat(w.B, `"2006-01-02T15:04:05.000Z"`)
}

// ms writes a time in milliseconds, if it is known.
func (w *writer) ms(k string, t time.Time) {
	if !t.IsZero() {
		w.Key(k)
		w.B = strconv.AppendInt(w.B, t.UnixMilli(), 10)
	}
}
