package anthropic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// try makes one call and hands its deltas to out. It returns nil after End or
// when the reader has left.
func (p *Provider) try(ctx context.Context, body []byte, header http.Header, out *wire.Sink) error {
	stream, err := p.api.Post(ctx, "v1/messages", body, header)
	if err != nil {
		return err
	}
	defer stream.Close()
	var a answer
	for ev, err := range decode(stream) {
		if err != nil {
			return err
		}
		done, err := a.take(ev, out)
		if err != nil || done || out.Stopped {
			return err
		}
		if out.Full {
			a.stop = "max_tokens"
			a.finish(out)
			out.Put(llm.Delta{End: a.end()})
			return nil
		}
	}
	return wire.ErrCut
}

// streamEvent is the used part of an event of the stream.
type streamEvent struct {
	Type    wire.Text   `json:"type"`
	Index   wire.Number `json:"index"`
	Message struct {
		Model wire.Text `json:"model"`
		Usage usage     `json:"usage"`
	} `json:"message"`
	Block content `json:"content_block"`
	Delta struct {
		Type       wire.Text `json:"type"`
		Text       wire.Text `json:"text"`
		Thinking   wire.Text `json:"thinking"`
		Signature  wire.Text `json:"signature"`
		JSON       wire.Text `json:"partial_json"`
		StopReason wire.Text `json:"stop_reason"`
		Details    struct {
			Explanation wire.Text `json:"explanation"`
		} `json:"stop_details"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// content is the beginning of a block, with its bytes.
type content struct {
	contentFields
	raw json.RawMessage
}

type contentFields struct {
	Type      wire.Text       `json:"type"`
	Text      wire.Text       `json:"text"`
	Thinking  wire.Text       `json:"thinking"`
	Signature wire.Text       `json:"signature"`
	Data      wire.Text       `json:"data"`
	ID        wire.Text       `json:"id"`
	Name      wire.Text       `json:"name"`
	Input     json.RawMessage `json:"input"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *content) UnmarshalJSON(data []byte) error {
	c.raw = slices.Clone(data)
	return wire.Decode(data, &c.contentFields)
}

type usage struct {
	Input      wire.Number `json:"input_tokens"`
	Output     wire.Number `json:"output_tokens"`
	CacheRead  wire.Number `json:"cache_read_input_tokens"`
	CacheWrite wire.Number `json:"cache_creation_input_tokens"`
}

// set takes the running totals; those that an event leaves out stay.
func (u usage) set(to *llm.Usage) {
	u.Input.Set(&to.Input)
	u.Output.Set(&to.Output)
	u.CacheRead.Set(&to.CacheRead)
	u.CacheWrite.Set(&to.CacheWrite)
}

// decode reads the events of a stream. Pings, events without a name and empty
// ones are skipped; an error event is the last item.
func decode(r io.Reader) iter.Seq2[streamEvent, error] {
	return func(yield func(streamEvent, error) bool) {
		for e, err := range wire.Events(r) {
			var ev streamEvent
			switch {
			case err != nil:
			case e.Name == "error":
				err = &wire.StreamError{Data: slices.Clone(e.Data)}
			case e.Name == "ping" || e.Name == "" || len(bytes.TrimSpace(e.Data)) == 0:
				continue
			default:
				err = wire.Decode(e.Data, &ev)
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

// answer puts a message together from events.
type answer struct {
	began   bool
	model   string
	usage   llm.Usage
	stop    string
	refusal string
	open    *part // the API sends blocks one after the other
	blocks  []llm.Block
}

type part struct {
	index int
	kind  string
	text  strings.Builder // text, thinking, or arguments
	sig   string
	id    string
	name  string
	raw   string
}

// take adds one event. It reports true after End.
func (a *answer) take(ev streamEvent, out *wire.Sink) (done bool, err error) {
	if !a.began && ev.Type != "message_start" {
		return false, &wire.MalformedError{What: fmt.Sprintf("event %q before the message began", wire.Line(string(ev.Type)))}
	}
	switch ev.Type {
	case "message_start":
		a.began = true
		a.model = string(ev.Message.Model)
		a.usage = llm.Usage{}
		ev.Message.Usage.set(&a.usage)
		sofar := a.usage
		out.Put(llm.Delta{Begun: &sofar})
	case "content_block_start":
		return false, a.start(ev, out)
	case "content_block_delta":
		return false, a.grow(ev, out)
	case "content_block_stop":
		a.finish(out)
	case "message_delta":
		a.stop = string(ev.Delta.StopReason)
		a.refusal = string(ev.Delta.Details.Explanation)
		ev.Usage.set(&a.usage)
	case "message_stop":
		a.finish(out)
		if a.stop == "refusal" {
			return false, &refused{a.refusal}
		}
		out.Put(llm.Delta{End: a.end()})
		return true, nil
	}
	return false, nil
}

func (a *answer) start(ev streamEvent, out *wire.Sink) error {
	if a.open != nil {
		return &wire.MalformedError{What: fmt.Sprintf("block %d began inside block %d", ev.Index.N, a.open.index)}
	}
	c := ev.Block
	b := &part{index: ev.Index.N, kind: string(c.Type), id: out.Keep(string(c.ID)), name: out.Keep(string(c.Name))}
	a.open = b
	out.KeepBlock()
	switch c.Type {
	case "text":
		a.say(b, c.Text, out)
	case "thinking":
		b.sig = out.Keep(string(c.Signature))
		a.say(b, c.Thinking, out)
	case "redacted_thinking":
		b.sig = out.Keep(string(c.Data))
	case "tool_use":
		// A call may come whole, without deltas; usually this is {}.
		b.raw = out.Keep(string(c.Input))
	default:
		b.raw = out.Keep(string(c.raw))
	}
	return nil
}

func (a *answer) grow(ev streamEvent, out *wire.Sink) error {
	b := a.open
	if b == nil || b.index != ev.Index.N {
		return &wire.MalformedError{What: fmt.Sprintf("a delta for block %d, which is not open", ev.Index.N)}
	}
	switch ev.Delta.Type {
	case "text_delta":
		a.say(b, ev.Delta.Text, out)
	case "thinking_delta":
		a.say(b, ev.Delta.Thinking, out)
	case "signature_delta":
		b.sig += out.Keep(string(ev.Delta.Signature))
	case "input_json_delta":
		b.text.WriteString(out.Keep(string(ev.Delta.JSON)))
	}
	return nil
}

// say adds text to b and yields it.
func (a *answer) say(b *part, t wire.Text, out *wire.Sink) {
	text := out.Keep(string(t))
	if text == "" {
		return
	}
	b.text.WriteString(text)
	switch b.kind {
	case "text":
		out.Put(llm.Delta{Text: text})
	case "thinking":
		out.Put(llm.Delta{Thinking: text})
	}
}

// finish closes the open block and keeps its content.
func (a *answer) finish(out *wire.Sink) {
	b := a.open
	a.open = nil
	if b == nil {
		return
	}
	switch b.kind {
	case "text":
		if b.text.Len() > 0 {
			a.blocks = append(a.blocks, llm.Text{Text: b.text.String()})
		}
	case "thinking":
		if b.text.Len() > 0 || b.sig != "" {
			a.blocks = append(a.blocks, llm.Thinking{Text: b.text.String(), Signature: b.sig})
		}
	case "redacted_thinking":
		a.blocks = append(a.blocks, llm.Thinking{Signature: b.sig, Redacted: true})
	case "tool_use":
		text := b.text.String()
		if text == "" {
			text = b.raw
		}
		call := llm.ToolCall{ID: b.id, Name: b.name, Args: wire.Args(text)}
		a.blocks = append(a.blocks, call)
		out.Put(llm.Delta{Call: &call})
	default:
		a.blocks = append(a.blocks, llm.Other{Raw: json.RawMessage(wire.Clean(b.raw))})
	}
}

func (a *answer) end() *llm.Answer {
	stop := llm.StopEnd
	switch a.stop {
	case "max_tokens", "model_context_window_exceeded":
		stop = llm.StopLength
	case "tool_use":
		stop = llm.StopTool
	}
	return &llm.Answer{
		Message: llm.Message{Role: llm.Assistant, Blocks: a.blocks},
		Usage:   a.usage, Stop: stop, Model: a.model,
	}
}
