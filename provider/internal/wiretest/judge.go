package wiretest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw/llm"
	"goclaw/llm/llmtest"
)

// Anthropic says why the Messages API would refuse body, or nil: what its
// documentation and public reports of a 400 say about the bytes on the wire.
func Anthropic(body []byte) error {
	var req struct {
		Model    string `json:"model"`
		Max      int    `json:"max_tokens"`
		Messages []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
		System   []block `json:"system"`
		Thinking *struct {
			Type   string `json:"type"`
			Budget int    `json:"budget_tokens"`
		} `json:"thinking"`
		Tools []struct {
			Name   string `json:"name"`
			Schema schema `json:"input_schema"`
		} `json:"tools"`
	}
	if len(body) > 32<<20 {
		return fmt.Errorf("request_too_large: Request exceeds the maximum size")
	}
	if err := decode(body, &req); err != nil {
		return err
	}
	switch {
	case req.Model == "":
		return fmt.Errorf("model: Field required")
	case req.Max < 1:
		return fmt.Errorf("max_tokens: Input should be greater than or equal to 1")
	case len(req.Messages) == 0:
		return fmt.Errorf("messages: at least one message is required")
	case bytes.Count(body, []byte(`"cache_control":{"type":`)) > 4:
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided")
	}
	if t := req.Thinking; t != nil && t.Type == "enabled" && (t.Budget < 1024 || t.Budget >= req.Max) {
		return fmt.Errorf("thinking.enabled.budget_tokens: %d with max_tokens %d", t.Budget, req.Max)
	}
	for _, b := range req.System {
		if err := llmtest.CheckText(b.Text); err != nil {
			return fmt.Errorf("system: %w", err)
		}
	}
	names := map[string]bool{}
	for i, t := range req.Tools {
		if err := llmtest.CheckName(t.Name); err != nil {
			return fmt.Errorf("tools.%d: %w", i, err)
		}
		if names[t.Name] {
			return fmt.Errorf("tools: Tool names must be unique")
		}
		names[t.Name] = true
		if t.Schema.Type != "object" {
			return fmt.Errorf("tools.%d.input_schema.type: Field required", i)
		}
		if t.Schema.OneOf != nil || t.Schema.AllOf != nil || t.Schema.AnyOf != nil {
			return fmt.Errorf("tools.%d.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
	}
	var c claude
	for i, m := range req.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return fmt.Errorf("messages.%d.role: %q", i, m.Role)
		}
		if len(m.Content) == 0 {
			return fmt.Errorf("messages.%d: all messages must have non-empty content", i)
		}
		if err := c.message(m.Role, m.Content); err != nil {
			return fmt.Errorf("messages.%d.%w", i, err)
		}
	}
	switch {
	case req.Messages[0].Role != "user":
		return fmt.Errorf("messages: first message must use the \"user\" role")
	case c.last != "user":
		return fmt.Errorf("this model does not support assistant message prefill: the conversation must end with a user message")
	case c.images > 100:
		return fmt.Errorf("messages: too many images: %d", c.images)
	case c.images > 20 && c.widest > 2000:
		return fmt.Errorf("image.source.base64.data: at least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels")
	}
	return nil
}

// schema is the part of a tool's schema that APIs look at.
type schema struct {
	Type       string          `json:"type"`
	Properties json.RawMessage `json:"properties"`
	OneOf      json.RawMessage `json:"oneOf"`
	AllOf      json.RawMessage `json:"allOf"`
	AnyOf      json.RawMessage `json:"anyOf"`
}

// block is a content block of the Messages API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  *string         `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	UseID     string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   []block         `json:"content"`
	Source    *source         `json:"source"`
	Cache     *struct {
		Type string `json:"type"`
	} `json:"cache_control"`
}

type source struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  string `json:"data"`
}

// claude reads a conversation as the Messages API does.
type claude struct {
	last   string   // the role before
	open   []string // calls that wait for their results
	used   []string // ids of calls
	images int
	widest int
}

