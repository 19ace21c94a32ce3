package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// try makes one call and hands its deltas to out. It returns nil after End or
// when the reader has left.
func (p *Responses) try(ctx context.Context, body []byte, req llm.Request, out *wire.Sink) error {
	stream, err := p.api.Post(ctx, "responses", body, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	a := response{used: map[string]bool{}, open: map[int]*output{}}
	for _, m := range req.Messages {
		for _, c := range m.Calls() {
			a.used[c.ID] = true
		}
	}
	for ev, err := range decodeEvents(stream) {
		if err != nil {
			return err
		}
		done, err := a.take(ev, out)
		if err != nil || out.Stopped {
			return err
		}
		if done || out.Full {
			a.close(out)
			out.Put(llm.Delta{End: a.end(out.Full)})
			return nil
		}
	}
	return wire.ErrCut
}

// responseEvent is the used part of an event of the stream.
type responseEvent struct {
	Type     wire.Text   `json:"type"`
	Index    wire.Number `json:"output_index"`
	Part     wire.Number `json:"summary_index"`
	Delta    wire.Text   `json:"delta"`
	Item     outputItem  `json:"item"`
	Response struct {
		Model   wire.Text       `json:"model"`
		Usage   *responseUsage  `json:"usage"`
		Error   json.RawMessage `json:"error"`
		Details struct {
			Reason wire.Text `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`

	Error json.RawMessage `json:"error"`
	raw   []byte
}

// outputItem is an item of the answer, with its bytes.
type outputItem struct {
	outputFields
	raw json.RawMessage
}

type outputFields struct {
	Type      wire.Text    `json:"type"`
	ID        wire.Text    `json:"id"`
	CallID    wire.Text    `json:"call_id"`
	Name      wire.Text    `json:"name"`
	Arguments wire.Text    `json:"arguments"`
	Phase     wire.Text    `json:"phase"`
	Encrypted wire.Text    `json:"encrypted_content"`
	Summary   []outputPart `json:"summary"`
	Content   []outputPart `json:"content"`
}

type outputPart struct {
	Type    wire.Text `json:"type"`
	Text    wire.Text `json:"text"`
	Refusal wire.Text `json:"refusal"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *outputItem) UnmarshalJSON(data []byte) error {
	c.raw = slices.Clone(data)
	return wire.Decode(data, &c.outputFields)
}

type responseUsage struct {
	Input   wire.Number `json:"input_tokens"`
	Output  wire.Number `json:"output_tokens"`
	Details struct {
		Cached  wire.Number `json:"cached_tokens"`
		Written wire.Number `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
}

// tokens counts reasoning as output, as it is paid for.
func (u responseUsage) tokens() llm.Usage {
	read, write := u.Details.Cached.N, u.Details.Written.N
	return llm.Usage{Input: max(0, u.Input.N-read-write), Output: u.Output.N, CacheRead: read, CacheWrite: write}
}

// decodeEvents reads the events of a stream.
func decodeEvents(r io.Reader) iter.Seq2[responseEvent, error] {
	return decodeAs(r, func(ev *responseEvent, raw []byte) json.RawMessage {
		ev.raw = raw
		return ev.Error
	})
}

// response puts a message together from events.
type response struct {
	began bool
	model string
	usage llm.Usage
	cut   bool            // it reached its longest length
	items []*output       // in the order in which they began
	open  map[int]*output // by their index
	used  map[string]bool // ids of calls
}

// output is an item on its way.
type output struct {
	kind  string
	text  strings.Builder // text, thinking, or arguments
	begun outputItem
	done  bool
	sig   string // of text and thinking
	call  *llm.ToolCall
	raw   string // of an unknown kind
}

// take adds one event. It reports true after the last.
func (a *response) take(ev responseEvent, out *wire.Sink) (done bool, err error) {
	if !a.began {
		a.began = true
		out.Put(llm.Delta{Begun: &llm.Usage{}})
	}
	if ev.Response.Model != "" {
		a.model = string(ev.Response.Model)
	}
	if ev.Response.Usage != nil {
		a.usage = ev.Response.Usage.tokens()
		sofar := a.usage
		out.Put(llm.Delta{Begun: &sofar})
	}
	switch ev.Type {
	case "response.output_item.added":
		a.item(ev, string(ev.Item.Type), out)
	case "response.output_text.delta", "response.refusal.delta":
		a.say(a.item(ev, "message", out), string(ev.Delta), out)
	case "response.reasoning_summary_part.added":
		if o := a.item(ev, "reasoning", out); ev.Part.N > 0 && o.text.Len() > 0 {
			a.say(o, between, out)
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.say(a.item(ev, "reasoning", out), string(ev.Delta), out)
	case "response.function_call_arguments.delta":
		a.say(a.item(ev, "function_call", out), string(ev.Delta), out)
	case "response.output_item.done":
		a.finish(a.item(ev, string(ev.Item.Type), out), ev.Item, out)
	case "response.completed":
		return true, nil
	case "response.incomplete":
		if ev.Response.Details.Reason == "content_filter" {
			return false, errFiltered
		}
		a.cut = true
		return true, nil
	case "response.failed":
		if !given(ev.Response.Error) {
			return false, &wire.MalformedError{What: "a failure without its error"}
		}
		return false, &wire.StreamError{Data: slices.Concat([]byte(`{"error":`), ev.Response.Error, []byte("}"))}
	case "error":
		return false, &wire.StreamError{Data: slices.Concat([]byte(`{"error":`), ev.raw, []byte("}"))}
	}
	return false, nil
}

// between stands between the parts of a summary.
const between = "\n\n"

// item returns the item that ev is about. It is of a kind if it begins.
func (a *response) item(ev responseEvent, kind string, out *wire.Sink) *output {
	o := a.open[ev.Index.N]
	if o == nil {
		o = &output{kind: kind, begun: ev.Item}
		a.open[ev.Index.N] = o
		a.items = append(a.items, o)
		out.KeepBlock()
	}
	return o
}

// say adds text to o and yields it.
func (a *response) say(o *output, text string, out *wire.Sink) {
	if text = out.Keep(text); text == "" {
		return
	}
	o.text.WriteString(text)
	switch o.kind {
	case "message":
		out.Put(llm.Delta{Text: text})
	case "reasoning":
		out.Put(llm.Delta{Thinking: text})
	}
}

// finish ends o. A server may send an item whole.
func (a *response) finish(o *output, it outputItem, out *wire.Sink) {
	if o.done {
		return
	}
	o.done = true
	if o.text.Len() == 0 {
		a.say(o, it.whole(), out)
	}
	switch o.kind {
	case "message":
		if it.ID != "" {
			o.sign(textItem{V: 1, ID: string(it.ID), Phase: string(it.Phase)}, out)
		}
	case "reasoning":
		if r := it.reasoning(); r.Encrypted != "" || len(r.Content) > 0 {
			o.sign(r, out)
		}
	case "function_call":
		o.call = a.call(o, it, out)
		out.Put(llm.Delta{Call: o.call})
	default:
		o.raw = out.Keep(string(it.raw))
	}
}

// close ends what the answer was cut in. Reasoning is of no use then: what is
// encrypted of it at its beginning is not all.
func (a *response) close(out *wire.Sink) {
	for _, o := range a.items {
		if o.kind != "reasoning" {
			a.finish(o, o.begun, out)
		}
	}
}

// whole is what deltas would have said of an item.
func (it outputItem) whole() string {
	if it.Type == "function_call" {
		return string(it.Arguments)
	}
	var parts []string
	for _, p := range slices.Concat(it.Summary, it.Content) {
		parts = append(parts, string(p.Text+p.Refusal))
	}
	if it.Type == "reasoning" {
		return strings.Join(parts, between)
	}
	return strings.Join(parts, "")
}

// reasoning returns the item that is sent back.
func (it outputItem) reasoning() reasoningItem {
	r := reasoningItem{ID: string(it.ID), Type: "reasoning", Summary: []thoughtPart{}, Encrypted: string(it.Encrypted)}
	for _, p := range it.Summary {
		r.Summary = append(r.Summary, thoughtPart{"summary_text", string(p.Text)})
	}
	if r.Encrypted != "" {
		return r
	}
	for _, p := range it.Content {
		r.Content = append(r.Content, thoughtPart{"reasoning_text", string(p.Text)})
	}
	return r
}

// sign keeps an item as the signature of o, if all of it is kept.
func (o *output) sign(item any, out *wire.Sink) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(item); err != nil {
		panic(err) // structs of strings always have a JSON form
	}
	sig := strings.TrimSpace(b.String())
	if out.Keep(sig) == sig {
		o.sig = sig
	}
}

// call returns the call that o is.
func (a *response) call(o *output, it outputItem, out *wire.Sink) *llm.ToolCall {
	id := identify(out.Keep(string(it.CallID)), len(a.items)-1, a.used)
	return &llm.ToolCall{ID: id, Name: out.Keep(string(it.Name)), Args: wire.Args(o.text.String()), Signature: out.Keep(string(it.ID))}
}

func (a *response) end(full bool) *llm.Answer {
	ans := &llm.Answer{Message: llm.Message{Role: llm.Assistant}, Usage: a.usage, Model: a.model, Stop: llm.StopEnd}
	for _, o := range a.items {
		if b := o.block(); b != nil {
			ans.Message.Blocks = append(ans.Message.Blocks, b)
		}
	}
	switch {
	case a.cut || full:
		ans.Stop = llm.StopLength
	case len(ans.Message.Calls()) > 0:
		ans.Stop = llm.StopTool
	}
	return ans
}

// block returns what is kept of o, or nil.
func (o *output) block() llm.Block {
	text := o.text.String()
	switch {
	case o.kind == "message" && text != "":
		return llm.Text{Text: text, Signature: o.sig}
	case o.kind == "reasoning" && text+o.sig != "":
		return llm.Thinking{Text: text, Signature: o.sig}
	case o.call != nil:
		return *o.call
	case o.raw != "":
		return llm.Other{Raw: json.RawMessage(wire.Clean(o.raw))}
	}
	return nil
}
