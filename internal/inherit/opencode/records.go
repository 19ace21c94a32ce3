package opencode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strings"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// writer makes records of messages. A message becomes one record, and one for
// each result of a tool; each carries the rows that it was made of in the field
// "opencode".
type writer struct {
	one
	now  func() time.Time
	leaf string            // what the next record continues
	ids  map[string]string // the first record of each message
	kept string            // what precedes what was taken back
	took bool              // that part, or its message, was met
	mark string            // of the records of a message that was not finished
	rows []source.Row
}

// info is the data of a message.
type info struct {
	Role string `json:"role"`
	Time struct {
		Created   int64 `json:"created"`
		Completed int64 `json:"completed"`
	} `json:"time"`
	Provider string          `json:"providerID"`
	Model    string          `json:"modelID"`
	Summary  json.RawMessage `json:"summary"` // true: the message is a summary
	Cost     float64         `json:"cost"`
	Tokens   struct {
		Input     int `json:"input"`
		Output    int `json:"output"`
		Reasoning int `json:"reasoning"`
		Cache     struct {
			Read  int `json:"read"`
			Write int `json:"write"`
		} `json:"cache"`
	} `json:"tokens"`
	Finish string `json:"finish"`
	Error  *struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	} `json:"error"`
}

// piece is the data of a part.
type piece struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Synthetic bool            `json:"synthetic"`
	Ignored   bool            `json:"ignored"`
	MIME      string          `json:"mime"`
	URL       string          `json:"url"`
	Tail      string          `json:"tail_start_id"` // of a compaction: the first message that it keeps
	CallID    string          `json:"callID"`
	Tool      string          `json:"tool"`
	Metadata  json.RawMessage `json:"metadata"`
	State     struct {
		Status      string          `json:"status"`
		Input       json.RawMessage `json:"input"`
		Output      string          `json:"output"`
		Error       string          `json:"error"`
		Attachments []piece         `json:"attachments"`
		Metadata    struct {
			Interrupted bool `json:"interrupted"`
			Output      any  `json:"output"`
		} `json:"metadata"`
		Time struct {
			End int64 `json:"end"`
		} `json:"time"`
	} `json:"state"`
}

// message takes in the next message. It returns false for one that is still
// being written: that, and what follows it, waits.
func (w *writer) message(m message) bool {
	var in info
	if err := json.Unmarshal(m.data, &in); err != nil {
		w.damage(m.id, len(m.data), err)
		return true
	}
	done := in.Time.Completed != 0 || in.Error != nil || in.Role == "user" && len(m.parts) > 0
	if !done && w.now().Sub(time.UnixMilli(m.updated)) < source.Settled {
		return false
	}
	if w.mark = ""; !done { // should it be continued, it is another record
		w.mark = fmt.Sprintf("~%08x", crc32.ChecksumIEEE(m.carried(m.parts)))
	}
	w.ids[m.id] = m.id + w.mark
	if m.id == w.revert && w.revertPart == "" {
		w.kept, w.took = w.leaf, true
	}
	at := time.UnixMilli(cmp.Or(in.Time.Created, m.created)).UTC()
	var parts []piece
	for i, p := range m.parts {
		var x piece
		if err := json.Unmarshal(p.data, &x); err != nil {
			w.damage(p.id, len(p.data), err)
			m.parts[i].data, x = nil, piece{}
		}
		parts = append(parts, x)
	}
	if in.Role == "user" {
		w.user(m, parts, in, at)
	} else {
		w.assistant(m, parts, in, at)
	}
	return true
}

func (w *writer) damage(id string, size int, err error) {
	w.rows = append(w.rows, source.Row{Number: len(w.ids) + 1, Line: make([]byte, size), Err: fmt.Errorf("the row %s is not JSON: %w", id, err)})
}

// put adds the next record of the conversation, which is made of rows.
func (w *writer) put(id string, at time.Time, b session.Body, rows []byte) {
	id += w.mark
	w.add(id, w.leaf, at, b, rows)
	w.leaf = id
}

