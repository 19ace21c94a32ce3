package openai

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/provider/internal/wiretest"
)

// message is one on the wire.
type message struct {
	Role    string
	Content json.RawMessage
	CallID  string `json:"tool_call_id"`
	Calls   []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

// read returns the texts and the pictures of a message.
func (m message) read(t *rapid.T) (texts, pictures []string) {
	var s string
	if len(m.Content) == 0 {
		return nil, nil
	}
	if json.Unmarshal(m.Content, &s) == nil {
		return []string{s}, nil
	}
	var parts []struct {
		Type, Text string
		Image      struct{ URL string } `json:"image_url"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil || len(parts) == 0 {
		t.Fatalf("content %s: %v", m.Content, err)
	}
	for _, p := range parts {
		if p.Type == "image_url" {
			pictures = append(pictures, p.Image.URL)
		} else {
			texts = append(texts, p.Text)
		}
	}
	return texts, pictures
}

// Whatever llmtest.Validate accepts arrives, thinking aside, which this API
// does not take: every text, picture, call and result, in order, each result
// right behind its call, and the tail at the very end.
func TestLossless(t *testing.T) {
	for _, base := range []string{"http://localhost", "https://openrouter.ai/api/v1"} {
		p := New(Config{BaseURL: base})
		rapid.Check(t, func(t *rapid.T) {
			req := wiretest.Conversation(t)
			req.Model = "anthropic/claude-x"
			body, err := p.build(req, "")
			if err != nil {
				t.Fatal(err)
			}
			var wire struct{ Messages []message }
			if err := json.Unmarshal(body, &wire); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			check(t, req, wire.Messages)
		})
	}
}

func check(t *rapid.T, req llm.Request, msgs []message) {
	var calls, wantCalls []llm.ToolCall
	var pictures, wantPictures []string
	var waiting []string
	var all strings.Builder // every text, in order
	for _, m := range msgs {
		if m.Role == "tool" {
			if len(waiting) == 0 || waiting[0] != m.CallID {
				t.Fatalf("a result for %q came while %v wait", m.CallID, waiting)
			}
			waiting = waiting[1:]
		} else if len(waiting) > 0 {
			t.Fatalf("a %s message came while %v wait", m.Role, waiting)
		}
		texts, pics := m.read(t)
		for _, s := range texts {
			all.WriteString(s + "\n")
		}
		pictures = append(pictures, pics...)
		for _, c := range m.Calls {
			waiting = append(waiting, c.ID)
			calls = append(calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Args: json.RawMessage(c.Function.Arguments)})
		}
	}
	rest := all.String()
	find := func(text string) {
		at := strings.Index(rest, text)
		if at < 0 {
			t.Fatalf("%q is not among the texts that follow", text)
		}
		rest = rest[at+len(text):]
	}
	if !llm.Blank(req.System) {
		find(req.System)
	}
	for _, m := range req.Messages {
		wantCalls = append(wantCalls, m.Calls()...)
		// A tool's pictures stand before those of the user, as in the message.
		for _, r := range m.Results() {
			for _, b := range r.Blocks {
				if img, ok := b.(llm.Image); ok {
					wantPictures = append(wantPictures, "data:"+img.MIME+";base64,"+img.Data)
				}
			}
			if r.IsError && !strings.HasPrefix(strings.ToLower(r.Text()), "error") {
				find("Error: ")
			}
			find(r.Text())
		}
		for _, b := range m.Blocks {
			switch b := b.(type) {
			case llm.Text:
				find(b.Text)
			case llm.Image:
				wantPictures = append(wantPictures, "data:"+b.MIME+";base64,"+b.Data)
			}
		}
	}
	if !llm.Blank(req.Tail) {
		if !strings.HasSuffix(all.String(), req.Tail+"\n") {
			t.Fatalf("the texts end with %q, want the tail %q", rest, req.Tail)
		}
	}
	if !slices.Equal(pictures, wantPictures) {
		t.Fatalf("pictures %v, want %v", pictures, wantPictures)
	}
	if diff := cmp.Diff(wantCalls, calls); diff != "" {
		t.Fatalf("calls -sent +read back\n%s", diff)
	}
}
