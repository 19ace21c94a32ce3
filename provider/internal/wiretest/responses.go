package wiretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"goclaw/llm/llmtest"
)

// Responses says why OpenAI's Responses API would refuse body, or nil.
func Responses(body []byte) error {
	var req struct {
		Model   string            `json:"model"`
		Input   []json.RawMessage `json:"input"`
		Max     *int              `json:"max_output_tokens"`
		Store   *bool             `json:"store"`
		Include []string          `json:"include"`
		Tools   []struct {
			Type        string `json:"type"`
			Name        string `json:"name"`
			Description string `json:"description"`
			Strict      *bool  `json:"strict"`
			Schema      schema `json:"parameters"`
		} `json:"tools"`
		Messages json.RawMessage `json:"messages"`
	}
	if len(body) > 50<<20 {
		return fmt.Errorf("the request is larger than 50 MB")
	}
	if err := decode(body, &req); err != nil {
		return err
	}
	switch {
	case req.Model == "":
		return fmt.Errorf("missing required parameter: 'model'")
	case req.Messages != nil:
		return fmt.Errorf("unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'")
	case len(req.Input) == 0:
		return fmt.Errorf("one of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided")
	case req.Max != nil && *req.Max < 16:
		return fmt.Errorf("invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d", *req.Max)
	case len(req.Tools) > 128:
		return fmt.Errorf("invalid 'tools': array too long")
	case req.Store == nil || *req.Store:
		return fmt.Errorf("the conversation would be stored")
	}
	names := map[string]bool{}
	for i, t := range req.Tools {
		err := openAITool(names, t.Type, t.Name, t.Description, t.Schema)
		if err == nil && (t.Strict == nil || *t.Strict) {
			err = fmt.Errorf("invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false", t.Name)
		}
		if err != nil {
			return fmt.Errorf("invalid 'tools[%d]': %w", i, err)
		}
	}
	return (&input{}).read(req.Input)
}

// input reads a conversation as the Responses API does.
type input struct {
	ids, calls, answered []string
	images               int
	reasoning            string // the id of reasoning that waits for what follows it
}

type inputItem struct {
	Type      string          `json:"type"`
	ID        *string         `json:"id"`
	Role      string          `json:"role"`
	Status    string          `json:"status"`
	Phase     *string         `json:"phase"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   *[]inputPart    `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

type inputPart struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	URL         string          `json:"image_url"`
	Annotations json.RawMessage `json:"annotations"`
}

func (in *input) read(items []json.RawMessage) error {
	reasoned := false // the answer has reasoning
	for i, raw := range items {
		var it inputItem
		if err := json.Unmarshal(raw, &it); err != nil {
			return fmt.Errorf("invalid 'input[%d]': %w", i, err)
		}
		own := it.Type == "reasoning" || it.Type == "function_call" || it.Role == "assistant"
		if in.reasoning != "" && !own {
			return fmt.Errorf("item '%s' of type 'reasoning' was provided without its required following item", in.reasoning)
		}
		reasoned = own && (reasoned || it.Type == "reasoning")
		if it.Type != "reasoning" {
			in.reasoning = ""
		}
		if err := cmp.Or(in.id(it, reasoned), in.item(it)); err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	switch {
	case in.reasoning != "":
		return fmt.Errorf("item '%s' of type 'reasoning' was provided without its required following item", in.reasoning)
	case len(in.answered) < len(in.calls):
		return fmt.Errorf("no tool output found for function calls among %q", in.calls)
	case in.images > 500:
		return fmt.Errorf("too many images: %d", in.images)
	}
	return nil
}

// id checks the id of an item: of its kind, once, and beside its reasoning.
func (in *input) id(it inputItem, reasoned bool) error {
	if it.ID == nil {
		return nil
	}
	kind := map[string]string{"reasoning": "rs", "message": "msg", "function_call": "fc"}[it.Type]
	switch {
	case kind == "" || !strings.HasPrefix(*it.ID, kind+"_"):
		return fmt.Errorf("invalid 'id': '%s'. Expected an ID that begins with '%s'", *it.ID, kind)
	case len(*it.ID) > 64:
		return fmt.Errorf("invalid 'id': string too long. Expected a string with maximum length 64")
	case slices.Contains(in.ids, *it.ID):
		return fmt.Errorf("duplicate item found with id %s", *it.ID)
	case !reasoned:
		return fmt.Errorf("item '%s' of type '%s' was provided without its required 'reasoning' item", *it.ID, it.Type)
	}
	in.ids = append(in.ids, *it.ID)
	return nil
}

func (in *input) item(it inputItem) error {
	switch it.Type {
	case "reasoning":
		in.reasoning = "rs_"
		if it.ID != nil {
			in.reasoning = *it.ID
		}
		switch {
		case it.Summary == nil:
			return fmt.Errorf("missing required parameter: 'summary'")
		case it.Encrypted == "":
			return fmt.Errorf("item with id '%s' not found. Items are not persisted when `store` is set to false", in.reasoning)
		}
		for _, p := range *it.Summary {
			if p.Type != "summary_text" {
				return fmt.Errorf("summary of type %q", p.Type)
			}
		}
	case "function_call":
		if slices.Contains(in.calls, it.CallID) {
			return fmt.Errorf("the call id %q is used twice", it.CallID)
		}
		in.calls = append(in.calls, it.CallID)
		if it.Arguments == nil {
			return fmt.Errorf("missing required parameter: 'arguments'")
		}
		return cmp.Or(llmtest.CheckID(it.CallID), llmtest.CheckName(it.Name), llmtest.CheckObject(json.RawMessage(*it.Arguments)))
	case "function_call_output":
		if !slices.Contains(in.calls, it.CallID) || slices.Contains(in.answered, it.CallID) {
			return fmt.Errorf("no tool call found for function call output with call_id %s", it.CallID)
		}
		in.answered = append(in.answered, it.CallID)
		return in.content(it.Output, "input_")
	case "message":
		return in.message(it)
	default:
		return fmt.Errorf("invalid value: '%s'", it.Type)
	}
	return nil
}

func (in *input) message(it inputItem) error {
	switch {
	case it.Role != "user" && it.Role != "assistant":
		return fmt.Errorf("role %q", it.Role)
	case it.Phase != nil && (it.Role != "assistant" || *it.Phase != "commentary" && *it.Phase != "final_answer"):
		return fmt.Errorf("phase %q in a message of role %s", *it.Phase, it.Role)
	case it.ID != nil && it.Status == "":
		return fmt.Errorf("missing required parameter: 'status'")
	case it.Role == "user":
		if len(in.answered) < len(in.calls) {
			return fmt.Errorf("no tool output found for function calls among %q", in.calls)
		}
		return in.content(it.Content, "input_")
	}
	return in.content(it.Content, "output_")
}

// content checks a string or a list of parts of a kind.
func (in *input) content(raw json.RawMessage, kind string) error {
	var text string
	var parts []inputPart
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return llmtest.CheckText(text)
	case json.Unmarshal(raw, &parts) != nil || len(parts) == 0:
		return fmt.Errorf("content: %s", raw)
	}
	for _, p := range parts {
		var err error
		switch mime, data, ok := strings.Cut(strings.TrimPrefix(p.URL, "data:"), ";base64,"); {
		case p.Type == kind+"text":
			err = llmtest.CheckText(p.Text)
		case p.Type == "input_image" && kind == "input_" && ok:
			in.images++
			err = llmtest.CheckImage(mime, data)
		default:
			err = fmt.Errorf("invalid value: '%s'", p.Type)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