func (w *writer) add(id, parent string, at time.Time, b session.Body, rows []byte) {
	r := source.Carry(session.Record{ID: id, Parent: parent, Time: at, Body: b}, Program, rows)
	w.rows = append(w.rows, source.Row{Number: len(w.ids), Line: r.Raw, Record: &r})
}

// end adds where the conversation ends, if something was taken back.
func (w *writer) end() {
	if w.took && w.kept != "" && w.kept != w.leaf {
		w.add("revert-"+w.revert+w.revertPart, w.kept, w.updated, session.Leaf{Target: w.kept}, fmt.Appendf(nil, `{"messageID":%q,"partID":%q}`, w.revert, w.revertPart))
	}
}

// carried returns a row, as a record carries it.
func carried(id string, data []byte) []byte {
	out, _ := json.Marshal(id)
	out = append(append([]byte(`{"id":`), out...), `,"data":`...)
	if bytes.IndexByte(data, '\n') >= 0 {
		var b bytes.Buffer
		_ = json.Compact(&b, data) // it is JSON: it was read
		data = b.Bytes()
	}
	return append(append(out, data...), '}')
}

// carried returns the row of a message and those of parts.
func (m message) carried(parts []part) []byte {
	out := append([]byte(`{"message":`), carried(m.id, m.data)...)
	out = append(out, `,"parts":[`...)
	n := 0
	for _, p := range parts {
		if p.data == nil { // it is no JSON, which is said
			continue
		}
		if n++; n > 1 {
			out = append(out, ',')
		}
		out = append(out, carried(p.id, p.data)...)
	}
	return append(out, "]}"...)
}

// user takes in a prompt, or the beginning of a compaction, which is not sent.
func (w *writer) user(m message, parts []piece, in info, at time.Time) {
	var blocks []llm.Block
	own := false // something in it is the user's own
	for i, p := range parts {
		switch {
		case p.Type == "text" && !p.Ignored && p.Text != "":
			blocks = append(blocks, llm.Text{Text: p.Text})
			own = own || !p.Synthetic
		case p.Type == "file" && p.MIME != "text/plain" && p.MIME != "application/x-directory": // those are texts as well
			blocks = append(blocks, file(p, m.parts[i].data))
			own = own || !p.Synthetic
		case p.Type == "subtask":
			blocks = append(blocks, llm.Text{Text: "The following tool was executed by the user"})
		case p.Type == "compaction":
			w.ids["tail "+m.id] = p.Tail
			w.put(m.id, at, session.Custom{Type: "opencode.compaction"}, m.carried(m.parts))
			return
		}
	}
	var body session.Body = session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: at}
	if len(blocks) > 0 && !own {
		body = session.CustomMessage{Type: "opencode.synthetic", Blocks: blocks, At: at}
	}
	w.put(m.id, at, body, m.carried(m.parts))
}

// file is a file that was attached. Other kinds than images are kept, but not
// sent.
func file(p piece, raw []byte) llm.Block {
	if img, ok := source.DataURL(p.URL); ok && strings.HasPrefix(p.MIME, "image/") {
		img.MIME = p.MIME
		return img
	}
	return llm.Other{Raw: bytes.Clone(raw)}
}

