package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"goclaw/internal/codec/native"
	"goclaw/internal/inherit/source"
	"goclaw/internal/text"
	"goclaw/llm"
	"goclaw/session"
)

// stream reads the rollout files of Codex: a list of {timestamp, type,
// payload}. What the model was sent and said is in response_item; event_msg
// tells the user of the same once more, and is kept verbatim, except for the
// token counts, which go to the answer before them or, if its calls have been
// carried out by then, stand beside it, and for a rollback, which moves the end of
// the conversation. Before lines had a type, the first was the
// session and the others were the bare items. A fork repeats its origin's lines,
// the session_meta included: the first one counts.
//
// The record of a line carries the line in the field "codex".
type stream struct {
	id    string // of the session
	leaf  string // what the next record continues
	model string
	maker string
	begun bool
	held  *source.Draft   // an answer that the next lines, or its token count, may complete
	done  bool            // that has come
	total json.RawMessage // of the last token count: it is said again when a limit changes
	turns []prompt

	marks map[mark]place // of files that others go on from
	moved bool           // the file that begins goes on somewhere else than the last one ended
}

// place is where a file of a thread can go on.
type place struct {
	leaf, model string
	total       json.RawMessage
	turns       []prompt
}

// prompt is what the user said, and what it continues.
type prompt struct {
	leaf, text string
}

// mark remembers a place in a file that was read up to there.
func (c *stream) mark(m mark) {
	if c.marks == nil {
		c.marks = map[mark]place{}
	}
	c.marks[m] = place{c.leaf, c.model, c.total, slices.Clone(c.turns)}
}

// resume goes on where the past of a file ends. A past that ends with its file
// is marked without its length.
func (c *stream) resume(m mark) {
	at, ok := c.marks[m]
	if !ok {
		at = c.marks[mark{m.path, 0}]
	}
	c.moved = c.leaf != at.leaf
	c.leaf, c.model, c.total, c.turns = at.leaf, at.model, at.total, slices.Clone(at.turns)
}

// maxTurns is how many prompts a rollback can take back, and maxWords how many
// of them are remembered word for word.
const (
	maxTurns = 10_000
	maxWords = 200
)

func newStream() *stream { return &stream{maker: "openai"} }

type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
	ID        any             `json:"id"` // of the first line, before lines had a type
}

type codexItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	CallID    string          `json:"call_id"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"` // of reasoning: parts; of a turn: a word

	// session_meta, turn_context, compacted and event_msg
	ID            string            `json:"id"`
	CWD           string            `json:"cwd"`
	ModelProvider string            `json:"model_provider"`
	Model         string            `json:"model"`
	Message       string            `json:"message"`
	Replacement   []json.RawMessage `json:"replacement_history"`
	Turns         int               `json:"num_turns"`
	Thread        string            `json:"thread_id"`
	ThreadName    string            `json:"thread_name"`
	Info          *struct {
		Total json.RawMessage `json:"total_token_usage"`
		Last  codexUsage      `json:"last_token_usage"`
	} `json:"info"`
}

type codexUsage struct {
	Input  int `json:"input_tokens"`
	Cached int `json:"cached_input_tokens"`
	Output int `json:"output_tokens"`
}

