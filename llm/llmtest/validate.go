package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // read by checkImage
	_ "image/jpeg" // read by checkImage
	_ "image/png"  // read by checkImage
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"goclaw/llm"
)

// Validate reports why the strictest of the real APIs would refuse a request; nil
// if it would not. It knows what Anthropic's Messages API and OpenAI's chat
// completions document, or are reported to answer with status 400:
//
//   - the first message and the last are the user's, and roles alternate;
//   - no message is empty and no text blank, in a message or in a result;
//   - each call is answered exactly once, in the very next message, before
//     any other block; no result is without its call;
//   - a result is not empty, and a failed one has only text;
//   - ids are unique, ids and names have allowed letters and an allowed length,
//     arguments are JSON objects that every parser reads;
//   - thinking is signed, comes first in an answer and never ends it;
//   - an image has one of four types, is of that type, and is not too large;
//   - tools have names, each once, and schemas of type object.
func Validate(req llm.Request) error {
	if len(req.Messages) == 0 {
		return fmt.Errorf("messages: at least one message is required")
	}
	seen := map[string]bool{}
	var open []llm.ToolCall
	for i, m := range req.Messages {
		want := llm.User
		if i%2 == 1 {
			want = llm.Assistant
		}
		if m.Role != want {
			return fmt.Errorf("messages.%d: role is %q, want %q", i, m.Role, want)
		}
		if len(m.Blocks) == 0 {
			return fmt.Errorf("messages.%d: content must not be empty", i)
		}
		var err error
		if m.Role == llm.User {
			err = validateUser(m, open)
			open = nil
		} else {
			open, err = validateAssistant(m, seen)
		}
		if err != nil {
			return fmt.Errorf("messages.%d: %w", i, err)
		}
	}
	if last := req.Messages[len(req.Messages)-1]; last.Role != llm.User {
		return fmt.Errorf("messages: the last message must be the user's")
	}
	return validateTools(req.Tools)
}

func validateTools(tools []llm.ToolSpec) error {
	names := map[string]bool{}
	for _, t := range tools {
		if names[t.Name] {
			return fmt.Errorf("tools: name %q is used twice", t.Name)
		}
		names[t.Name] = true
		if err := CheckName(t.Name); err != nil {
			return fmt.Errorf("tools: %w", err)
		}
		var schema struct{ Type string }
		if json.Unmarshal(t.Schema, &schema) != nil || schema.Type != "object" {
			return fmt.Errorf("tools.%s: input_schema.type: Input should be 'object'", t.Name)
		}
	}
	return nil
}

func validateUser(m llm.Message, open []llm.ToolCall) error {
	wait := map[string]bool{}
	for _, c := range open {
		wait[c.ID] = true
	}
	other := false
	for j, b := range m.Blocks {
		var err error
		switch b := b.(type) {
		case llm.Text:
			err = CheckText(b.Text)
			other = true
		case llm.Image:
			err = CheckImage(b.MIME, b.Data)
			other = true
		case llm.ToolResult:
			switch {
			case other:
				err = fmt.Errorf("tool_result after other content")
			case !wait[b.CallID]:
				err = fmt.Errorf("unexpected tool_use_id %q in tool_result: no such tool_use in the message before", b.CallID)
			default:
				delete(wait, b.CallID)
				err = validateResult(b)
			}
		default:
			err = fmt.Errorf("%T not allowed in a user message", b)
		}
		if err != nil {
			return fmt.Errorf("content.%d: %w", j, err)
		}
	}
	for id := range wait {
		return fmt.Errorf("tool_use %q has no tool_result in the next message", id)
	}
	return nil
}

func validateResult(r llm.ToolResult) error {
	if len(r.Blocks) == 0 {
		// Anthropic refuses this of failed results only, others of all.
		return fmt.Errorf("tool_result: content cannot be empty")
	}
	for k, in := range r.Blocks {
		var err error
		switch in := in.(type) {
		case llm.Text:
			err = CheckText(in.Text)
		case llm.Image:
			if err = CheckImage(in.MIME, in.Data); r.IsError {
				err = fmt.Errorf("all content must be type \"text\" if is_error is true")
			}
		default:
			err = fmt.Errorf("%T not allowed in a tool_result", in)
		}
		if err != nil {
			return fmt.Errorf("content.%d: %w", k, err)
		}
	}
	return nil
}

func validateAssistant(m llm.Message, seen map[string]bool) (calls []llm.ToolCall, err error) {
	for j, b := range m.Blocks {
		var err error
		switch b := b.(type) {
		case llm.Text:
			err = CheckText(b.Text)
		case llm.Thinking:
			switch {
			case b.Signature == "":
				err = fmt.Errorf("thinking without signature")
			case j > 0 && !isThinking(m.Blocks[j-1]):
				// Interleaved thinking follows tool results only.
				err = fmt.Errorf("thinking must come first")
			}
		case llm.ToolCall:
			err = validateCall(b, seen)
			calls = append(calls, b)
		default:
			err = fmt.Errorf("%T not allowed in an assistant message", b)
		}
		if err != nil {
			return nil, fmt.Errorf("content.%d: %w", j, err)
		}
	}
	if isThinking(m.Blocks[len(m.Blocks)-1]) {
		return nil, fmt.Errorf("content: an answer must not end with thinking")
	}
	return calls, nil
}