// assistant takes in an answer: each step of it, and the results of its calls.
func (w *writer) assistant(m message, parts []piece, in info, at time.Time) {
	if string(in.Summary) == "true" && in.Error == nil && in.Finish != "" {
		w.summary(m, parts, in, at)
		return
	}
	answer := session.Message{At: at, Provider: in.Provider, Model: in.Model, Usage: in.usage(), Stop: in.stop()}
	answer.Role = llm.Assistant
	if in.Error != nil {
		answer.Error = cmp.Or(in.Error.Data.Message, in.Error.Name)
	}
	id, steps := m.id, 1
	var tools []int
	var rest []part
	flush := func() {
		if tools != nil && answer.Stop != llm.StopError {
			answer.Stop = llm.StopTool // each of its calls has a result
		}
		w.put(id, at, answer, m.carried(rest))
		for _, i := range tools {
			w.result(m.parts[i], parts[i], at)
		}
		steps++
		id = fmt.Sprintf("%s/%d", m.id, steps)
		answer.Blocks, answer.Usage, tools, rest = nil, llm.Usage{}, nil, nil
	}
	for i, p := range parts {
		if p.Type == "step-start" && len(answer.Blocks) > 0 {
			flush()
		}
		if m.id == w.revert && m.parts[i].id == w.revertPart { // with the step that it is in
			w.kept, w.took = w.leaf, true
		}
		switch {
		case p.Type == "text" && p.Text != "":
			answer.Blocks = append(answer.Blocks, llm.Text{Text: p.Text})
		case p.Type == "reasoning":
			answer.Blocks = append(answer.Blocks, p.thinking())
		case p.Type == "tool":
			answer.Blocks = append(answer.Blocks, llm.ToolCall{ID: p.CallID, Name: p.Tool, Args: source.Arguments(p.State.Input)})
			tools = append(tools, i)
			continue
		}
		rest = append(rest, m.parts[i])
	}
	if len(answer.Blocks) > 0 || len(rest) > 0 || steps == 1 {
		flush()
	}
}

// thinking reads the reasoning of a model, and what proves it to the model.
func (p piece) thinking() llm.Block {
	var meta struct {
		Anthropic struct {
			Signature string `json:"signature"`
			Redacted  string `json:"redactedData"`
		} `json:"anthropic"`
	}
	_ = json.Unmarshal(p.Metadata, &meta) // other makers prove it in other ways
	if meta.Anthropic.Redacted != "" {
		return llm.Thinking{Signature: meta.Anthropic.Redacted, Redacted: true}
	}
	return llm.Thinking{Text: p.Text, Signature: meta.Anthropic.Signature}
}

// result takes in the result of a call. One that opencode has cleared since, to
// save tokens, is sent whole: goclaw cuts by itself what does not fit.
func (w *writer) result(row part, p piece, at time.Time) {
	res := llm.ToolResult{CallID: p.CallID, Name: p.Tool}
	text := p.State.Output
	switch p.State.Status {
	case "completed":
	case "error":
		res.IsError, text = true, p.State.Error
		if out, ok := p.State.Metadata.Output.(string); ok && p.State.Metadata.Interrupted {
			res.IsError, text = false, out
		}
	default:
		res.IsError, text = true, "[Tool execution was interrupted]"
	}
	res.Blocks = []llm.Block{llm.Text{Text: text}}
	for _, a := range p.State.Attachments {
		if img, ok := file(a, nil).(llm.Image); ok {
			res.Blocks = append(res.Blocks, img)
		}
	}
	if p.State.Time.End != 0 {
		at = time.UnixMilli(p.State.Time.End).UTC()
	}
	w.put(row.id, at, session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{res}}, At: at}, carried(row.id, row.data))
}

// summary takes in the summary that a compaction ends with.
func (w *writer) summary(m message, parts []piece, in info, at time.Time) {
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	c := session.Compaction{Summary: strings.Join(texts, "\n"), FirstKept: w.ids[m.id], Usage: in.usage()}
	var of struct {
		Parent string `json:"parentID"`
	}
	_ = json.Unmarshal(m.data, &of)
	if first := w.ids[w.ids["tail "+of.Parent]]; first != "" {
		c.FirstKept = first
	}
	w.put(m.id, at, c, m.carried(m.parts))
}

func (in info) usage() llm.Usage {
	t := in.Tokens
	return llm.Usage{Input: t.Input, Output: t.Output + t.Reasoning, CacheRead: t.Cache.Read, CacheWrite: t.Cache.Write, Cost: llm.Cost{Total: in.Cost}}
}

func (in info) stop() llm.Stop {
	switch {
	case in.Error != nil && in.Error.Name == "MessageAbortedError":
		return llm.StopAborted
	case in.Error != nil:
		return llm.StopError
	case in.Finish == "length":
		return llm.StopLength
	case in.Finish == "tool-calls":
		return llm.StopTool
	}
	return llm.StopEnd
}