func (c *claude) message(role string, content []block) error {
	if role == c.last {
		return fmt.Errorf("role: roles must alternate")
	}
	c.last = role
	wait := c.open
	c.open = nil
	for j, b := range content {
		var err error
		switch b.Type {
		case "tool_result":
			err = c.result(role, j, b, content, &wait)
		case "tool_use":
			err = c.use(role, b)
		case "thinking", "redacted_thinking":
			err = thinking(role, j, b, content)
		case "text":
			err = llmtest.CheckText(b.Text)
		case "image":
			err = c.image(role, b)
		default:
			err = fmt.Errorf("type %q", b.Type)
		}
		if err != nil {
			return fmt.Errorf("content.%d.%s: %w", j, b.Type, err)
		}
	}
	if len(wait) > 0 {
		return fmt.Errorf("content: `tool_use` ids were found without `tool_result` blocks immediately after: %q", wait)
	}
	if end := content[len(content)-1]; strings.Contains(end.Type, "thinking") {
		return fmt.Errorf("content: the final block in an assistant message cannot be `thinking`")
	}
	return nil
}

func (c *claude) result(role string, j int, b block, content []block, wait *[]string) error {
	at := slices.Index(*wait, b.UseID)
	switch {
	case role != "user":
		return fmt.Errorf("not in an %s message", role)
	case j > 0 && content[j-1].Type != "tool_result":
		return fmt.Errorf("results must come before other content")
	case at < 0:
		return fmt.Errorf("unexpected `tool_use_id` %q", b.UseID)
	case b.IsError && len(b.Content) == 0:
		return fmt.Errorf("content cannot be empty if `is_error` is true")
	}
	*wait = slices.Delete(*wait, at, at+1)
	for _, in := range b.Content {
		switch {
		case in.Type == "text":
			if err := llmtest.CheckText(in.Text); err != nil {
				return err
			}
		case b.IsError:
			return fmt.Errorf("all content must be type \"text\" if `is_error` is true")
		case in.Type == "image":
			if err := c.image(role, in); err != nil {
				return err
			}
		default:
			return fmt.Errorf("content of type %q", in.Type)
		}
	}
	return nil
}

func (c *claude) use(role string, b block) error {
	switch {
	case role != "assistant":
		return fmt.Errorf("not in a %s message", role)
	case slices.Contains(c.used, b.ID):
		return fmt.Errorf("`tool_use` ids must be unique")
	}
	c.used, c.open = append(c.used, b.ID), append(c.open, b.ID)
	return cmp.Or(llmtest.CheckID(b.ID), llmtest.CheckName(b.Name), llmtest.CheckObject(b.Input))
}

func thinking(role string, j int, b block, content []block) error {
	switch {
	case role != "assistant":
		return fmt.Errorf("not in a %s message", role)
	case b.Cache != nil:
		return fmt.Errorf("cache_control: Extra inputs are not permitted")
	case j > 0 && !strings.Contains(content[j-1].Type, "thinking"):
		return fmt.Errorf("expected before any other block")
	case b.Type == "thinking" && (b.Thinking == nil || b.Signature == ""):
		return fmt.Errorf("signature: Field required")
	case b.Type == "redacted_thinking" && b.Data == "":
		return fmt.Errorf("data: Field required")
	}
	return nil
}

func (c *claude) image(role string, b block) error {
	if role != "user" || b.Source == nil || b.Source.Type != "base64" {
		return fmt.Errorf("source %+v in a %s message", b.Source, role)
	}
	c.images++
	c.widest = max(c.widest, side(b.Source.Media, b.Source.Data))
	return llmtest.CheckImage(b.Source.Media, b.Source.Data)
}

// side is the longer side of an image.
func side(mime, data string) int {
	w, h := llm.Image{MIME: mime, Data: data}.Size()
	return max(w, h)
}

