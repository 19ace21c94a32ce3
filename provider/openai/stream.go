package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// errFiltered: the server withheld the rest.
var errFiltered = errors.New("the answer was withheld by a content filter")

// errNoRoom: the prompt fills the window, which z.ai says in place of an answer.
var errNoRoom = errors.New("the prompt leaves no room for an answer")

// noRoom is the finish_reason of an answer that filled the window.
const noRoom = "model_context_window_exceeded"

// try makes one call and hands its deltas to out. It returns nil after End or
// when the reader has left.
//
// An answer is whole when a finish_reason came and the stream then ended in
// good order, with [DONE] or without: not every server sends it.
func (p *Provider) try(ctx context.Context, body []byte, req llm.Request, out *wire.Sink) error {
	stream, err := p.api.Post(ctx, "chat/completions", body, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	var a answer
	for c, err := range decode(stream) {
		if err != nil {
			return err
		}
		a.take(c, out)
		if out.Stopped {
			return nil
		}
		if out.Full {
			a.finish = "length"
			break
		}
	}
	switch a.finish {
	case "":
		return wire.ErrCut
	case "content_filter":
		return errFiltered
	}
	if a.finish == noRoom && len(a.spans) == 0 && len(a.calls) == 0 {
		return errNoRoom
	}
	end := a.end(req)
	for _, c := range end.Message.Calls() {
		if !out.Put(llm.Delta{Call: &c}) {
			return nil
		}
	}
	out.Put(llm.Delta{End: end})
	return nil
}

// streamChunk is the used part of a chunk of the stream.
type streamChunk struct {
	ID      wire.Text `json:"id"`
	Model   wire.Text `json:"model"`
	Usage   *usage    `json:"usage"`
	Choices []struct {
		Delta struct {
			Content          wire.Text  `json:"content"`
			Refusal          wire.Text  `json:"refusal"`
			ReasoningContent wire.Text  `json:"reasoning_content"`
			Reasoning        wire.Text  `json:"reasoning"`
			Calls            []callPart `json:"tool_calls"`
		} `json:"delta"`
		Finish wire.Text `json:"finish_reason"`
	} `json:"choices"`
	Error json.RawMessage `json:"error"`
}

type callPart struct {
	Index    wire.Number `json:"index"`
	ID       wire.Text   `json:"id"`
	Function struct {
		Name      wire.Text `json:"name"`
		Arguments wire.Text `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     wire.Number `json:"prompt_tokens"`
	Completion wire.Number `json:"completion_tokens"`
	Details    struct {
		Cached  wire.Number `json:"cached_tokens"`
		Written wire.Number `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Hit wire.Number `json:"prompt_cache_hit_tokens"` // DeepSeek's name for Cached
}

// decode reads the chunks of a stream.
func decode(r io.Reader) iter.Seq2[streamChunk, error] {
	return decodeAs(r, func(c *streamChunk, _ []byte) json.RawMessage { return c.Error })
}

// decodeAs reads the events of a stream up to [DONE]. Read completes one from its
// bytes and returns the error in it, which is the last item.
func decodeAs[T any](r io.Reader, read func(ev *T, raw []byte) json.RawMessage) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for e, err := range wire.Events(r) {
			var ev T
			if err == nil {
				if bytes.HasPrefix(e.Data, []byte("[DONE]")) {
					return
				}
				err = wire.Decode(e.Data, &ev)
			}
			if err == nil && given(read(&ev, e.Data)) {
				err = &wire.StreamError{Data: slices.Clone(e.Data)}
			}
			if !yield(ev, err) || err != nil {
				return
			}
		}
	}
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// answer puts a message together from chunks.
type answer struct {
	began  bool
	id     string
	model  string
	finish string
	usage  llm.Usage
	spans  []span
	calls  []*call
	open   map[int]*call // by the index the server gives
}

// span is a stretch of text or of thinking.
type span struct {
	thinking bool
	text     strings.Builder
}

type call struct {
	id, name string
	args     strings.Builder
}

func (a *answer) take(c streamChunk, out *wire.Sink) {
	if !a.began {
		a.began = true
		out.Put(llm.Delta{Begun: &llm.Usage{}})
	}
	if c.ID != "" {
		a.id = string(c.ID)
	}
	if c.Model != "" {
		a.model = string(c.Model)
	}
	if c.Usage != nil {
		a.usage = c.Usage.tokens()
		sofar := a.usage
		out.Put(llm.Delta{Begun: &sofar}) // some servers report it with every chunk
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	if t := string(cmp.Or(choice.Delta.ReasoningContent, choice.Delta.Reasoning)); t != "" {
		if t = a.say(true, t, out); t != "" {
			out.Put(llm.Delta{Thinking: t})
		}
	}
	// A refusal has its own field, in place of the content.
	if t := string(choice.Delta.Content + choice.Delta.Refusal); t != "" {
		if t = a.say(false, t, out); t != "" {
			out.Put(llm.Delta{Text: t})
		}
	}
	for _, t := range choice.Delta.Calls {
		a.grow(t, out)
	}
	if choice.Finish != "" {
		a.finish = string(choice.Finish)
	}
}

// say adds text, and returns what is kept of it.
func (a *answer) say(thinking bool, text string, out *wire.Sink) string {
	if n := len(a.spans); n == 0 || a.spans[n-1].thinking != thinking {
		a.spans = append(a.spans, span{thinking: thinking})
		out.KeepBlock()
	}
	text = out.Keep(text)
	a.spans[len(a.spans)-1].text.WriteString(text)
	return text
}

// grow adds to the call with t's index. Some servers send each of several
// parallel calls whole and all with index 0, so a new id or, without ids, a
// name after arguments begins a new call.
func (a *answer) grow(t callPart, out *wire.Sink) {
	c := a.open[t.Index.N]
	id, name := string(t.ID), string(t.Function.Name)
	fresh := c == nil ||
		id != "" && c.id != "" && id != c.id ||
		id == "" && c.id == "" && name != "" && c.args.Len() > 0
	if fresh {
		c = &call{}
		out.KeepBlock()
		a.calls = append(a.calls, c)
		if a.open == nil {
			a.open = map[int]*call{}
		}
		a.open[t.Index.N] = c
	}
	if id != "" && id != c.id {
		c.id = out.Keep(id)
	}
	if c.name == "" {
		c.name = out.Keep(name)
	}
	c.args.WriteString(out.Keep(string(t.Function.Arguments)))
}

func (u usage) tokens() llm.Usage {
	read := cmp.Or(u.Details.Cached.N, u.Hit.N)
	write := u.Details.Written.N
	return llm.Usage{
		Input:     max(0, u.Prompt.N-read-write),
		Output:    u.Completion.N,
		CacheRead: read, CacheWrite: write,
	}
}

func (a *answer) end(req llm.Request) *llm.Answer {
	ans := &llm.Answer{Message: llm.Message{Role: llm.Assistant}, Usage: a.usage, Model: a.model, Stop: llm.StopEnd}
	for i := range a.spans {
		if s := &a.spans[i]; s.thinking {
			ans.Message.Blocks = append(ans.Message.Blocks, llm.Thinking{Text: s.text.String()})
		} else {
			ans.Message.Blocks = append(ans.Message.Blocks, llm.Text{Text: s.text.String()})
		}
	}
	used := map[string]bool{}
	for _, m := range req.Messages {
		for _, c := range m.Calls() {
			used[c.ID] = true
		}
	}
	for i, c := range a.calls {
		id := identify(c.id, i, used)
		ans.Message.Blocks = append(ans.Message.Blocks, llm.ToolCall{ID: id, Name: c.name, Args: wire.Args(c.args.String())})
	}
	switch a.finish {
	case "length", "model_length", "max_tokens", noRoom: // model_length is Mistral's
		ans.Stop = llm.StopLength
	default:
		if len(a.calls) > 0 {
			ans.Stop = llm.StopTool // some servers finish with "stop" all the same
		}
	}
	return ans
}

// identify returns a call id that is unique in the conversation and of the
// letters that every API accepts. Servers that give none, the same one in each
// answer, or one like functions.read:0 are common.
func identify(id string, i int, used map[string]bool) string {
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", len(used), i)
	}
	id = llm.CallID(id)
	for n := 2; used[id]; n++ {
		cut := strings.TrimSuffix(id, fmt.Sprintf("-%d", n-1))
		id = fmt.Sprintf("%s-%d", cut, n)
	}
	used[id] = true
	return id
}
