package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/maphash"
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
// "claude-code"; consecutive lines of one answer are one record. Lines without
// text for a model that others continue (system, progress, attachment) are
// custom data; titles are titles; anything else is kept verbatim, outside of
// the conversation.
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
	answer string        // its id
	// counted are the answers whose usage was counted.
	counted map[uint64]bool
	// merged are the uuids that are part of an answer, and its id.
	merged map[uint64]string
	parts  []string // of the answer that is held

	titles  map[string]string // of lines that are still to come
	named   bool              // the user has given a title
	compact claudeCompact     // the boundary whose summary is still to come
}

func newStream(side bool) *stream {
	return &stream{side: side, turn: map[string]bool{}, at: map[uint64]bool{}, calls: map[string]string{}, counted: map[uint64]bool{}, merged: map[uint64]string{}, titles: map[string]string{}}
}

// hash shortens a uuid: a long file has many.
func hash(s string) uint64 { return maphash.String(seed, s) }

var seed = maphash.MakeSeed()

// claudeCompact says what a compaction keeps word for word: the lines from
// Head to Tail, or those of UUIDs.
type claudeCompact struct {
	PreTokens int `json:"preTokens"`
	Segment   struct {
		Head string `json:"headUuid"`
		Tail string `json:"tailUuid"`
	} `json:"preservedSegment"`
	Messages struct {
		UUIDs []string `json:"uuids"`
	} `json:"preservedMessages"`
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
	Type          string  `json:"type"`
	Subtype       string  `json:"subtype"`
	UUID          string  `json:"uuid"`
	Parent        *string `json:"parentUuid"`
	LogicalParent string  `json:"logicalParentUuid"`
	Sidechain     bool    `json:"isSidechain"`
	Timestamp     string  `json:"timestamp"`
	CWD           string  `json:"cwd"`
	SessionID     string  `json:"sessionId"`
	Meta          bool    `json:"isMeta"`
	Compact       bool    `json:"isCompactSummary"`
	ShownOnly     bool    `json:"isVisibleInTranscriptOnly"`
	APIError      bool    `json:"isApiErrorMessage"`
	Summary       string  `json:"summary"`
	CustomTitle   string  `json:"customTitle"`
	AITitle       string  `json:"aiTitle"`
	LeafUUID      string  `json:"leafUuid"`
	Attachment    struct {
		Type   string          `json:"type"`
		Prompt json.RawMessage `json:"prompt"`
		Mode   string          `json:"commandMode"`
	} `json:"attachment"`
	Compacted claudeCompact `json:"compactMetadata"`
	Message   struct {
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
		return c.aside(out, source.Verbatim(n, line)), nil // fields of other types than they had
	}
	at := source.ISOTime(l.Timestamp)
	if l.UUID == "" {
		if title := c.title(l); title != "" {
			r := session.Record{ID: native.LineID(n, line), Parent: c.leaf, Side: true, Time: at, Body: session.Title{Title: title}}
			return c.aside(out, source.Carry(r, Program, line)), nil
		}
		return c.aside(out, source.Verbatim(n, line)), nil
	}
	if c.at[hash(l.UUID)] {
		return c.aside(out, source.Verbatim(n, line)), nil
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
	r := session.Record{ID: l.UUID, Parent: c.parent(l), Side: side, Time: at, Body: body}
	if !side {
		if prompt(l, body) {
			clear(c.turn)
		}
		c.turn[l.UUID], c.leaf = true, l.UUID
	}
	switch {
	case answer:
		c.held, c.answer = source.NewDraft(r, line), l.Message.ID
	default:
		out = append(out, source.Carry(r, Program, line))
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
	return c.aside(out, session.Record{ID: "title-" + uuid, Parent: c.leaf, Side: true, Body: session.Title{Title: title}})
}

// aside takes in a record that has no place in the conversation.
func (c *stream) aside(out []session.Record, r session.Record) []session.Record {
	return c.held.Aside(out, r, c.End)
}

// End implements codec.Stream.
func (c *stream) End(out []session.Record) []session.Record {
	out = c.held.Emit(Program, out)
	c.held, c.parts = nil, nil
	return out
}

// prompt reports whether a line begins a turn.
func prompt(l claudeLine, b session.Body) bool {
	return l.Type == "user" && !l.Meta && session.IsTurn(b)
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
	case up != "" && c.turn[up], l.Subtype == "compact_boundary" && !c.at[hash(up)]:
		return c.leaf
	case up != "" && c.at[hash(up)]:
		return cmp.Or(c.merged[hash(up)], up)
	case up != "": // not in this file: everything in it comes before
		return c.leaf
	}
	return ""
}

func (c *stream) body(l claudeLine, at time.Time) session.Body {
	switch l.Type {
	case "user":
		blocks := source.Anthropic(l.Message.Content)
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
		if l.Meta {
			return session.CustomMessage{Type: "claude-code.meta", Blocks: blocks, At: at}
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
		if c.held != nil && l.Message.ID == c.answer || l.Message.ID == "" || !c.counted[hash(l.Message.ID)] {
			u := l.Message.Usage
			m.Usage = llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
			c.counted[hash(l.Message.ID)] = true
		}
		return m
	case "attachment":
		// Input that came while the program was busy is nowhere else.
		if blocks := source.Anthropic(l.Attachment.Prompt); l.Attachment.Type == "queued_command" && len(blocks) > 0 {
			if l.Attachment.Mode == "prompt" || l.Attachment.Mode == "" {
				return session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: at}
			}
			return session.CustomMessage{Type: "claude-code." + l.Attachment.Mode, Blocks: blocks, At: at}
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
