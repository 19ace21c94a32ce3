package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"goclaw/internal/codec/native"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// stream reads the lines of Claude Code: a tree by uuid and parentUuid, one
// line for each block of an answer, tool results as user lines, a compaction
// as a boundary and a user line with the summary.
//
// A line is a record with the line's uuid, and carries the line in the field
// "claude-code"; consecutive lines of one answer are one record. A line that
// holds several results, or a result and a text, is several records, of which the
// first carries the line. What the program itself told the model (attached files,
// notifications, its own commands) are messages on its behalf. Other lines that
// others continue (system, progress, attachment) are custom data; titles are
// titles; anything else is kept verbatim, outside of the conversation.
//
// Parallel calls put their results on separate branches: a line whose parent is
// anywhere in the current turn continues the line before it.
type stream struct {
	side   bool // a subagent's own file: its lines are the conversation
	leaf   string
	turn   map[string]bool // uuids of the current turn
	at     map[uint64]bool // all uuids, by hash
	calls  map[string]string
	held   *source.Draft // an answer that the next lines may continue
	answer string        // its id, or that of the last one
	part   string        // the record with the end of the last one
	// counted are the answers whose usage was counted.
	counted map[uint64]bool
	// merged are the uuids of lines whose record has another id: that of an answer,
	// or of the last of several records.
	merged map[uint64]string
	parts  []string // of the answer that is held

	titles  map[string]string // of lines that are still to come
	named   bool              // the user has given a title
	compact claudeCompact     // the boundary whose summary is still to come

	past   func(session string) (io.ReadCloser, error) // opens the file of the session that a subagent is a fork of
	forked bool                                        // its past was read
	copied bool                                        // it is such a past: its usage was counted there
}

func newStream(side bool, past func(session string) (io.ReadCloser, error)) *stream {
	return &stream{side: side, past: past, turn: map[string]bool{}, at: map[uint64]bool{}, calls: map[string]string{}, counted: map[uint64]bool{}, merged: map[uint64]string{}, titles: map[string]string{}}
}

// hash shortens a uuid: a long file has many.
func hash(s string) uint64 { return maphash.String(seed, s) }

var seed = maphash.MakeSeed()

// claudeCompact says what a compaction keeps word for word: the lines from
// Head to Tail, or those of UUIDs. They follow the line Anchor, which is the
// summary, or the boundary if they come before the summary.
type claudeCompact struct {
	PreTokens int `json:"preTokens"`
	Segment   struct {
		Head   string `json:"headUuid"`
		Anchor string `json:"anchorUuid"`
		Tail   string `json:"tailUuid"`
	} `json:"preservedSegment"`
	Messages struct {
		Anchor string   `json:"anchorUuid"`
		UUIDs  []string `json:"uuids"`
	} `json:"preservedMessages"`
}

// keepsBefore reports whether the boundary l keeps what comes before the summary:
// "Summarize from here". The branch then continues where the boundary says.
func (l claudeLine) keepsBefore() bool {
	k := l.Compacted
	return l.Subtype == "compact_boundary" && l.UUID != "" && cmp.Or(k.Segment.Anchor, k.Messages.Anchor) == l.UUID
}

// kept returns the first line that is kept, and all that are known by name.
func (k claudeCompact) kept() (first string, all []string) {
	all = k.Messages.UUIDs
	if k.Segment.Head != "" {
		return k.Segment.Head, append(all[:len(all):len(all)], k.Segment.Head, k.Segment.Tail)
	}
	if len(all) > 0 {
		first = all[0]
	}
	return first, all
}

