package openai

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/rawjson"
	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// request is everything but the messages.
type request struct {
	Model         string        `json:"model"`
	Tools         []tool        `json:"tools,omitempty"`
	Effort        string        `json:"reasoning_effort,omitempty"`
	MaxTokens     int           `json:"max_tokens,omitempty"`
	MaxCompletion int           `json:"max_completion_tokens,omitempty"`
	CacheKey      string        `json:"prompt_cache_key,omitempty"`
	StreamOptions streamOptions `json:"stream_options"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

// function has the schema's own bytes, so that the order of its properties is
// the author's.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// build translates req into a body, with the reasoning_effort that is tried.
// Thinking and llm.Other have no place in this API.
func (p *Provider) build(req llm.Request, effort string) ([]byte, error) {
	settings := p.settings(req)
	settings.Effort = effort
	w := p.writer(req)
	body, err := wire.Body("messages", size(req), func(out []byte) []byte {
		w.B = append(out, '[')
		w.messages(req)
		return append(w.B, ']')
	}, settings)
	if err != nil {
		return nil, fmt.Errorf("%s: request: %w", p.api.Name, err)
	}
	return body, nil
}

// images is what OpenAI takes of images: 500, and 50 MB in a request, which has
// to hold everything else too.
var images = wire.Images{Count: 500, Bytes: 40 << 20}

func (p *Provider) writer(req llm.Request) *writer {
	claude := p.flavour == openRouter && strings.Contains(req.Model, "claude")
	w := &writer{marks: claude, images: images}
	if claude {
		w.images = wire.ClaudeImages
	}
	return w
}

// settings is everything but the messages and the effort.
func (p *Provider) settings(req llm.Request) request {
	r := request{Model: req.Model, StreamOptions: streamOptions{IncludeUsage: true}}
	tools, _ := llm.SendableTools(req.Tools)
	for _, t := range tools {
		r.Tools = append(r.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Description, Parameters: withProperties(t.Schema)}})
	}
	limit := max(0, cmp.Or(req.MaxTokens, p.maxTokens))
	if p.flavour == own || parse(base(req.Model)).reasons() {
		r.MaxCompletion = limit
	} else {
		r.MaxTokens = limit
	}
	if p.flavour == own {
		r.CacheKey = cacheKey(req)
	}
	return r
}

// withProperties returns the schema of an object with its properties, which
// OpenAI demands even if there are none.
func withProperties(schema json.RawMessage) json.RawMessage {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || s["properties"] != nil {
		return schema
	}
	rest := bytes.TrimPrefix(bytes.TrimSpace(schema), []byte("{"))
	return append([]byte(`{"properties":{},`), rest...)
}

// size is about how long the messages are.
func size(req llm.Request) int {
	n := len(req.System) + len(req.Tail)
	for _, m := range req.Messages {
		n += wire.Length(m.Blocks)
	}
	return n
}

// cacheKey names the conversation, so that OpenAI sends its calls to the
// machine that still holds the prefix: the same in every call of it, and
// different between conversations.
func cacheKey(req llm.Request) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00", req.Model, req.System)
	if len(req.Messages) > 0 {
		fmt.Fprintf(h, "%s", req.Messages[0].Text())
	}
	return "goclaw-" + hex.EncodeToString(h.Sum(nil)[:12])
}

// base is a model's name without the vendor before it.
func base(model string) string { return model[strings.LastIndexByte(model, '/')+1:] }

// generation is what the name of one of OpenAI's models says: o3 is {true, 3,
// 0}, gpt-5.4-mini is {false, 5, 4}. The zero value is any other model.
type generation struct {
	o            bool
	major, minor int
	chat         bool // one that does not reason, whatever its number
}

func parse(model string) (g generation) {
	rest, gpt := strings.CutPrefix(model, "gpt-")
	if !gpt {
		if rest, g.o = strings.CutPrefix(model, "o"); !g.o {
			return generation{chat: strings.HasPrefix(model, "chatgpt-")}
		}
	}
	version, suffix, _ := strings.Cut(rest, "-")
	major, minor, _ := strings.Cut(version, ".")
	var err error
	if g.major, err = strconv.Atoi(strings.TrimSuffix(major, "o")); err != nil {
		return generation{}
	}
	g.minor, _ = strconv.Atoi(minor) // none is 0
	g.chat = strings.HasPrefix(suffix, "chat") || gpt && g.major < 5
	return g
}

func (g generation) from(major, minor int) bool {
	return !g.o && (g.major > major || g.major == major && g.minor >= minor)
}

// reasons: takes a reasoning_effort, and no max_tokens.
func (g generation) reasons() bool { return !g.chat && (g.o || g.from(5, 0)) }

// effort translates the level of thinking for chat completions. From 5.4 on that
// API takes tools only without reasoning, and refuses them if nothing is said.
func effort(f flavour, req llm.Request) string {
	g := parse(base(req.Model))
	if f == own && !g.chat && g.from(5, 4) && len(req.Tools) > 0 {
		return "none"
	}
	return level(f, g, req.Thinking)
}

// level translates the level of thinking, to the nearest that the model has.
// Nothing is sent unless it was asked for.
func level(f flavour, g generation, thinking string) string {
	if g.chat {
		return ""
	}
	first := g.from(5, 0) && !g.from(5, 1)
	switch thinking {
	case "off":
		switch {
		case first:
			return "minimal"
		case g.o:
			return "low"
		}
		return "none"
	case "minimal":
		if first {
			return "minimal"
		}
		return "low"
	case "low", "medium", "high":
		return thinking
	case "xhigh", "max":
		if thinking == "max" && g.from(5, 6) {
			return "max"
		}
		if f == openRouter || g.from(5, 2) {
			return "xhigh"
		}
		return "high"
	}
	return ""
}

// writer writes the messages. Content is a plain string wherever it can be:
// the chat templates of many local models know nothing else. With marks it is
// always a list of parts, so that a message looks the same whether it carries
// a mark or not.
type writer struct {
	rawjson.Writer
	places
	marks  bool
	images wire.Images
}

// places remembers what each message, or item, on the wire was made of.
type places struct {
	from []int   // the block of the llm.Message that each block being written was made of
	now  int     // its index; -1: none
	sent []place // of every message that was written
}

// place says what a message on the wire was made of: the index of a message of
// the request, and its blocks by part of the content and by call. -1 is none in
// particular.
type place struct {
	message      int
	parts, calls []int
}

// find returns the message of the request and the block of it that are at s.
func (w *places) find(s wire.Spot) (message, block int) {
	if s.Message >= len(w.sent) {
		return -1, -1
	}
	p := w.sent[s.Message]
	all := slices.Concat(p.parts, p.calls)
	switch {
	case s.Part >= len(p.parts) || s.Call >= len(p.calls):
		return -1, -1
	case s.Part >= 0:
		return p.message, p.parts[s.Part]
	case s.Call >= 0:
		return p.message, p.calls[s.Call]
	case len(all) == 1:
		return p.message, all[0]
	}
	return p.message, -1
}

// of returns the block of the llm.Message that block i of what is sent was made
// of.
func (w *places) of(i int) int {
	if i < 0 {
		return -1
	}
	return w.from[i]
}

// Text writes a string. Bytes that are not UTF-8 become U+FFFD.
func (w *writer) Text(k, s string) { w.Writer.Text(k, wire.Valid(s)) }

func (w *writer) messages(req llm.Request) {
	w.now = -1
	if !llm.Blank(req.System) {
		w.message("system", []part{{text: req.System, marked: true, block: -1}})
	}
	tail := req.Tail
	if llm.Blank(tail) {
		tail = ""
	}
	messages, from := sendable(req, w.images)
	last := len(messages) - 1
	for i, m := range messages {
		w.now, w.from = i, from[i]
		switch {
		case m.Role == llm.Assistant:
			w.assistant(m)
		case i == last:
			w.user(m, tail, true)
			tail = ""
		default:
			w.user(m, "", i >= last-2)
		}
	}
	if tail != "" {
		w.now = -1
		w.message("user", []part{{text: tail, block: -1}})
	}
}

// sendable returns the messages of req in the form that can be sent, and the
// block that each of their blocks was made of.
func sendable(req llm.Request, images wire.Images) (messages []llm.Message, from [][]int) {
	messages, from = slices.Clone(req.Messages), make([][]int, len(req.Messages))
	for i := range messages {
		messages[i].Blocks, from[i] = llm.Trace(messages[i])
	}
	images.Limit(messages)
	return messages, from
}

// part is a text or, with an URL, a picture.
type part struct {
	text   string
	url    string
	marked bool
	block  int // that it was made of; -1: several, or none
}

// message writes a message of parts.
func (w *writer) message(role string, parts []part) {
	at := place{message: w.now}
	for _, p := range parts {
		at.parts = append(at.parts, w.of(p.block))
	}
	w.sent = append(w.sent, at)
	w.Object("", func() {
		w.Text("role", role)
		if len(parts) == 1 && parts[0].url == "" && !w.marks {
			w.Text("content", parts[0].text)
			return
		}
		w.Array("content", func() {
			for _, p := range parts {
				w.Object("", func() { w.part(p) })
			}
		})
	})
}

func (w *writer) part(p part) {
	if p.url != "" {
		w.Text("type", "image_url")
		w.Object("image_url", func() { w.Text("url", p.url) })
		return
	}
	w.Text("type", "text")
	w.Text("text", p.text)
	if w.marks && p.marked {
		w.Raw("cache_control", `{"type":"ephemeral"}`)
	}
}

func (w *writer) assistant(m llm.Message) {
	text, calls := m.Text(), m.Calls()
	if text == "" && len(calls) == 0 {
		return
	}
	at := place{message: w.now}
	for i, b := range m.Blocks {
		switch b.(type) {
		case llm.Text:
			at.parts = append(at.parts, w.of(i))
		case llm.ToolCall:
			at.calls = append(at.calls, w.of(i))
		}
	}
	w.sent = append(w.sent, at)
	w.Object("", func() {
		w.Text("role", "assistant")
		if text != "" {
			w.Text("content", text)
		}
		if len(calls) == 0 {
			return
		}
		w.Array("tool_calls", func() {
			for _, c := range calls {
				w.Object("", func() {
					w.Text("id", llm.CallID(c.ID))
					w.Text("type", "function")
					w.Object("function", func() {
						w.Text("name", c.Name)
						w.Text("arguments", string(c.Args))
					})
				})
			}
		})
	})
}

// user writes one message for each tool result and one for the rest. Pictures
// that tools returned move into the latter, since a tool message holds text
// only. Tail goes to the end of the last message there is: a further user
// message after results is one that several chat templates refuse.
func (w *writer) user(m llm.Message, tail string, marked bool) {
	var texts []string
	var parts []part
	var results []llm.ToolResult
	said := -1 // the block of the text, if it is one
	for i, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			if said = i; len(texts) > 0 {
				said = -1
			}
			texts = append(texts, b.Text)
		case llm.Image:
			parts = append(parts, picture(b, i))
		case llm.ToolResult:
			results = append(results, b)
			w.sent = append(w.sent, place{w.now, []int{w.of(i)}, nil})
			if images := pictures(b, i); len(images) > 0 {
				parts = append(parts, part{text: fmt.Sprintf("[from %s, call %s]", llm.CallName(b.Name), llm.CallID(b.CallID)), block: i})
				parts = append(parts, images...)
			}
		}
	}
	alone := len(texts) == 0 && len(parts) == 0
	for i, r := range results {
		text := result(r)
		if alone && i == len(results)-1 {
			text, tail = join(text, tail), ""
		}
		w.Object("", func() {
			w.Text("role", "tool")
			w.Text("tool_call_id", llm.CallID(r.CallID))
			w.Text("content", text)
		})
	}
	text := strings.Join(texts, "\n")
	if len(parts) == 0 && !w.marks {
		text, tail = join(text, tail), ""
	}
	if text != "" {
		parts = append(parts, part{text: text, marked: marked, block: said})
	}
	if tail != "" {
		parts = append(parts, part{text: tail, block: -1})
	}
	if len(parts) > 0 {
		w.message("user", parts)
	}
}

func join(text, tail string) string {
	if text == "" || tail == "" {
		return text + tail
	}
	return text + "\n\n" + tail
}

func picture(img llm.Image, block int) part {
	return part{url: "data:" + img.MIME + ";base64," + img.Data, block: block}
}

func pictures(r llm.ToolResult, block int) (out []part) {
	for _, b := range r.Blocks {
		if img, ok := b.(llm.Image); ok {
			out = append(out, picture(img, block))
		}
	}
	return out
}

// result returns the text of a tool result. The API has no field for failure,
// so the text says it, unless it does already.
func result(r llm.ToolResult) string {
	text := r.Text()
	if n := llm.SizeOf(r.Blocks).Images; n > 0 {
		text = join(text, fmt.Sprintf("[images: %d, see the next message]", n))
	}
	if r.IsError && !(len(text) >= 5 && strings.EqualFold(text[:5], "error")) {
		text = "Error: " + text
	}
	return text
}
