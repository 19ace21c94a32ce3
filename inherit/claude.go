package inherit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"goclaw/codec"
	"goclaw/llm"
	"goclaw/session"
)

// claude reads the lines of Claude Code: a tree by uuid and parentUuid, one
// line for each block of an answer, tool results as user lines, a compaction
// as a boundary and a user line with the summary.
//
// A line is a record with the line's uuid, and carries the line in the field
// "claude-code"; the lines of one answer that stand together are one record.
// Lines that say nothing to a model but that others continue
// (system, progress, attachment) are custom data; titles are titles; anything
// else is kept verbatim, outside of the conversation.
//
// Calls that ran side by side leave the results on branches of their own: a
// line whose parent is anywhere in the turn that goes on continues the line
// before it.
type claude struct {
	side   bool // a subagent's own file: its lines are the conversation
	begun  bool
	leaf   string
	turn   map[string]bool // uuids of the turn that goes on
	at     map[string]bool // all uuids
	calls  map[string]string
	held   *draft // an answer that may go on
	answer string // its id
	// counted are the answers whose usage was counted.
	counted map[string]bool
	// merged are the uuids that are part of an answer, and its id.
	merged map[string]string
	parts  []string // of the answer that is held
}

func newClaude() *claude {
	return &claude{turn: map[string]bool{}, at: map[string]bool{}, calls: map[string]string{}, counted: map[string]bool{}, merged: map[string]string{}}
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
	CompactInfo   struct {
		PreTokens int `json:"preTokens"`
	} `json:"compactMetadata"`
	Message struct {
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
func (c *claude) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	var l claudeLine
	if !json.Valid(line) {
		return out, fmt.Errorf("not a JSON line")
	}
	if json.Unmarshal(line, &l) != nil {
		return append(out, verbatim(n, line)), nil // fields of other types than they had
	}
	at := isoTime(l.Timestamp)
	if title := or(l.CustomTitle, or(l.AITitle, l.Summary)); title != "" && l.UUID == "" {
		r := session.Record{ID: codec.LineID(n, line), Parent: c.leaf, Side: true, Time: at, Body: session.Title{Title: title}}
		return c.aside(out, carry(r, ClaudeCode, line)), nil
	}
	if l.UUID == "" || c.at[l.UUID] {
		return c.aside(out, verbatim(n, line)), nil
	}
	if !c.begun {
		c.begun, c.side = true, l.Sidechain
	}
	side := l.Sidechain && !c.side
	body := c.body(l, at)
	c.at[l.UUID] = true
	m, isMessage := body.(session.Message)
	answer := isMessage && m.Role == llm.Assistant && !side && l.Message.ID != ""
	if answer && c.held != nil && l.Message.ID == c.answer {
		c.parts = append(c.parts, c.held.rec.ID)
		for _, part := range c.parts {
			c.merged[part] = l.UUID
		}
		c.held.add(l.UUID, m, line)
		c.turn[l.UUID], c.leaf = true, l.UUID
		return out, nil
	}
	out = c.End(out)
	r := session.Record{ID: l.UUID, Parent: c.parent(l), Side: side, Time: at, Body: body}
	if !side {
		if prompt(l, body) {
			clear(c.turn)
		}
		c.turn[l.UUID], c.leaf = true, l.UUID
	}
	if answer {
		c.held, c.answer = &draft{rec: r, lines: [][]byte{bytes.TrimSpace(line)}}, l.Message.ID
		return out, nil
	}
	return append(out, carry(r, ClaudeCode, line)), nil
}

// aside takes in a record that has no place in the conversation.
func (c *claude) aside(out []session.Record, r session.Record) []session.Record {
	if c.held != nil {
		c.held.after = append(c.held.after, r)
		return out
	}
	return append(out, r)
}

// End implements codec.Stream.
func (c *claude) End(out []session.Record) []session.Record {
	out = c.held.emit(ClaudeCode, out)
	c.held, c.parts = nil, nil
	return out
}

// prompt reports whether a line begins a turn.
func prompt(l claudeLine, b session.Body) bool {
	return l.Type == "user" && !l.Meta && session.IsTurn(b)
}

// parent returns what a line continues.
func (c *claude) parent(l claudeLine) string {
	up := l.LogicalParent
	if l.Parent != nil && *l.Parent != "" {
		up = *l.Parent
	}
	switch {
	case l.Sidechain && !c.side:
		return up
	case up != "" && c.turn[up], l.Subtype == "compact_boundary" && !c.at[up]:
		return c.leaf
	case up != "" && c.at[up]:
		return or(c.merged[up], up)
	case up != "": // not in this file: what there is comes before it
		return c.leaf
	}
	return ""
}

func (c *claude) body(l claudeLine, at time.Time) session.Body {
	switch l.Type {
	case "user":
		blocks := anthropic(l.Message.Content)
		if l.Compact {
			return session.Compaction{Summary: llm.Message{Blocks: blocks}.Text(), FirstKept: l.UUID, TokensBefore: l.CompactInfo.PreTokens}
		}
		for i, b := range blocks {
			if r, ok := b.(llm.ToolResult); ok {
				r.Name = c.calls[r.CallID]
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
			Message: llm.Message{Role: llm.Assistant, Blocks: anthropic(l.Message.Content)}, At: at,
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
		// Each line of an answer repeats the usage of the whole: the last one
		// of those that stand together counts, and of others none.
		if c.held != nil && l.Message.ID == c.answer || l.Message.ID == "" || !c.counted[l.Message.ID] {
			u := l.Message.Usage
			m.Usage = llm.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
			c.counted[l.Message.ID] = true
		}
		return m
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

func isoTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
