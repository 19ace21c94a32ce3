package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// errFiltered: the server withheld the rest.
var errFiltered = errors.New("the answer was withheld by a content filter")

// try makes one call and hands its deltas to out. It returns nil after End or
// when the reader has left.
//
// An answer is whole when a finish_reason came and the stream then ended in
// good order, with [DONE] or without: not every server sends it, and the SDK
// does not show it.
func (p *Provider) try(ctx context.Context, body []byte, req llm.Request, out *wire.Sink) error {
	stream := p.completions.NewStreaming(ctx, sdk.ChatCompletionNewParams{}, option.WithRequestBody("application/json", body))
	defer stream.Close()
	var a answer
	for stream.Next() {
		a.take(stream.Current(), out)
		if out.Stopped {
			return nil
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	switch a.finish {
	case "":
		return wire.ErrCut
	case "content_filter":
		return errFiltered
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

// answer puts a message together from chunks.
type answer struct {
	began  bool
	id     string
	model  string
	finish string
	usage  llm.Usage
	spans  []span
	calls  []*call
	open   map[int64]*call // by the index the server gives
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

func (a *answer) take(c sdk.ChatCompletionChunk, out *wire.Sink) {
	if !a.began {
		a.began = true
		out.Put(llm.Delta{Begun: &llm.Usage{}})
	}
	if c.ID != "" {
		a.id = c.ID
	}
	if c.Model != "" {
		a.model = wire.Clean(c.Model)
	}
	if c.JSON.Usage.Valid() {
		a.usage = usage(c.Usage)
		sofar := a.usage
		out.Put(llm.Delta{Begun: &sofar}) // some servers report it with every chunk
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := c.Choices[0]
	extra := choice.Delta.JSON.ExtraFields
	thinking := field(extra["reasoning_content"])
	if thinking == "" {
		thinking = field(extra["reasoning"])
	}
	if thinking != "" {
		a.say(true, thinking)
		out.Put(llm.Delta{Thinking: thinking})
	}
	// A refusal is said in a field of its own, in place of the content.
	if t := wire.Clean(choice.Delta.Content + choice.Delta.Refusal); t != "" {
		a.say(false, t)
		out.Put(llm.Delta{Text: t})
	}
	for _, t := range choice.Delta.ToolCalls {
		a.grow(t)
	}
	if choice.FinishReason != "" {
		a.finish = choice.FinishReason
	}
}

// field reads a field that the SDK does not know. It is a string or null.
func field(f respjson.Field) string {
	var s string
	if json.Unmarshal([]byte(f.Raw()), &s) != nil {
		return ""
	}
	return wire.Clean(s)
}

func (a *answer) say(thinking bool, text string) {
	if n := len(a.spans); n == 0 || a.spans[n-1].thinking != thinking {
		a.spans = append(a.spans, span{thinking: thinking})
	}
	a.spans[len(a.spans)-1].text.WriteString(text)
}

// grow adds to the call with t's index. Some servers send each of several
// parallel calls whole and all with index 0, so a new id or, without ids, a
// name after arguments begins a new call.
func (a *answer) grow(t sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	c := a.open[t.Index]
	fresh := c == nil ||
		t.ID != "" && c.id != "" && t.ID != c.id ||
		t.ID == "" && c.id == "" && t.Function.Name != "" && c.args.Len() > 0
	if fresh {
		c = &call{}
		a.calls = append(a.calls, c)
		if a.open == nil {
			a.open = map[int64]*call{}
		}
		a.open[t.Index] = c
	}
	if t.ID != "" {
		c.id = t.ID
	}
	if c.name == "" {
		c.name = wire.Clean(t.Function.Name)
	}
	c.args.WriteString(t.Function.Arguments)
}

func usage(u sdk.CompletionUsage) llm.Usage {
	read := int(u.PromptTokensDetails.CachedTokens)
	if hit := u.JSON.ExtraFields["prompt_cache_hit_tokens"]; read == 0 && hit.Raw() != "" {
		json.Unmarshal([]byte(hit.Raw()), &read) // DeepSeek's name for it; else it stays 0
	}
	write := int(u.PromptTokensDetails.CacheWriteTokens)
	return llm.Usage{
		Input:     max(0, int(u.PromptTokens)-read-write),
		Output:    int(u.CompletionTokens),
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
		id := a.identify(c.id, i, used)
		ans.Message.Blocks = append(ans.Message.Blocks, llm.ToolCall{ID: id, Name: c.name, Args: wire.Args(c.args.String())})
	}
	switch {
	case a.finish == "length":
		ans.Stop = llm.StopLength
	case len(a.calls) > 0:
		ans.Stop = llm.StopTool // some servers finish with "stop" all the same
	}
	return ans
}

// identify returns a call id that is unique in the conversation and of the
// letters that every API accepts. Servers that give none, the same one in each
// answer, or one like functions.read:0 are common.
func (a *answer) identify(id string, i int, used map[string]bool) string {
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
