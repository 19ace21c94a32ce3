package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// try makes one call and hands its deltas to out. It returns nil after End or
// when the reader has left.
func (p *Provider) try(ctx context.Context, opts []option.RequestOption, out *wire.Sink) error {
	// The parameters are empty because opts hold the body.
	stream := p.messages.NewStreaming(ctx, sdk.MessageNewParams{}, opts...)
	defer stream.Close()
	var a answer
	for stream.Next() {
		done, err := a.take(stream.Current(), out)
		if err != nil || done || out.Stopped {
			return err
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return wire.ErrCut
}

// answer puts a message together from events.
type answer struct {
	began   bool
	model   string
	usage   llm.Usage
	stop    sdk.StopReason
	refusal string
	open    *part // the API sends blocks one after the other
	blocks  []llm.Block
}

type part struct {
	index int64
	kind  string
	text  strings.Builder // text, thinking, or arguments
	sig   string
	id    string
	name  string
	raw   string
}

// take adds one event. It reports true after End.
func (a *answer) take(ev sdk.MessageStreamEventUnion, out *wire.Sink) (done bool, err error) {
	if !a.began && ev.Type != "message_start" {
		return false, &wire.MalformedError{What: fmt.Sprintf("event %q before the message began", wire.Line(ev.Type))}
	}
	switch ev.Type {
	case "message_start":
		a.began = true
		a.model = wire.Clean(string(ev.Message.Model))
		u := ev.Message.Usage
		a.usage = llm.Usage{
			Input: int(u.InputTokens), Output: int(u.OutputTokens),
			CacheRead: int(u.CacheReadInputTokens), CacheWrite: int(u.CacheCreationInputTokens),
		}
		sofar := a.usage
		out.Put(llm.Delta{Begun: &sofar})
	case "content_block_start":
		return false, a.start(ev, out)
	case "content_block_delta":
		return false, a.grow(ev, out)
	case "content_block_stop":
		a.finish(out)
	case "message_delta":
		a.stop = ev.Delta.StopReason
		a.refusal = ev.Delta.StopDetails.Explanation
		a.count(ev.Usage)
	case "message_stop":
		a.finish(out)
		if a.stop == sdk.StopReasonRefusal {
			return false, &refused{a.refusal}
		}
		out.Put(llm.Delta{End: a.end()})
		return true, nil
	}
	return false, nil
}

// count takes the running totals; those that an event leaves out stay.
func (a *answer) count(u sdk.MessageDeltaUsage) {
	set := func(to *int, valid bool, n int64) {
		if valid {
			*to = int(n)
		}
	}
	set(&a.usage.Output, u.JSON.OutputTokens.Valid(), u.OutputTokens)
	set(&a.usage.Input, u.JSON.InputTokens.Valid(), u.InputTokens)
	set(&a.usage.CacheRead, u.JSON.CacheReadInputTokens.Valid(), u.CacheReadInputTokens)
	set(&a.usage.CacheWrite, u.JSON.CacheCreationInputTokens.Valid(), u.CacheCreationInputTokens)
}

func (a *answer) start(ev sdk.MessageStreamEventUnion, out *wire.Sink) error {
	if a.open != nil {
		return &wire.MalformedError{What: fmt.Sprintf("block %d began inside block %d", ev.Index, a.open.index)}
	}
	c := ev.ContentBlock
	b := &part{index: ev.Index, kind: c.Type, id: wire.Clean(c.ID), name: wire.Clean(c.Name)}
	a.open = b
	switch c.Type {
	case "text":
		a.say(b, c.Text, out)
	case "thinking":
		b.sig = c.Signature
		a.say(b, c.Thinking, out)
	case "redacted_thinking":
		b.sig = c.Data
	case "tool_use":
		// A call may come whole, without deltas; usually this is {}.
		if in, err := json.Marshal(c.Input); err == nil && c.Input != nil && string(in) != "{}" {
			b.raw = string(in)
		}
	default:
		b.raw = c.RawJSON()
	}
	return nil
}

func (a *answer) grow(ev sdk.MessageStreamEventUnion, out *wire.Sink) error {
	b := a.open
	if b == nil || b.index != ev.Index {
		return &wire.MalformedError{What: fmt.Sprintf("a delta for block %d, which is not open", ev.Index)}
	}
	switch ev.Delta.Type {
	case "text_delta":
		a.say(b, ev.Delta.Text, out)
	case "thinking_delta":
		a.say(b, ev.Delta.Thinking, out)
	case "signature_delta":
		b.sig += ev.Delta.Signature
	case "input_json_delta":
		b.text.WriteString(ev.Delta.PartialJSON)
	}
	return nil
}

// say adds text to b and yields it.
func (a *answer) say(b *part, text string, out *wire.Sink) {
	if text == "" {
		return
	}
	text = wire.Clean(text)
	b.text.WriteString(text)
	switch b.kind {
	case "text":
		out.Put(llm.Delta{Text: text})
	case "thinking":
		out.Put(llm.Delta{Thinking: text})
	}
}

// finish closes the open block and keeps what it came to.
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
			a.blocks = append(a.blocks, llm.Thinking{Text: b.text.String(), Signature: wire.Clean(b.sig)})
		}
	case "redacted_thinking":
		a.blocks = append(a.blocks, llm.Thinking{Signature: wire.Clean(b.sig), Redacted: true})
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
	case sdk.StopReasonMaxTokens, sdk.StopReasonModelContextWindowExceeded:
		stop = llm.StopLength
	case sdk.StopReasonToolUse:
		stop = llm.StopTool
	}
	return &llm.Answer{
		Message: llm.Message{Role: llm.Assistant, Blocks: a.blocks},
		Usage:   a.usage, Stop: stop, Model: a.model,
	}
}
