package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"goclaw/internal/rawjson"
	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// responsesRequest is everything but the input.
type responsesRequest struct {
	Model        string          `json:"model"`
	Instructions string          `json:"instructions,omitempty"`
	Tools        []responsesTool `json:"tools,omitempty"`
	MaxTokens    int             `json:"max_output_tokens,omitempty"`
	Reasoning    *reasoning      `json:"reasoning,omitempty"`
	Include      []string        `json:"include,omitempty"`
	Store        bool            `json:"store"`
	CacheKey     string          `json:"prompt_cache_key,omitempty"`
}

// responsesTool is not strict: a strict schema has neither optional properties
// nor most of what makes a schema useful, and strict is what this API takes if
// nothing is said.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// leastAnswer is the smallest max_output_tokens that is taken.
const leastAnswer = 16

func (p *Responses) build(req llm.Request, v variant) ([]byte, error) {
	body, err := wire.Body("input", size(req), func(out []byte) []byte {
		return append(p.items(append(out, '['), req).B, ']')
	}, p.settings(req, v))
	if err != nil {
		return nil, fmt.Errorf("%s: request: %w", p.api.Name, err)
	}
	return body, nil
}

func (p *Responses) settings(req llm.Request, v variant) responsesRequest {
	r := responsesRequest{Model: req.Model}
	if !llm.Blank(req.System) {
		r.Instructions = wire.Valid(req.System)
	}
	tools, _ := llm.SendableTools(req.Tools)
	for _, t := range tools {
		r.Tools = append(r.Tools, responsesTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: withProperties(t.Schema)})
	}
	if limit := max(0, cmp.Or(req.MaxTokens, p.maxTokens)); limit > 0 {
		r.MaxTokens = max(limit, leastAnswer)
	}
	if v.effort != "" || v.summary {
		r.Reasoning = &reasoning{Effort: v.effort}
		if v.summary {
			r.Reasoning.Summary = "auto"
		}
	}
	if v.include {
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if p.flavour == own {
		r.CacheKey = cacheKey(req)
	}
	return r
}

// items writes the conversation as the items of an input.
type items struct {
	rawjson.Writer
	places
	foreign func(signature string) bool
	own     bool            // OpenAI's own server
	ids     map[string]bool // of the items so far: each may be there once
}

// items returns a writer that has written the conversation of req to out.
func (p *Responses) items(out []byte, req llm.Request) *items {
	w := &items{Writer: rawjson.Writer{B: out}, own: p.flavour == own, ids: map[string]bool{}, foreign: func(signature string) bool {
		_, ok := p.foreign.Load(signature)
		return ok
	}}
	tail := req.Tail
	if llm.Blank(tail) {
		tail = ""
	}
	messages, from := sendable(req, images)
	for i, m := range messages {
		w.now, w.from = i, from[i]
		switch {
		case m.Role == llm.Assistant:
			w.assistant(m)
		case i == len(messages)-1:
			w.user(m, tail)
			tail = ""
		default:
			w.user(m, "")
		}
	}
	if tail != "" {
		w.now = -1
		w.message([]part{{text: tail, block: -1}})
	}
	return w
}

// Text writes a string. Bytes that are not UTF-8 become U+FFFD.
func (w *items) Text(k, s string) { w.Writer.Text(k, wire.Valid(s)) }

// item writes one item, which was made of the blocks.
func (w *items) item(typ string, blocks []int, write func()) {
	at := place{message: w.now}
	for _, b := range blocks {
		at.parts = append(at.parts, w.of(b))
	}
	w.sent = append(w.sent, at)
	w.Object("", func() {
		w.Writer.Text("type", typ)
		write()
	})
}

// assistant writes an answer. Its reasoning stands where it stood, before what
// followed from it; reasoning that nothing follows is refused, and left out.
// Items keep their ids beside reasoning only: with an id, the API demands the
// reasoning that it knows to belong to the item.
func (w *items) assistant(m llm.Message) {
	type held struct {
		block int
		item  reasoningItem
	}
	var waiting []held
	reasoned := false
	flush := func() {
		for _, h := range waiting {
			w.reasoning(h.block, h.item)
			reasoned = true
		}
		waiting = nil
	}
	for i, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Thinking:
			if item, ok := w.parse(b); ok {
				waiting = append(waiting, held{i, item})
			}
		case llm.Text:
			flush()
			w.said(i, b, reasoned)
		case llm.ToolCall:
			flush()
			w.item("function_call", []int{i}, func() {
				if reasoned {
					w.id("fc", b.Signature)
				}
				w.Text("call_id", llm.CallID(b.ID))
				w.Text("name", b.Name)
				w.Text("arguments", string(b.Args))
			})
		}
	}
}

