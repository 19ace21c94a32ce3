package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// build translates req. Thinking and llm.Other have no place in this API.
func (p *Provider) build(req llm.Request) sdk.ChatCompletionNewParams {
	b := builder{marks: p.flavour == openRouter && strings.Contains(req.Model, "claude")}
	params := sdk.ChatCompletionNewParams{
		Model:           req.Model,
		Messages:        b.messages(req),
		StreamOptions:   sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
		ReasoningEffort: effort(p.flavour, req),
	}
	for _, t := range req.Tools {
		params.Tools = append(params.Tools, function(t))
	}
	limit := req.MaxTokens
	if limit == 0 {
		limit = p.maxTokens
	}
	if limit > 0 {
		if p.flavour == own || parse(base(req.Model)).reasons() {
			params.MaxCompletionTokens = param.NewOpt(int64(limit))
		} else {
			params.MaxTokens = param.NewOpt(int64(limit))
		}
	}
	if p.flavour == own {
		params.PromptCacheKey = param.NewOpt(cacheKey(req))
	}
	return params
}

// function passes the schema's own bytes on, so that the order of its
// properties is the author's.
func function(t llm.ToolSpec) sdk.ChatCompletionToolUnionParam {
	def, err := json.Marshal(struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}{t.Name, t.Description, t.Schema})
	if err != nil {
		// The schema is not JSON; the API will say so of the name alone.
		return sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: t.Name})
	}
	return sdk.ChatCompletionFunctionTool(param.Override[shared.FunctionDefinitionParam](json.RawMessage(def)))
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

// effort translates the level of thinking. Nothing is sent unless it was
// asked for, except where a model would otherwise refuse its tools: from 5.4
// on chat completions takes them only without reasoning.
func effort(f flavour, req llm.Request) shared.ReasoningEffort {
	g := parse(base(req.Model))
	if g.chat {
		return ""
	}
	if f == own && g.from(5, 4) && len(req.Tools) > 0 {
		return shared.ReasoningEffortNone
	}
	first := g.from(5, 0) && !g.from(5, 1)
	switch req.Thinking {
	case "off":
		switch {
		case first:
			return shared.ReasoningEffortMinimal
		case g.o:
			return shared.ReasoningEffortLow
		}
		return shared.ReasoningEffortNone
	case "minimal":
		if first {
			return shared.ReasoningEffortMinimal
		}
		return shared.ReasoningEffortLow
	case "low", "medium", "high":
		return shared.ReasoningEffort(req.Thinking)
	case "xhigh":
		if f == openRouter || g.from(5, 2) {
			return shared.ReasoningEffortXhigh
		}
		return shared.ReasoningEffortHigh
	}
	return ""
}

// builder makes the messages. Content is a plain string wherever it can be:
// the chat templates of many local models know nothing else. With marks it is
// always a list of parts, so that a message looks the same whether it carries
// a mark or not.
type builder struct{ marks bool }

func (b builder) messages(req llm.Request) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	if strings.TrimSpace(req.System) != "" {
		if b.marks {
			out = append(out, sdk.SystemMessage([]sdk.ChatCompletionContentPartTextParam{*markedText(req.System)}))
		} else {
			out = append(out, sdk.SystemMessage(req.System))
		}
	}
	last := len(req.Messages) - 1
	for i, m := range req.Messages {
		tail := ""
		if i == last && m.Role == llm.User {
			tail = req.Tail
		}
		if m.Role == llm.Assistant {
			if a, ok := assistant(m); ok {
				out = append(out, a)
			}
			continue
		}
		out = append(out, b.user(m, tail, b.marks && i >= last-2)...)
	}
	if last >= 0 && req.Messages[last].Role == llm.Assistant && strings.TrimSpace(req.Tail) != "" {
		out = append(out, sdk.UserMessage(req.Tail))
	}
	return out
}