// Line implements codec.Stream.
func (c *stream) Line(n int, line []byte, out []session.Record) ([]session.Record, error) {
	var l codexLine
	if err := json.Unmarshal(line, &l); err != nil {
		if source.Broken(err) {
			return out, fmt.Errorf("not a JSON line")
		}
		return c.keep(out, n, line, time.Time{}), nil
	}
	at := source.ISOTime(l.Timestamp)
	var p codexItem
	bare := len(l.Payload) == 0
	if bare {
		_ = json.Unmarshal(line, &p) // an older line is the item itself
	} else if json.Unmarshal(l.Payload, &p) != nil {
		p = codexItem{}
		var t struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(l.Payload, &t)
		p.Type = t.Type
	}
	first := !c.begun
	c.begun = true
	id := native.LineID(n, line)
	switch {
	case first && (l.Type == "session_meta" || bare && l.Type == "" && l.ID != nil):
		c.id, c.maker = p.ID, cmp.Or(p.ModelProvider, c.maker)
		h := session.Header{Version: session.Version, ID: session.ID(p.ID), CWD: p.CWD}
		return append(out, source.Carry(session.Record{Time: at, Body: h}, Program, line)), nil
	case l.Type == "session_meta" && c.moved:
		c.moved = false
		return c.move(out, id, at, n, line), nil
	case l.Type == "turn_context":
		if p.Model == "" || p.Model == c.model {
			return c.keep(out, n, line, at), nil
		}
		c.model = p.Model
		return c.put(out, id, at, session.ModelChange{Provider: c.maker, Model: p.Model}, line), nil
	case l.Type == "compacted":
		if sum := p.compacted(c.turns); sum != "" {
			return c.put(out, id, at, session.Compaction{Summary: sum, FirstKept: id}, line), nil
		}
	case l.Type == "event_msg" && p.Type == "thread_name_updated" && strings.TrimSpace(p.ThreadName) != "" && (p.Thread == "" || p.Thread == c.id):
		return c.aside(out, id, at, session.Title{Title: strings.TrimSpace(p.ThreadName)}, line), nil
	case l.Type == "event_msg" && p.Type == "thread_rolled_back" && p.Turns > 0 && len(c.turns) > 0:
		return c.rollback(out, id, at, p.Turns, n, line), nil
	case l.Type == "event_msg" && p.Type == "token_count" && p.Info != nil:
		again := len(p.Info.Total) > 0 && bytes.Equal(p.Info.Total, c.total)
		c.total = bytes.Clone(p.Info.Total)
		u := p.Info.Last
		took := llm.Usage{Input: max(u.Input-u.Cached, 0), CacheRead: u.Cached, Output: u.Output}
		if again || took == (llm.Usage{}) {
			break
		}
		if c.held == nil || c.done {
			// Since 0.142 the calls of an answer have been carried out by now.
			return c.aside(out, id, at, session.Usage{Kind: Program, Provider: c.maker, Model: c.model, Usage: took}, line), nil
		}
		m := c.held.Rec.Body.(session.Message)
		m.Usage = took
		c.held.Rec.Body, c.done = m, true
		// With its usage it is another record, for a log may have it without.
		c.held.Rec.ID, c.leaf = id, id
		return c.keep(out, n, line, at), nil
	case l.Type == "response_item", bare && l.Type != "":
		if b := c.item(p, at); b != nil {
			return c.put(out, id, at, b, line), nil
		}
	}
	return c.keep(out, n, line, at), nil
}

// compacted is the text that replaces what came before: what the user had
// said, as far as Codex keeps it, and the summary after it. Of a summary that is
// encrypted the user's words are left.
func (p codexItem) compacted(turns []prompt) string {
	var texts []string
	for _, raw := range p.Replacement {
		var it codexItem
		if json.Unmarshal(raw, &it) != nil || it.Type != "message" || it.Role != "user" {
			continue
		}
		t := strings.TrimSpace(llm.Message{Blocks: openaiContent(it.Content)}.Text())
		if t != "" && t != strings.TrimSpace(p.Message) && !surrounding(t) {
			texts = append(texts, "user: "+t)
		}
	}
	if len(p.Replacement) == 0 {
		texts = lastSaid(turns)
	}
	switch {
	case strings.TrimSpace(p.Message) != "":
		texts = append(texts, p.Message)
	case len(texts) > 0:
		texts = append(texts, encrypted)
	}
	return strings.Join(texts, "\n\n")
}

// encrypted stands for a summary that only the account can read that made it.
const encrypted = "(That is what the user said before this point. The summary of the answers is encrypted and cannot be read here.)"