// itemID is what an id that OpenAI has given looks like.
var itemID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z]+_[A-Za-z0-9_-]{1,60}$`) })

// id writes an id of a kind, unless it is of another, or was used.
func (w *items) id(kind, id string) {
	if w.usable(kind, id) {
		w.ids[id] = true
		w.Text("id", id)
	}
}

func (w *items) usable(kind, id string) bool {
	return strings.HasPrefix(id, kind+"_") && itemID().MatchString(id) && !w.ids[id]
}

// reasoningItem is the signature of thinking, and an item of the API. The order
// of the fields is the one in which the API sends them.
type reasoningItem struct {
	ID        string        `json:"id,omitempty"`
	Type      string        `json:"type"`
	Summary   []thoughtPart `json:"summary"`
	Content   []thoughtPart `json:"content,omitempty"`
	Encrypted string        `json:"encrypted_content,omitempty"`
}

type thoughtPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// parse returns the item that thinking is. Signatures of other APIs are none, and
// OpenAI takes no reasoning that is not encrypted.
func (w *items) parse(t llm.Thinking) (item reasoningItem, ok bool) {
	if !strings.HasPrefix(t.Signature, "{") || w.foreign(t.Signature) || json.Unmarshal([]byte(t.Signature), &item) != nil {
		return item, false
	}
	if item.Encrypted == "" && (w.own || len(item.Content) == 0) || item.Type != "reasoning" {
		return item, false
	}
	return item, item.ID == "" || w.usable("rs", item.ID)
}

func (w *items) reasoning(block int, r reasoningItem) {
	w.item(r.Type, []int{block}, func() {
		w.id("rs", r.ID)
		thoughts := func(k, typ string, parts []thoughtPart) {
			w.Array(k, func() {
				for _, p := range parts {
					w.Object("", func() {
						w.Writer.Text("type", typ)
						w.Text("text", p.Text)
					})
				}
			})
		}
		thoughts("summary", "summary_text", r.Summary)
		if r.Encrypted != "" {
			w.Text("encrypted_content", r.Encrypted)
		} else {
			thoughts("content", "reasoning_text", r.Content)
		}
	})
}

// textItem is the signature of a text: the id of the message that it was, and
// its phase. pi wrote the id alone once.
type textItem struct {
	V     int    `json:"v"`
	ID    string `json:"id"`
	Phase string `json:"phase,omitempty"`
}

func textItemOf(signature string) (t textItem) {
	if !strings.HasPrefix(signature, "{") {
		return textItem{ID: signature}
	}
	if json.Unmarshal([]byte(signature), &t) != nil {
		return textItem{}
	}
	return t
}

// phases are what a message of the model may be. Without its phase, the newer
// models take what they said on the way for their answer.
var phases = []string{"commentary", "final_answer"}

func (w *items) said(block int, t llm.Text, reasoned bool) {
	sig := textItemOf(t.Signature)
	w.item("message", []int{block}, func() {
		w.Writer.Text("role", "assistant")
		phase := func() {
			if slices.Contains(phases, sig.Phase) {
				w.Writer.Text("phase", sig.Phase)
			}
		}
		if !reasoned || !w.usable("msg", sig.ID) {
			phase()
			w.Text("content", t.Text)
			return
		}
		w.id("msg", sig.ID)
		w.Writer.Text("status", "completed")
		phase()
		w.Array("content", func() {
			w.Object("", func() {
				w.Writer.Text("type", "output_text")
				w.Text("text", t.Text)
				w.Raw("annotations", "[]")
			})
		})
	})
}

// user writes an item for each tool result and one for the rest. Tail goes to
// the end of the last: after a message of the user of its own, the model would
// forget what it thought before its calls.
func (w *items) user(m llm.Message, tail string) {
	var parts []part
	last := -1
	for i, b := range m.Blocks {
		switch b := b.(type) {
		case llm.Text:
			parts = append(parts, part{text: b.Text, block: i})
		case llm.Image:
			parts = append(parts, picture(b, i))
		case llm.ToolResult:
			last = i
		}
	}
	for i, b := range m.Blocks {
		r, ok := b.(llm.ToolResult)
		if !ok {
			continue
		}
		end := ""
		if i == last && len(parts) == 0 {
			end, tail = tail, ""
		}
		w.output(i, r, end)
	}
	if tail != "" {
		parts = append(parts, part{text: tail, block: -1})
	}
	if len(parts) > 0 {
		w.message(parts)
	}
}

func (w *items) message(parts []part) {
	var blocks []int
	for _, p := range parts {
		blocks = append(blocks, p.block)
	}
	w.item("message", blocks, func() {
		w.Writer.Text("role", "user")
		w.content("content", parts)
	})
}

func (w *items) content(k string, parts []part) {
	w.Array(k, func() {
		for _, p := range parts {
			w.Object("", func() {
				if p.url != "" {
					w.Writer.Text("type", "input_image")
					w.Writer.Text("detail", "auto")
					w.Text("image_url", p.url)
					return
				}
				w.Writer.Text("type", "input_text")
				w.Text("text", p.text)
			})
		}
	})
}

// output writes a result: a string, or a list if there are pictures in it.
func (w *items) output(block int, r llm.ToolResult, tail string) {
	w.item("function_call_output", []int{block}, func() {
		w.Text("call_id", llm.CallID(r.CallID))
		if llm.SizeOf(r.Blocks).Images == 0 {
			w.Text("output", join(result(r), tail))
			return
		}
		var parts []part
		for _, b := range r.Blocks {
			switch b := b.(type) {
			case llm.Text:
				parts = append(parts, part{text: b.Text})
			case llm.Image:
				parts = append(parts, picture(b, block))
			}
		}
		if tail != "" {
			parts = append(parts, part{text: tail})
		}
		w.content("output", parts)
	})
}
