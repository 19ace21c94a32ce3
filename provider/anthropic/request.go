package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// request is everything but the messages.
type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	System    []system  `json:"system,omitempty"`
	Tools     []tool    `json:"tools,omitempty"`
	Thinking  *thinking `json:"thinking,omitempty"`
	Output    *output   `json:"output_config,omitempty"`
}

type system struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Cache cache  `json:"cache_control"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cache          `json:"cache_control,omitempty"`
}

type cache struct {
	Type string `json:"type"`
}

var ephemeral = cache{Type: "ephemeral"}

type thinking struct {
	Type    string   `json:"type"` // "enabled", "adaptive", "disabled" or "between_tools"
	Budget  int      `json:"budget_tokens,omitempty"`
	Display string   `json:"display,omitempty"`
	Binding *binding `json:"block_binding,omitempty"`
}

type binding struct {
	Mismatch string `json:"prefix_mismatch_behavior"`
}

type output struct {
	Effort string `json:"effort"`
}

// build translates req into a body and the headers it needs. Each message
// passes llm.Sendable, and what only this API refuses is put right here.
func build(req llm.Request, maxTokens int) (body []byte, header http.Header, err error) {
	settings, header := settings(req, maxTokens)
	sent, size := conversation(req)
	body, err = wire.Body("messages", size, func(out []byte) []byte { return messages(out, sent, req.Tail) }, settings)
	if err != nil {
		return nil, nil, fmt.Errorf("anthropic: request: %w", err)
	}
	return body, header, nil
}

// settings is everything but the messages. The schemas' own bytes are passed
// on, so that the order of their properties is the author's.
func settings(req llm.Request, maxTokens int) (request, http.Header) {
	r := request{Model: req.Model}
	if !llm.Blank(req.System) {
		r.System = []system{{Type: "text", Text: req.System, Cache: ephemeral}}
	}
	tools, _ := llm.SendableTools(req.Tools)
	for i, t := range tools {
		tool := tool{Name: t.Name, Description: t.Description, Schema: t.Schema}
		if i == len(tools)-1 {
			tool.Cache = &ephemeral
		}
		r.Tools = append(r.Tools, tool)
	}
	header := think(&r, req, maxTokens)
	return r, header
}

const mark = `,"cache_control":{"type":"ephemeral"}`

// conversation returns the messages that can be sent and about how long they
// are.
func conversation(req llm.Request) (sent []llm.Message, size int) {
	sent = make([]llm.Message, 0, len(req.Messages))
	for _, m := range req.Messages {
		if m.Blocks = llm.Sendable(m); len(m.Blocks) > 0 {
			sent = append(sent, m)
			size += wire.Length(m.Blocks)
		}
	}
	wire.ClaudeImages.Limit(sent)
	trimEnd(sent)
	return sent, size
}

// trimEnd cuts the white space that the API refuses at the end of an answer
// that is to be continued.
func trimEnd(sent []llm.Message) {
	if len(sent) == 0 || sent[len(sent)-1].Role != llm.Assistant {
		return
	}
	blocks := sent[len(sent)-1].Blocks
	if t, ok := blocks[len(blocks)-1].(llm.Text); ok {
		t.Text = strings.TrimRightFunc(t.Text, unicode.IsSpace)
		blocks[len(blocks)-1] = t
	}
}

// messages writes a conversation and marks where its cached prefix ends:
// after the last user message, and after the one before it, which is where
// the previous call's mark was. Together with those on tools and system these
// are the four marks that the API allows. Tail comes after the last mark.
func messages(out []byte, sent []llm.Message, tail string) []byte {
	marked := map[int]bool{}
	for i := len(sent) - 1; i >= 0 && len(marked) < 2; i-- {
		if sent[i].Role == llm.User {
			marked[i] = true
		}
	}
	if llm.Blank(tail) {
		tail = ""
	} else if n := len(sent); n == 0 || sent[n-1].Role != llm.User {
		sent, tail = append(sent, llm.UserText(tail)), ""
	}
	out = append(out, '[')
	for i, m := range sent {
		if i > 0 {
			out = append(out, ',')
		}
		role := `"user"`
		if m.Role == llm.Assistant {
			role = `"assistant"`
		}
		out = append(append(append(out, `{"role":`...), role...), `,"content":[`...)
		for j, b := range m.Blocks {
			if j > 0 {
				out = append(out, ',')
			}
			end := ""
			if marked[i] && j == len(m.Blocks)-1 {
				end = mark
			}
			out = block(out, b, end)
		}
		if tail != "" && i == len(sent)-1 {
			out = block(append(out, ','), llm.Text{Text: tail}, "")
		}
		out = append(out, "]}"...)
	}
	return append(out, ']')
}

// block writes one block; end goes in before its closing brace.
func block(out []byte, b llm.Block, end string) []byte {
	str := func(key, s string) { out = wire.AppendString(append(out, key...), s) }
	switch b := b.(type) {
	case llm.Text:
		str(`{"type":"text","text":`, b.Text)
	case llm.Image:
		str(`{"type":"image","source":{"type":"base64","media_type":`, b.MIME)
		str(`,"data":`, b.Data)
		out = append(out, '}')
	case llm.Thinking:
		if b.Redacted {
			str(`{"type":"redacted_thinking","data":`, b.Signature)
			break
		}
		str(`{"type":"thinking","thinking":`, b.Text)
		str(`,"signature":`, b.Signature)
	case llm.ToolCall:
		str(`{"type":"tool_use","id":`, llm.CallID(b.ID))
		str(`,"name":`, b.Name)
		out = append(append(out, `,"input":`...), b.Args...)
	case llm.ToolResult:
		str(`{"type":"tool_result","tool_use_id":`, llm.CallID(b.CallID))
		if b.IsError {
			out = append(out, `,"is_error":true`...)
		}
		out = append(out, `,"content":[`...)
		for i, in := range b.Blocks {
			if i > 0 {
				out = append(out, ',')
			}
			out = block(out, in, "")
		}
		out = append(out, ']')
	}
	return append(append(out, end...), '}')
}

// version is what a model's name says of it. The zero value is a model that
// is not Claude, or does not say.
type version struct {
	family       string // "opus", "sonnet", "haiku", "fable", "mythos"
	major, minor int
}

// parse reads names like claude-sonnet-4-5-20250929, claude-3-7-sonnet-latest
// and claude-opus-5.5. Numbers of more than two digits are dates.
func parse(model string) (v version) {
	rest, ok := strings.CutPrefix(model[strings.LastIndexAny(model, "/")+1:], "claude-")
	if !ok {
		return version{}
	}
	var nums []int
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == '-' || r == '.' || r == '@' }) {
		if n, err := strconv.Atoi(part); err == nil {
			if len(part) <= 2 {
				nums = append(nums, n)
			}
			continue
		}
		if v.family == "" {
			v.family = part
		}
	}
	if len(nums) > 0 {
		v.major = nums[0]
	}
	if len(nums) > 1 {
		v.minor = nums[1]
	}
	return v
}

func (v version) from(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// adaptive: the model decides itself how much to think, guided by an effort.
// The models from 4.7 on refuse a budget; those before 4.6 know nothing else.
func (v version) adaptive() bool { return v.from(4, 6) || v.family == "mythos" }

// always: thinking cannot be switched off.
func (v version) always() bool {
	return v.family == "fable" || v.family == "mythos" || v.family == "opus" && v.from(5, 5)
}

// bound: signatures hold only after the very conversation they were made in.
// Tail is gone from its message in the next request, so they often do not.
func (v version) bound() bool {
	return v.from(5, 5) || (v.family == "fable" || v.family == "mythos") && v.from(5, 1)
}

// budgets are for the models that take a number of tokens.
var budgets = map[string]int{"minimal": 1024, "low": 4096, "medium": 10000, "high": 20000, "xhigh": 32000, "max": 32000}

// Without a limit in request or config: what every model still sold allows,
// with room for thinking if there is any, since it counts as output.
const (
	defaultMax      = 8192
	defaultThinkMax = 32000
)

// think sets max_tokens and everything about thinking, and returns the headers
// that this takes.
func think(r *request, req llm.Request, configured int) http.Header {
	limit := cmp.Or(req.MaxTokens, configured)
	v := parse(req.Model)
	level := req.Thinking
	_, on := budgets[level]
	defer func() { r.MaxTokens = cmp.Or(limit, defaultMax) }()
	if v.adaptive() {
		if limit == 0 && (on || v.major >= 5) {
			limit = defaultThinkMax
		}
		return adapt(r, v, level, hasThinking(req))
	}
	if !on || openLoop(req) {
		return nil
	}
	budget := budgets[level]
	switch {
	case limit == 0:
		limit = min(budget+defaultMax, defaultThinkMax)
		budget = min(budget, limit/2)
	case limit <= budget:
		budget = limit / 2
	}
	if budget < 1024 {
		return nil // the API's least; the caller left no room for thinking
	}
	r.Thinking = &thinking{Type: "enabled", Budget: budget}
	return nil
}

// openLoop reports whether results follow an answer that did not begin with
// thinking, as when the model was changed in the middle of a turn. A model
// with a budget then refuses to think.
func openLoop(req llm.Request) bool {
	n := len(req.Messages)
	if n < 2 || len(req.Messages[n-1].Results()) == 0 || len(req.Messages[n-2].Blocks) == 0 {
		return false
	}
	t, ok := req.Messages[n-2].Blocks[0].(llm.Thinking)
	return !ok || t.Signature == ""
}

// adapt is think for adaptive models. Newer ones leave the thinking's text out
// unless asked for it, and put what they say between calls there.
func adapt(r *request, v version, level string, sends bool) http.Header {
	effort := func(e string) { r.Output = &output{Effort: e} }
	switch level {
	case "minimal", "low":
		effort("low")
	case "medium", "high":
		effort(level)
	case "xhigh":
		effort("xhigh")
		if !v.from(4, 7) && v.major > 0 {
			effort("max")
		}
	case "max":
		effort("max")
	case "off":
		switch {
		case v.always():
			effort("low")
		case v.family == "sonnet" && v.from(5, 5):
			r.Thinking = &thinking{Type: "between_tools"}
			return nil
		case v.major >= 5:
			r.Thinking = &thinking{Type: "disabled"}
			return nil
		default:
			return nil // off unless asked for
		}
	default:
		if v.major < 5 {
			return nil
		}
	}
	r.Thinking = &thinking{Type: "adaptive"}
	if v.from(4, 7) {
		r.Thinking.Display = "summarized"
	}
	if !v.bound() || !sends {
		return nil
	}
	r.Thinking.Binding = &binding{Mismatch: "drop_block"}
	return http.Header{"Anthropic-Beta": {"thinking-binding-controls-2026-08-01"}}
}

func hasThinking(req llm.Request) bool {
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			if t, ok := b.(llm.Thinking); ok && t.Signature != "" {
				return true
			}
		}
	}
	return false
}