type claudeLine struct {
	Type          string          `json:"type"`
	Subtype       string          `json:"subtype"`
	UUID          string          `json:"uuid"`
	Parent        *string         `json:"parentUuid"`
	LogicalParent string          `json:"logicalParentUuid"`
	Sidechain     bool            `json:"isSidechain"`
	Timestamp     string          `json:"timestamp"`
	CWD           string          `json:"cwd"`
	SessionID     string          `json:"sessionId"`
	Meta          bool            `json:"isMeta"`
	Compact       bool            `json:"isCompactSummary"`
	ShownOnly     bool            `json:"isVisibleInTranscriptOnly"`
	APIError      bool            `json:"isApiErrorMessage"`
	Origin        json.RawMessage `json:"origin"`
	Summarize     json.RawMessage `json:"summarizeMetadata"`
	ParentSession string          `json:"parentSessionId"`
	ParentLast    string          `json:"parentLastUuid"`
	Content       json.RawMessage `json:"content"`
	Summary       string          `json:"summary"`
	CustomTitle   string          `json:"customTitle"`
	AITitle       string          `json:"aiTitle"`
	LeafUUID      string          `json:"leafUuid"`
	Attachment    json.RawMessage `json:"attachment"`
	Rendered      json.RawMessage `json:"rendered"`
	RenderedRole  string          `json:"renderedRole"`
	Compacted     claudeCompact   `json:"compactMetadata"`
	Message       struct {
		ID      string          `json:"id"`
		Role    string          `json:"role"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Stop    string          `json:"stop_reason"`
		Usage   struct {
			Input      int `json:"input_tokens"`
			Output     int `json:"output_tokens"`
			CacheRead  int `json:"cache_read_input_tokens"`
			CacheWrite int `json:"cache_creation_input_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

// Line implements codec.Stream.
func (c *stream) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	var l claudeLine
	if err := json.Unmarshal(line, &l); err != nil {
		if source.Broken(err) {
			return out, fmt.Errorf("not a JSON line")
		}
		return c.aside(out, line, source.Verbatim(n, line, time.Time{})), nil // fields of other types than they had
	}
	at := source.ISOTime(l.Timestamp)
	if l.UUID == "" {
		if l.Type == forkRef {
			out = c.fork(out, l)
		}
		if title := c.title(l); title != "" {
			return c.aside(out, line, func(parent string) session.Record {
				return source.Carry(session.Record{ID: native.LineID(n, line), Parent: parent, Side: true, Time: at, Body: session.Title{Title: title}}, Program, line)
			}), nil
		}
		return c.aside(out, line, source.Verbatim(n, line, at)), nil
	}
	if c.at[hash(l.UUID)] {
		return c.aside(out, line, source.Verbatim(n, line, at)), nil
	}
	side := l.Sidechain && !c.side
	body := c.body(l, at)
	c.at[hash(l.UUID)] = true
	m, isMessage := body.(session.Message)
	answer := isMessage && m.Role == llm.Assistant && !side && l.Message.ID != ""
	if answer && c.held != nil && l.Message.ID == c.answer {
		c.parts = append(c.parts, c.held.Rec.ID)
		for _, part := range c.parts {
			c.merged[hash(part)] = l.UUID
		}
		c.held.Add(l.UUID, m, line)
		c.turn[l.UUID], c.leaf = true, l.UUID
		if c.held.Full() {
			out = c.End(out)
		}
		return c.late(out, l.UUID), nil
	}
	out = c.End(out)
	if answer && l.Message.ID == c.answer {
		m.Continues = c.part
		body = m
	}
	r := session.Record{ID: l.UUID, Parent: c.parent(l), Side: side, Time: at, Body: body}
	if !side {
		if c.prompt(l, body) {
			clear(c.turn)
		}
		c.turn[l.UUID], c.leaf = true, l.UUID
	}
	switch {
	case answer:
		c.held, c.answer = source.NewDraft(r, line), l.Message.ID
	default:
		out = c.split(out, r, line)
	}
	if l.Subtype == "compact_boundary" {
		c.compact = l.Compacted
	}
	if _, ok := body.(session.Compaction); ok {
		// The kept records follow the summary.
		_, all := c.compact.kept()
		for _, uuid := range all {
			c.turn[uuid] = true
		}
		c.compact = claudeCompact{}
	}
	return c.late(out, l.UUID), nil
}

// split adds the record of a line, or several if it holds more than one result:
// each result is a record for itself, and a text next to them is one, too. The
// first carries the line.
func (c *stream) split(out []session.Record, r session.Record, line []byte) []session.Record {
	m, ok := r.Body.(session.Message)
	if !ok || len(m.Blocks) < 2 || len(m.Results()) == 0 {
		return append(out, source.Carry(r, Program, line))
	}
	var parts [][]llm.Block
	var said []llm.Block
	for _, b := range m.Blocks {
		if _, result := b.(llm.ToolResult); result {
			parts = append(parts, []llm.Block{b})
		} else {
			said = append(said, b)
		}
	}
	if len(said) > 0 {
		parts = append(parts, said)
	}
	uuid := r.ID
	for i, blocks := range parts {
		m.Blocks = blocks
		r.Body = m
		if i == 0 {
			out = append(out, source.Carry(r, Program, line))
			continue
		}
		r.Parent, r.ID = r.ID, fmt.Sprintf("%s.%d", uuid, i+1)
		out = append(out, source.Made(r))
	}
	if c.merged[hash(uuid)] = r.ID; !r.Side {
		c.leaf = r.ID
	}
	return out
}

// title returns what a line without a place says that the session is called.
// A summary names the session of the line that it was made for, which may be
// another one; what the user has chosen stays.
func (c *stream) title(l claudeLine) string {
	switch {
	case l.CustomTitle != "":
		c.named = true
		return l.CustomTitle
	case c.named:
		return ""
	case l.AITitle != "":
		return l.AITitle
	case l.Summary == "" || l.LeafUUID == "":
		return ""
	case c.at[hash(l.LeafUUID)]:
		return l.Summary
	case len(c.titles) < 1000:
		c.titles[l.LeafUUID] = l.Summary
	}
	return ""
}

// late adds the title that was given before the line that it was made for.
func (c *stream) late(out []session.Record, uuid string) []session.Record {
	title, ok := c.titles[uuid]
	if !ok || c.named {
		return out
	}
	delete(c.titles, uuid)
	return c.aside(out, nil, func(parent string) session.Record {
		return session.Record{ID: "title-" + uuid, Parent: parent, Side: true, Body: session.Title{Title: title}}
	})
}

// aside takes in a line that has no place in the conversation.
func (c *stream) aside(out []session.Record, line []byte, record source.Aside) []session.Record {
	return c.held.Aside(out, line, record, c.leaf, c.End)
}

// End implements codec.Stream.
func (c *stream) End(out []session.Record) []session.Record {
	if c.held != nil {
		c.part = c.held.Rec.ID
	}
	out = c.held.Emit(Program, out)
	c.held, c.parts = nil, nil
	return out
}

// prompt reports whether a line begins a turn.
func (c *stream) prompt(l claudeLine, b session.Body) bool {
	return l.Type == "user" && !l.Meta && (session.IsTurn(b) || isNotification(l, b))
}

// isNotification reports whether a line tells the model that a task in the
// background has ended. The program wrote it, not the user.
func isNotification(l claudeLine, b session.Body) bool {
	if word(l.Origin, "kind") == notification {
		return true
	}
	var blocks []llm.Block
	switch b := b.(type) {
	case session.Message:
		blocks = b.Blocks
	case session.CustomMessage:
		blocks = b.Blocks
	}
	return l.Type == "user" && strings.HasPrefix(llm.Message{Blocks: blocks}.Text(), "<"+notification+">")
}

const notification = "task-notification"

// word returns a field of an object that is a text, or "".
func word(object json.RawMessage, name string) string {
	var fields map[string]any
	_ = json.Unmarshal(object, &fields) // what is no object has no fields
	text, _ := fields[name].(string)
	return text
}

// parent returns what a line continues.
func (c *stream) parent(l claudeLine) string {
	up := l.LogicalParent
	if l.Parent != nil && *l.Parent != "" {
		up = *l.Parent
	}
	switch {
	case l.Sidechain && !c.side:
		return up
	case l.keepsBefore() && c.at[hash(up)]:
		return cmp.Or(c.merged[hash(up)], up)
	case up != "" && c.turn[up], l.Subtype == "compact_boundary" && !c.at[hash(up)]:
		return c.leaf
	case up != "" && c.at[hash(up)]:
		return cmp.Or(c.merged[hash(up)], up)
	case up != "", c.forked: // not in this file: everything in it comes before
		return c.leaf
	}
	return ""
}

func (c *stream) body(l claudeLine, at time.Time) session.Body {
	switch l.Type {
	case "user":
		blocks := source.Anthropic(l.Message.Content)
		if l.Compact && word(l.Summarize, "direction") == "from" { // of a branch that was left: what comes before is kept
			return session.CustomMessage{Type: "claude-code.summary", Blocks: blocks, At: at}
		}
		if l.Compact {
			first, _ := c.compact.kept()
			if !c.at[hash(first)] {
				first = l.UUID
			}
			return session.Compaction{Summary: llm.Message{Blocks: blocks}.Text(), FirstKept: cmp.Or(c.merged[hash(first)], first), TokensBefore: c.compact.PreTokens}
		}
		for i, b := range blocks {
			if r, ok := b.(llm.ToolResult); ok {
				r.Name = c.calls[r.CallID]
				delete(c.calls, r.CallID)
				blocks[i] = r
			}
		}
		m := session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: at, Excluded: l.ShownOnly}
		switch {
		case l.Meta:
			return session.CustomMessage{Type: "claude-code.meta", Blocks: blocks, At: at}
		case isNotification(l, m):
			return session.CustomMessage{Type: "claude-code." + notification, Blocks: blocks, At: at}
		}
		return m
	case "assistant":
		m := session.Message{
			Message: llm.Message{Role: llm.Assistant, Blocks: source.Anthropic(l.Message.Content)}, At: at,
			Provider: "anthropic", API: "anthropic-messages", Model: l.Message.Model, Stop: stopOf(l.Message.Stop),
		}
		for _, call := range m.Calls() {
			c.calls[call.ID] = call.Name
		}
		if l.APIError || l.Message.Model == "<synthetic>" {
			m.Excluded, m.Provider, m.Model = true, "", ""
			if l.APIError {
				m.Stop, m.Error = llm.StopError, strings.TrimSpace(m.Text())
			}
			return m
		}
		// Each line of an answer repeats the usage of the whole: only the last
		// of a consecutive run counts.
		if !c.copied && (c.held != nil && l.Message.ID == c.answer || l.Message.ID == "" || !c.counted[hash(l.Message.ID)]) {
			u := l.Message.Usage
			m.Usage = llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
			c.counted[hash(l.Message.ID)] = true
		}
		return m
	case "attachment":
		if b := l.attached(at); b != nil {
			return b
		}
	case "system":
		// What a command of the program's own did.
		if blocks := source.Anthropic(l.Content); l.Subtype == "local_command" && len(blocks) > 0 {
			return session.CustomMessage{Type: "claude-code.local_command", Blocks: blocks, At: at}
		}
	}
	kind := l.Type
	if l.Subtype != "" {
		kind += "." + l.Subtype
	}
	return session.Custom{Type: "claude-code." + kind}
}

func stopOf(reason string) llm.Stop {
	switch reason {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopTool
	case "max_tokens":
		return llm.StopLength
	}
	return llm.Stop(reason)
}
