// Package nextrequest is the next request of a session as bytes, in the form of an
// API, before the user has said anything.
package nextrequest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"goclaw/llm"
	"goclaw/provider/anthropic"
	"goclaw/session"
	"goclaw/window"
)

// encoder writes a request as an API takes it.
type encoder interface {
	Body(req llm.Request) ([]byte, error)
}

// Request is what is known of the next request before the user has said
// anything: its bytes, in the form of an API. System is nil where the API has
// it among the messages.
type Request struct {
	System   json.RawMessage
	Messages [][]byte
	Tools    json.RawMessage
}

// said stands for what the user will say.
const said = "goclaw:the-next-message"

// Encode returns the next request of s to a provider: in the form of its own API,
// or in Anthropic's. It is encoded with a message of the user at its end, which is
// then taken away: where a prompt cache is marked, and how neighbouring messages are
// joined, depends on it.
func Encode(to llm.Provider, own bool, s *session.Session, p window.Prompt) (n Request, err error) {
	next := *s
	next.Branch = append(slices.Clip(s.Branch), session.Record{Seq: s.Last + 1, ID: said, Parent: s.Leaf, Body: session.Message{Message: llm.UserText(said)}})
	p.Tail = ""
	body, err := encoderOf(to, own).Body(window.Build(&next, p, window.Loose))
	if err != nil {
		return n, err
	}
	var sent struct {
		System, Instructions json.RawMessage
		Messages, Input      []json.RawMessage
		Tools                json.RawMessage
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return n, err
	}
	n.System, n.Tools = sent.System, sent.Tools
	if sent.Instructions != nil {
		n.System = sent.Instructions
	}
	for _, m := range slices.Concat(sent.Messages, sent.Input) {
		n.Messages = append(n.Messages, m)
	}
	last := len(n.Messages) - 1
	if last < 0 {
		return n, nil
	}
	rest, err := withoutSaid(n.Messages[last])
	if err != nil {
		return n, err
	}
	n.Messages = n.Messages[:last]
	if rest != nil {
		n.Messages = append(n.Messages, rest)
	}
	return n, nil
}

// withoutSaid takes the stand-in off the end of a message: nil if nothing is
// left. Its content is a text, or a list whose last block is one.
func withoutSaid(raw json.RawMessage) (json.RawMessage, error) {
	var m struct{ Content json.RawMessage }
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, err
	}
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		if text == said {
			return nil, nil
		}
		return cutSaid(raw, m.Content)
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return nil, err
	}
	var last struct{ Text string }
	end := blocks[len(blocks)-1]
	if err := json.Unmarshal(end, &last); err != nil {
		return nil, err
	}
	switch {
	case last.Text != said:
		return cutSaid(raw, end)
	case len(blocks) == 1:
		return nil, nil
	}
	return replaceLast(raw, slices.Concat([]byte(","), end), nil)
}

// cutSaid takes the stand-in off the end of a text within part of raw.
func cutSaid(raw, part []byte) (json.RawMessage, error) {
	short, err := replaceLast(part, []byte(`\n`+said+`"`), []byte(`"`))
	if err != nil {
		return nil, err
	}
	return replaceLast(raw, part, short)
}

func replaceLast(raw, old, with []byte) (json.RawMessage, error) {
	i := bytes.LastIndex(raw, old)
	if i < 0 {
		return nil, fmt.Errorf("the message does not end as expected: %.200s", raw)
	}
	return slices.Concat(raw[:i], with, raw[i+len(old):]), nil
}

// encoderOf returns what writes requests to a provider: itself if the form of its
// own API is wanted and it has one, else Anthropic's.
func encoderOf(p llm.Provider, own bool) encoder {
	if e, ok := p.(encoder); ok && own {
		return e
	}
	return anthropic.New(anthropic.Config{})
}