func assistant(m llm.Message) (sdk.ChatCompletionMessageParamUnion, bool) {
	var a sdk.ChatCompletionAssistantMessageParam
	if text := m.Text(); strings.TrimSpace(text) != "" {
		a.Content.OfString = param.NewOpt(text)
	}
	for _, c := range m.Calls() {
		args := string(c.Args)
		if args == "" {
			args = "{}"
		}
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: args},
			},
		})
	}
	ok := a.Content.OfString.Valid() || len(a.ToolCalls) > 0
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &a}, ok
}

// user makes one message for each tool result and one for the rest. Pictures
// that tools returned move into the latter, since a tool message holds text
// only. Tail goes to the end of the last message there is: a further user
// message behind results is one that several chat templates refuse.
func (b builder) user(m llm.Message, tail string, marked bool) []sdk.ChatCompletionMessageParamUnion {
	var out []sdk.ChatCompletionMessageParamUnion
	var texts []string
	var pictures []sdk.ChatCompletionContentPartUnionParam
	say := func(text string) { texts = append(texts, text) }
	var results []string
	var ids []string
	for _, blk := range m.Blocks {
		switch blk := blk.(type) {
		case llm.Text:
			if strings.TrimSpace(blk.Text) != "" {
				say(blk.Text)
			}
		case llm.Image:
			if wire.ImageType(blk.MIME) {
				pictures = append(pictures, picture(blk))
			} else {
				say(wire.NoImage(blk))
			}
		case llm.ToolResult:
			text, images := result(blk)
			ids, results = append(ids, blk.CallID), append(results, text)
			if len(images) > 0 {
				pictures = append(pictures, sdk.TextContentPart(fmt.Sprintf("[from %s, call %s]", blk.Name, blk.CallID)))
			}
			for _, img := range images {
				pictures = append(pictures, picture(img))
			}
		}
	}
	hasRest := len(texts) > 0 || len(pictures) > 0
	if strings.TrimSpace(tail) == "" {
		tail = ""
	} else if !hasRest && len(results) > 0 {
		results[len(results)-1] = join(results[len(results)-1], tail)
		tail = ""
	}
	for i, text := range results {
		out = append(out, sdk.ToolMessage(text, ids[i]))
	}
	if !hasRest && tail == "" {
		return out
	}
	text := strings.Join(texts, "\n")
	if len(pictures) == 0 && !b.marks {
		return append(out, sdk.UserMessage(join(text, tail)))
	}
	parts := pictures
	if text != "" {
		t := &sdk.ChatCompletionContentPartTextParam{Text: text}
		if marked {
			t = markedText(text)
		}
		parts = append(parts, sdk.ChatCompletionContentPartUnionParam{OfText: t})
	}
	if tail != "" {
		parts = append(parts, sdk.TextContentPart(tail))
	}
	return append(out, sdk.UserMessage(parts))
}

func join(text, tail string) string {
	if text == "" || tail == "" {
		return text + tail
	}
	return text + "\n\n" + tail
}

func markedText(text string) *sdk.ChatCompletionContentPartTextParam {
	t := &sdk.ChatCompletionContentPartTextParam{Text: text}
	t.SetExtraFields(map[string]any{"cache_control": map[string]string{"type": "ephemeral"}})
	return t
}

func picture(img llm.Image) sdk.ChatCompletionContentPartUnionParam {
	return sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{
		URL: "data:" + img.MIME + ";base64," + img.Data,
	})
}

// result returns a tool result's text and its pictures. The API has no field
// for failure, so the text says it, unless it does already.
func result(r llm.ToolResult) (string, []llm.Image) {
	var images []llm.Image
	text := r.Text()
	for _, b := range r.Blocks {
		img, ok := b.(llm.Image)
		switch {
		case !ok:
		case wire.ImageType(img.MIME):
			images = append(images, img)
		default:
			text = join(text, wire.NoImage(img))
		}
	}
	if len(images) > 0 {
		text = join(text, fmt.Sprintf("[%d image(s): see the next message]", len(images)))
	}
	if r.IsError && !(len(text) >= 5 && strings.EqualFold(text[:5], "error")) {
		text = "Error: " + text
	}
	return text, images
}
