package crush

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// message is a row of the table messages.
type message struct {
	id, role, model, provider string
	created, updated          time.Time
	finished, summary         bool
	parts                     []byte
}

// part is an element of a message's parts; data has the fields of all kinds.
type part struct {
	Type string `json:"type"`
	Data data   `json:"data"`
}

type data struct {
	Text      string `json:"text"`
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	URL       string `json:"url"`

	// A file: its bytes in base64.
	Path     string
	MIMEType string
	Data     string // of a result as well

	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`

	CallID  string `json:"tool_call_id"`
	Content string `json:"content"`
	MIME    string `json:"mime_type"`
	IsError bool   `json:"is_error"`

	Reason  string `json:"reason"`
	Message string `json:"message"`
	Details string `json:"details"`

	Command  string `json:"command"`
	Output   string `json:"output"`
	ExitCode int    `json:"exit_code"`
}

// writer makes records of messages. A message becomes one record, or one for
// each result; the first carries the row in the field "crush".
type writer struct {
	one
	now  func() time.Time
	leaf string // what the next record continues
	n    int    // of the message
	mark string // of the records of a message that was not finished
	rows []source.Row
}

// message takes in the next message. It returns false for one that is still
// being written: that, and what follows it, waits.
func (w *writer) message(m message) bool {
	w.n++
	var raw []json.RawMessage
	if err := json.Unmarshal(m.parts, &raw); err != nil {
		w.rows = append(w.rows, source.Row{Number: w.n, Line: m.parts, Err: fmt.Errorf("the message %s has parts that are not a JSON list: %w", m.id, err)})
		return true
	}
	parts := make([]part, len(raw))
	done := m.finished || m.role != "assistant"
	for i, r := range raw {
		if json.Unmarshal(r, &parts[i]) != nil {
			parts[i] = part{Type: "other"}
		}
		done = done || parts[i].Type == "finish"
	}
	if w.mark = ""; !done {
		if w.now().Sub(m.updated) < source.Settled {
			return false
		}
		w.mark = fmt.Sprintf("~%08x", crc32.ChecksumIEEE(m.parts))
	}
	switch m.role {
	case "assistant":
		w.assistant(m, parts, raw)
	case "tool":
		w.results(m, parts)
	case "user":
		w.user(m, parts, raw)
	default:
		w.put(m, 1, session.Custom{Type: "crush." + m.role})
	}
	return true
}

// put adds the k'th record of a message.
func (w *writer) put(m message, k int, b session.Body) {
	r := session.Record{ID: m.id + w.mark, Parent: w.leaf, Time: m.created, Body: b}
	if k > 1 {
		r.ID = fmt.Sprintf("%s/%d%s", m.id, k, w.mark)
		r = source.Made(r)
	} else {
		r = source.Carry(r, Program, m.carried())
	}
	w.leaf = r.ID
	w.rows = append(w.rows, source.Row{Number: w.n, Line: r.Raw, Record: &r})
}

// carried returns the row, as a record carries it.
func (m message) carried() []byte {
	head, _ := json.Marshal(map[string]string{"id": m.id, "role": m.role, "model": m.model, "provider": m.provider})
	parts := m.parts
	if bytes.IndexByte(parts, '\n') >= 0 {
		var b bytes.Buffer
		_ = json.Compact(&b, parts) // it is JSON: it was read
		parts = b.Bytes()
	}
	return append(append(append(head[:len(head)-1], `,"parts":`...), parts...), '}')
}

// user takes in a prompt, as crush sends it: its text, texts that are attached,
// commands that the user ran, and images.
func (w *writer) user(m message, parts []part, raw []json.RawMessage) {
	var text strings.Builder
	var blocks []llm.Block
	attached := false
	for i, p := range parts {
		switch p.Type {
		case "text":
			if text.Len() == 0 {
				text.WriteString(strings.TrimSpace(p.Data.Text))
			}
		case "image_url":
			if img, ok := source.DataURL(p.Data.URL); ok {
				blocks = append(blocks, img)
			}
		case "binary":
			switch {
			case strings.HasPrefix(p.Data.MIMEType, "image/"):
				blocks = append(blocks, llm.Image{MIME: p.Data.MIMEType, Data: p.Data.Data})
			case !strings.HasPrefix(p.Data.MIMEType, "text/"):
				blocks = append(blocks, llm.Other{Raw: raw[i]})
			}
		}
	}
	for _, p := range parts {
		content, err := base64.StdEncoding.DecodeString(p.Data.Data)
		if p.Type != "binary" || !strings.HasPrefix(p.Data.MIMEType, "text/") || err != nil {
			continue
		}
		if !attached {
			text.WriteString("\n<system_info>The files below have been attached by the user, consider them in your response</system_info>\n")
			attached = true
		}
		if p.Data.Path != "" {
			fmt.Fprintf(&text, "<file path='%s'>\n", p.Data.Path)
		} else {
			text.WriteString("<file>\n")
		}
		fmt.Fprintf(&text, "\n%s\n</file>\n", content)
	}
	for _, p := range parts {
		if p.Type == "shell_command" {
			if text.Len() > 0 {
				text.WriteString("\n\n")
			}
			fmt.Fprintf(&text, "$ %s\n%s\n(exit code %d)", p.Data.Command, p.Data.Output, p.Data.ExitCode)
		}
	}
	if text.Len() > 0 {
		blocks = append([]llm.Block{llm.Text{Text: text.String()}}, blocks...)
	}
	w.put(m, 1, session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: m.created})
}

// assistant takes in an answer, or the summary that stands for what came before.
func (w *writer) assistant(m message, parts []part, raw []json.RawMessage) {
	a := session.Message{At: m.created, Provider: m.provider, Model: m.model, Stop: llm.StopEnd}
	a.Role = llm.Assistant
	var thinking, said, calls []llm.Block
	for i, p := range parts {
		switch p.Type {
		case "reasoning":
			thinking = append(thinking, llm.Thinking{Text: p.Data.Thinking, Signature: p.Data.Signature})
		case "text":
			if t := strings.TrimSpace(p.Data.Text); t != "" {
				said = append(said, llm.Text{Text: t})
			}
		case "tool_call":
			calls = append(calls, llm.ToolCall{ID: p.Data.ID, Name: p.Data.Name, Args: source.Arguments(json.RawMessage(p.Data.Input))})
			if a.Stop == llm.StopEnd {
				a.Stop = llm.StopTool
			}
		case "finish":
			switch p.Data.Reason {
			case "max_tokens":
				a.Stop = llm.StopLength
			case "canceled":
				a.Stop = llm.StopAborted
			case "error", "content_filter":
				a.Stop, a.Error = llm.StopError, cmp.Or(p.Data.Details, p.Data.Message)
			}
		default:
			said = append(said, llm.Other{Raw: raw[i]})
		}
	}
	a.Blocks = append(append(thinking, said...), calls...)
	if (m.summary || m.id == w.summary) && a.Text() != "" {
		w.put(m, 1, session.Compaction{Summary: a.Text(), FirstKept: m.id + w.mark})
		return
	}
	w.put(m, 1, a)
}

// results takes in what tools have returned.
func (w *writer) results(m message, parts []part) {
	k := 0
	for _, p := range parts {
		if p.Type != "tool_result" {
			continue
		}
		res := llm.ToolResult{CallID: p.Data.CallID, Name: p.Data.Name, IsError: p.Data.IsError, Blocks: []llm.Block{llm.Text{Text: p.Data.Content}}}
		if p.Data.Data != "" && strings.HasPrefix(p.Data.MIME, "image/") {
			res.Blocks = append(res.Blocks, llm.Image{MIME: p.Data.MIME, Data: p.Data.Data})
		}
		k++
		w.put(m, k, session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{res}}, At: m.created})
	}
	if k == 0 {
		w.put(m, 1, session.Custom{Type: "crush.tool"})
	}
}