// OpenAI says why chat completions would refuse body, or nil.
func OpenAI(body []byte) error {
	var req struct {
		Model    string        `json:"model"`
		Messages []chatMessage `json:"messages"`
		Tools    []struct {
			Type     string `json:"type"`
			Function struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				Schema      schema `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
	}
	if len(body) > 50<<20 {
		return fmt.Errorf("the request is larger than 50 MB")
	}
	if err := decode(body, &req); err != nil {
		return err
	}
	switch {
	case req.Model == "":
		return fmt.Errorf("you must provide a model parameter")
	case len(req.Messages) == 0:
		return fmt.Errorf("[] is too short - 'messages'")
	case len(req.Tools) > 128:
		return fmt.Errorf("invalid 'tools': array too long")
	}
	names := map[string]bool{}
	for i, t := range req.Tools {
		if err := openAITool(names, t.Type, t.Function.Name, t.Function.Description, t.Function.Schema); err != nil {
			return fmt.Errorf("invalid 'tools[%d]': %w", i, err)
		}
	}
	images := 0
	var wait, used []string
	for i, m := range req.Messages {
		err := m.check()
		if images += bytes.Count(m.Content, []byte(`"image_url":{"url":"data:`)); images > 500 {
			return fmt.Errorf("messages[%d]: too many images", i)
		}
		if len(m.Calls) > 128 {
			return fmt.Errorf("invalid 'messages[%d].tool_calls': array too long", i)
		}
		if m.Role == "tool" {
			at := slices.Index(wait, m.CallID)
			if at < 0 {
				return fmt.Errorf("messages[%d]: messages with role 'tool' must be a response to a preceding message with 'tool_calls': %q", i, m.CallID)
			}
			wait = slices.Delete(wait, at, at+1)
		} else if len(wait) > 0 {
			return fmt.Errorf("messages[%d]: tool_call_ids did not have response messages: %q", i, wait)
		}
		for _, c := range m.Calls {
			if slices.Contains(used, c.ID) {
				return fmt.Errorf("messages[%d]: the call id %q is used twice", i, c.ID)
			}
			used, wait = append(used, c.ID), append(wait, c.ID)
		}
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	if len(wait) > 0 {
		return fmt.Errorf("tool_call_ids did not have response messages: %q", wait)
	}
	return nil
}

// openAITool checks a tool as both of OpenAI's APIs do. Names are those before it.
func openAITool(names map[string]bool, typ, name, description string, s schema) error {
	switch err := llmtest.CheckName(name); {
	case err != nil:
		return err
	case typ != "function" || s.Type != "object":
		return fmt.Errorf("type %q with a schema of type %q", typ, s.Type)
	case s.Properties == nil:
		return fmt.Errorf("invalid schema for function '%s': object schema missing properties", name)
	case utf8.RuneCountInString(description) > 1024:
		return fmt.Errorf("description: string too long")
	case names[name]:
		return fmt.Errorf("names must be unique")
	}
	names[name] = true
	return nil
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
			Args string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// check looks at a message by itself. A text may be blank for OpenAI, and not
// for servers that speak its language.
func (m chatMessage) check() error {
	if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) {
		return fmt.Errorf("role %q", m.Role)
	}
	var text string
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	switch {
	case len(m.Content) == 0:
		if m.Role != "assistant" || len(m.Calls) == 0 {
			return fmt.Errorf("content: expected a string, got null")
		}
	case json.Unmarshal(m.Content, &text) == nil:
		if err := llmtest.CheckText(text); err != nil {
			return err
		}
	case json.Unmarshal(m.Content, &parts) != nil || len(parts) == 0:
		return fmt.Errorf("content: %s", m.Content)
	}
	for _, p := range parts {
		if p.Image == nil {
			if err := llmtest.CheckText(p.Text); err != nil {
				return err
			}
			continue
		}
		mime, data, ok := strings.Cut(strings.TrimPrefix(p.Image.URL, "data:"), ";base64,")
		if !ok || m.Role != "user" {
			return fmt.Errorf("image_url %.40q in a message of role %s", p.Image.URL, m.Role)
		}
		if err := llmtest.CheckImage(mime, data); err != nil {
			return err
		}
	}
	for _, c := range m.Calls {
		if c.Type != "function" || m.Role != "assistant" {
			return fmt.Errorf("a call of type %q in a message of role %s", c.Type, m.Role)
		}
		if err := cmp.Or(llmtest.CheckID(c.ID), llmtest.CheckName(c.Function.Name), llmtest.CheckObject(json.RawMessage(c.Function.Args))); err != nil {
			return err
		}
	}
	return nil
}

// decode reads a body as a strict parser does.
func decode(body []byte, to any) error {
	if err := llmtest.CheckJSON(body); err != nil {
		return err
	}
	return json.Unmarshal(body, to)
}