// maxSaid is how much Codex keeps of what the user had said, if it does not write
// down what it kept: 20,000 tokens of 4 bytes.
const maxSaid = 4 * 20_000

// lastSaid returns what the user said last, up to maxSaid. Of the oldest one that
// is kept the middle may be missing.
func lastSaid(turns []prompt) (texts []string) {
	left := maxSaid
	for _, t := range slices.Backward(turns) {
		if left <= 0 {
			break
		}
		said := text.Middle(t.text, left/2, left/2)
		left -= len(t.text)
		if said != "" {
			texts = append(texts, "user: "+said)
		}
	}
	slices.Reverse(texts)
	return texts
}

// rollback takes the last prompts back, and what followed them.
func (c *stream) rollback(out []session.Record, id string, at time.Time, turns, n int, line []byte) []session.Record {
	out = c.End(out)
	k := max(len(c.turns)-turns, 0)
	c.leaf, c.turns = c.turns[k].leaf, c.turns[:k]
	return c.move(out, id, at, n, line)
}

// move says that the conversation goes on after c.leaf.
func (c *stream) move(out []session.Record, id string, at time.Time, n int, line []byte) []session.Record {
	if c.leaf == "" { // there is nothing before: the next record begins a new branch
		return c.keep(out, n, line, at)
	}
	return append(out, source.Carry(session.Record{ID: id, Parent: c.leaf, Time: at, Body: session.Leaf{Target: c.leaf}}, Program, line))
}

// put takes in the next record of the conversation. What the model says in
// one go is one answer.
func (c *stream) put(out []session.Record, id string, at time.Time, b session.Body, line []byte) []session.Record {
	m, ok := b.(session.Message)
	answer := ok && m.Role == llm.Assistant
	if answer && c.held != nil && !c.done {
		c.held.Add(id, m, line)
		c.leaf = id
		if c.held.Full() {
			return c.End(out)
		}
		return out
	}
	out = c.End(out)
	if ok && m.Role == llm.User && len(m.Results()) == 0 {
		c.prompted(strings.TrimSpace(m.Text()))
	}
	r := session.Record{ID: id, Parent: c.leaf, Time: at, Body: b}
	c.leaf = id
	if answer {
		c.held = source.NewDraft(r, line)
		return out
	}
	return append(out, source.Carry(r, Program, line))
}

// prompted remembers what the user says. Of what was said long ago only the
// places are needed.
func (c *stream) prompted(said string) {
	if len(c.turns) == maxTurns {
		c.turns = append(c.turns[:0], c.turns[maxTurns/2:]...)
	}
	c.turns = append(c.turns, prompt{c.leaf, strings.Clone(text.Middle(said, maxSaid/2, maxSaid/2))})
	if n := len(c.turns) - maxWords; n > 0 {
		c.turns[n-1].text = ""
	}
}

// keep takes in a line that is no part of the conversation.
func (c *stream) keep(out []session.Record, n int, line []byte, at time.Time) []session.Record {
	return c.held.Aside(out, line, source.Verbatim(n, line, at), c.leaf, c.End)
}

// aside takes in what a line says about the session.
func (c *stream) aside(out []session.Record, id string, at time.Time, b session.Body, line []byte) []session.Record {
	return c.held.Aside(out, line, func(parent string) session.Record {
		return source.Carry(session.Record{ID: id, Parent: parent, Side: true, Time: at, Body: b}, Program, line)
	}, c.leaf, c.End)
}

// End implements codec.Stream.
func (c *stream) End(out []session.Record) []session.Record {
	out = c.held.Emit(Program, out)
	c.held, c.done = nil, false
	return out
}

// surroundings are what Codex itself says in the user's name.
var surroundings = []string{
	"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions instructions>", "<turn_aborted>",
	"<user_shell_command>", "<skill>", "<subagents>", "<subagent_notification>", "<hook_prompt", "<plugins>",
}