func isThinking(b llm.Block) bool {
	_, ok := b.(llm.Thinking)
	return ok
}

func validateCall(c llm.ToolCall, seen map[string]bool) error {
	if err := CheckID(c.ID); err != nil {
		return err
	}
	if seen[c.ID] {
		return fmt.Errorf("tool_use ids must be unique: %q", c.ID)
	}
	seen[c.ID] = true
	if err := CheckName(c.Name); err != nil {
		return err
	}
	return CheckObject(c.Args)
}

// CheckText reports why a text block would be refused.
func CheckText(text string) error {
	// White space as Python's str.isspace has it.
	space := func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\x1c\x1d\x1e\x1f", r)
	}
	if strings.TrimFunc(text, space) == "" {
		return fmt.Errorf("text content blocks must contain non-whitespace text")
	}
	return nil
}

var (
	idPattern   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`) // Anthropic's letters, OpenAI's length
	namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// CheckID reports why the id of a call would be refused.
func CheckID(id string) error {
	if !idPattern.MatchString(id) {
		return fmt.Errorf("tool_use.id: %q should match pattern '%s'", id, idPattern)
	}
	return nil
}

// CheckName reports why the name of a tool would be refused.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("tool_use.name: %q should match pattern '%s'", name, namePattern)
	}
	return nil
}

// CheckObject reports why the arguments of a call would be refused.
func CheckObject(raw json.RawMessage) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return fmt.Errorf("tool_use.input: Input should be a valid dictionary")
	}
	return CheckJSON(raw)
}

// CheckJSON reports why a parser would refuse raw: it is not JSON or not UTF-8,
// holds half a surrogate pair, or is nested too deeply.
func CheckJSON(raw []byte) error {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return fmt.Errorf("the request body is not valid JSON")
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++ // to what is escaped
		if raw[i] != 'u' {
			continue
		}
		r, _ := strconv.ParseUint(string(raw[i+1:i+5]), 16, 16) // valid JSON has four digits there
		i += 4
		if !utf16.IsSurrogate(rune(r)) {
			continue
		}
		var low uint64
		if rest := raw[i+1:]; len(rest) >= 6 && string(rest[:2]) == `\u` {
			low, _ = strconv.ParseUint(string(rest[2:6]), 16, 16)
		}
		if utf16.DecodeRune(rune(r), rune(low)) == unicode.ReplacementChar {
			return fmt.Errorf("the request body is not valid JSON: no low surrogate in string: char %d", i)
		}
		i += 6
	}
	depth, deepest := 0, 0
	for dec := json.NewDecoder(bytes.NewReader(raw)); ; {
		t, err := dec.Token()
		if err != nil {
			break
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	if deepest > 190 {
		return fmt.Errorf("the request body is not valid JSON: recursion limit exceeded")
	}
	return nil
}

// CheckImage reports why an image would be refused.
func CheckImage(mime, data string) error {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
	default:
		return fmt.Errorf("image.source.media_type: %q is none of the four types", mime)
	}
	if len(data) > 5<<20 {
		return fmt.Errorf("image exceeds 5 MB maximum: %d bytes", len(data))
	}
	b, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil || strings.ContainsAny(data, "\r\n") {
		return fmt.Errorf("image.source.base64: invalid base64 data")
	}
	if got := http.DetectContentType(b); got != mime {
		return fmt.Errorf("image does not match the provided media type %s: it is %s", mime, got)
	}
	if mime == "image/webp" {
		return nil
	}
	conf, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err != nil {
		return fmt.Errorf("could not process image: %w", err)
	}
	if conf.Width > 8000 || conf.Height > 8000 {
		return fmt.Errorf("at least one of the image dimensions exceed max allowed size: 8000 pixels")
	}
	return nil
}

// Images are images of one pixel, one for each type that the APIs read.
var Images = []llm.Image{
	{MIME: "image/png", Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="},
	{MIME: "image/gif", Data: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"},
	{MIME: "image/webp", Data: "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"},
	{MIME: "image/jpeg", Data: "/9j/2wCEAP////////////////////////////////////////////////////////////////////////////////////8B///////////////////////////////////////////////////////////////////////////////////////AAAsIAAEAAQEBEQD/xADSAAABBQEBAQEBAQAAAAAAAAAAAQIDBAUGBwgJCgsQAAIBAwMCBAMFBQQEAAABfQECAwAEEQUSITFBBhNRYQcicRQygZGhCCNCscEVUtHwJDNicoIJChYXGBkaJSYnKCkqNDU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6g4SFhoeIiYqSk5SVlpeYmZqio6Slpqeoqaqys7S1tre4ubrCw8TFxsfIycrS09TV1tfY2drh4uPk5ebn6Onq8fLz9PX29/j5+v/aAAgBAQAAPwCOv//Z"},
}