func surrounding(text string) bool {
	for _, s := range surroundings {
		if len(text) >= len(s) && strings.EqualFold(text[:len(s)], s) {
			return true
		}
	}
	return false
}

// item reads what was sent to the model, or said by it. It is nil where that
// is nothing that another model could read.
func (c *stream) item(p codexItem, at time.Time) session.Body {
	answer := func(blocks ...llm.Block) session.Body {
		m := session.Message{Message: llm.Message{Role: llm.Assistant, Blocks: blocks}, At: at, Provider: c.maker, API: "openai-responses", Model: c.model, Stop: llm.StopEnd}
		if len(m.Calls()) > 0 {
			m.Stop = llm.StopTool
		}
		return m
	}
	switch p.Type {
	case "message":
		blocks := openaiContent(p.Content)
		switch p.Role {
		case "assistant":
			return answer(blocks...)
		case "user":
			if surrounding(strings.TrimSpace(llm.Message{Blocks: blocks}.Text())) {
				return session.CustomMessage{Type: "codex.context", Blocks: blocks, At: at}
			}
			return session.Message{Message: llm.Message{Role: llm.User, Blocks: blocks}, At: at}
		}
		return session.Message{Message: llm.Message{Role: llm.System, Blocks: blocks}, At: at}
	case "agent_message": // what agents tell each other; a task is encrypted
		var blocks []llm.Block
		for _, b := range openaiContent(p.Content) {
			if _, ok := b.(llm.Text); ok {
				blocks = append(blocks, b)
			}
		}
		return session.CustomMessage{Type: "codex.agent", Blocks: blocks, At: at}
	case "reasoning":
		// Its encrypted form is of use only to the account that made
		// it; it is in the line that is kept.
		thought := llm.Message{Blocks: openaiContent(p.Summary)}.Text()
		if thought == "" {
			thought = llm.Message{Blocks: openaiContent(p.Content)}.Text()
		}
		if thought == "" {
			return nil
		}
		return answer(llm.Thinking{Text: thought})
	case "function_call":
		return answer(llm.ToolCall{ID: p.CallID, Name: p.Name, Args: source.Arguments(json.RawMessage(p.Arguments))})
	case "custom_tool_call":
		input, _ := json.Marshal(p.Input)
		return answer(llm.ToolCall{ID: p.CallID, Name: p.Name, Args: source.Arguments(input)})
	case "local_shell_call":
		return answer(llm.ToolCall{ID: cmp.Or(p.CallID, p.ID), Name: "local_shell", Args: source.Arguments(p.Action)})
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		res := llm.ToolResult{CallID: p.CallID}
		res.Blocks, res.IsError = codexOutput(p.Output)
		return session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{res}}, At: at}
	}
	return nil
}

// codexOutput reads the output of a call: a text, a list of parts, or an
// object that says whether it went well.
func codexOutput(raw json.RawMessage) (blocks []llm.Block, failed bool) {
	var o struct {
		Content json.RawMessage `json:"content"`
		Success *bool           `json:"success"`
	}
	if json.Unmarshal(raw, &o) == nil && o.Content != nil {
		return openaiContent(o.Content), o.Success != nil && !*o.Success
	}
	return openaiContent(raw), false
}

// openaiContent reads content in the form of OpenAI's Responses API.
func openaiContent(raw json.RawMessage) []llm.Block {
	text, list := source.TextOrList(raw)
	if text != "" {
		return []llm.Block{llm.Text{Text: text}}
	}
	var out []llm.Block
	for _, item := range list {
		var b struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			ImageURL string `json:"image_url"`
		}
		_ = json.Unmarshal(item, &b)
		switch b.Type {
		case "input_text", "output_text", "text", "summary_text", "reasoning_text":
			out = append(out, llm.Text{Text: b.Text})
			continue
		case "input_image":
			if img, ok := source.DataURL(b.ImageURL); ok {
				out = append(out, img)
				continue
			}
		}
		out = append(out, llm.Other{Raw: item})
	}
	return out
}
