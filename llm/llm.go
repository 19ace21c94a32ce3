// Package llm holds the types exchanged with a language model: messages made of
// blocks, a request, the deltas of a streamed answer, usage, and the few errors
// that callers branch on.
//
// It knows no vendor and no wire format. The packages in provider/ translate.
package llm

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"time"
)

// Role says who speaks. In a request, User and Assistant alternate; System
// appears only in logs of agents that keep their system prompt there.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	System    Role = "system"
)

// Message is what one side says. Tool results are blocks of a user message.
type Message struct {
	Role   Role
	Blocks []Block
}

// Block is one part of a message: Text, Thinking, ToolCall, ToolResult, Image
// or Other.
type Block interface{ block() }

// Text is plain text. Signature is a vendor's opaque token for it, if any.
type Text struct {
	Text      string
	Signature string
}

// Thinking is a model's reasoning. Signature authenticates it to the model that
// wrote it. If Redacted, there is no readable text, and Signature is the
// encrypted content.
type Thinking struct {
	Text      string
	Signature string
	Redacted  bool
}

// ToolCall is a model's request to run a tool. Args is a JSON object.
type ToolCall struct {
	ID, Name  string
	Args      json.RawMessage
	Signature string
}

// ToolResult answers the call with the same id, successfully or not.
type ToolResult struct {
	CallID, Name string
	Blocks       []Block // Text and Image only
	IsError      bool
}

// Image is an image, its bytes in base64.
type Image struct {
	MIME string
	Data string
}

// Other is a block of an unknown kind. It is kept and never sent.
type Other struct{ Raw json.RawMessage }

func (Text) block()       {}
func (Thinking) block()   {}
func (ToolCall) block()   {}
func (ToolResult) block() {}
func (Image) block()      {}
func (Other) block()      {}

// UserText returns a user message with one text block.
func UserText(text string) Message {
	return Message{Role: User, Blocks: []Block{Text{Text: text}}}
}

// AssistantText returns an assistant message with one text block.
func AssistantText(text string) Message {
	return Message{Role: Assistant, Blocks: []Block{Text{Text: text}}}
}

// Result returns the result of call with one text block.
func Result(call ToolCall, text string) ToolResult {
	return ToolResult{CallID: call.ID, Name: call.Name, Blocks: []Block{Text{Text: text}}}
}

// Failed returns an error result of call with one text block.
func Failed(call ToolCall, text string) ToolResult {
	r := Result(call, text)
	r.IsError = true
	return r
}

// Text returns the message's text blocks, joined by newlines.
func (m Message) Text() string { return joinText(m.Blocks) }

// Text returns the result's text blocks, joined by newlines.
func (r ToolResult) Text() string { return joinText(r.Blocks) }

func joinText(blocks []Block) string {
	var parts []string
	for _, b := range blocks {
		if t, ok := b.(Text); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// Calls returns the message's tool calls in order.
func (m Message) Calls() []ToolCall { return collect[ToolCall](m) }

// Results returns the message's tool results in order.
func (m Message) Results() []ToolResult { return collect[ToolResult](m) }

func collect[T Block](m Message) []T {
	var out []T
	for _, b := range m.Blocks {
		if t, ok := b.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Size is how many bytes blocks hold, the blocks of results included.
type Size struct {
	Text     int // texts, and the names and arguments of calls
	Thinking int // with its signatures
	Data     int // images, in base64, and blocks of unknown kinds
	Images   int // how many images
}

// SizeOf returns the size of blocks.
func SizeOf(blocks []Block) Size {
	var n Size
	n.add(blocks)
	return n
}

func (n *Size) add(blocks []Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case Text:
			n.Text += len(b.Text)
		case Thinking:
			n.Thinking += len(b.Text) + len(b.Signature)
		case ToolCall:
			n.Text += len(b.Name) + len(b.Args)
		case ToolResult:
			n.add(b.Blocks)
		case Image:
			n.Data += len(b.Data)
			n.Images++
		case Other:
			n.Data += len(b.Raw)
		}
	}
}

// ToolSpec describes a tool to a model. Schema is a JSON Schema object for
// the arguments.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Request is one call of a model. Messages begin with User and alternate.
//
// Tail is text that changes from call to call (the context line, notices). A
// provider sends it after everything else, at the end of the last user message
// and after its prompt-cache mark, so that the prefix stays the same.
type Request struct {
	Model     string
	System    string
	Messages  []Message
	Tail      string
	Tools     []ToolSpec
	MaxTokens int
	Thinking  string // one of Levels, or "": as much as the model thinks by itself
}

// Levels are how much a model can be asked to think, from least to most. A
// provider asks for the nearest that the model has.
var Levels = []string{"off", "minimal", "low", "medium", "high", "xhigh", "max"}

// Usage counts tokens as the provider reports them. The prompt of a call is
// Input + CacheRead + CacheWrite.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int

	Cost      Cost // zero if it is not known
	Estimated bool // the answer broke off before the provider reported all of it
}

// Cost is in US dollars.
type Cost struct {
	Input, Output, CacheRead, CacheWrite, Total float64
}

// Add returns the sum of both.
func (c Cost) Add(d Cost) Cost {
	return Cost{c.Input + d.Input, c.Output + d.Output, c.CacheRead + d.CacheRead, c.CacheWrite + d.CacheWrite, c.Total + d.Total}
}

// Prompt is the number of tokens sent.
func (u Usage) Prompt() int { return u.Input + u.CacheRead + u.CacheWrite }

// Within reports whether every number is from 0 to most.
func (u Usage) Within(most int) bool {
	return min(u.Input, u.Output, u.CacheRead, u.CacheWrite) >= 0 && max(u.Input, u.Output, u.CacheRead, u.CacheWrite) <= most
}

// Total is the number of tokens sent and received: what the context holds
// after the call.
func (u Usage) Total() int { return u.Prompt() + u.Output }

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Cost: u.Cost.Add(v.Cost), Estimated: u.Estimated || v.Estimated,
	}
}

// Tokens returns the counts alone.
func (u Usage) Tokens() Usage {
	return Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
}

// Stop says why an answer ended.
type Stop string

const (
	StopEnd     Stop = "stop"    // the answer is complete
	StopLength  Stop = "length"  // MaxTokens was reached
	StopTool    Stop = "toolUse" // the model waits for tool results
	StopError   Stop = "error"   // the provider failed in the middle of it
	StopAborted Stop = "aborted" // the user stopped it
)

// Answer is a whole answer.
type Answer struct {
	Message Message
	Usage   Usage
	Stop    Stop
	Model   string // the provider's name for the model that answered
}

// Delta is one step of a streamed answer. Exactly one field is set. End comes
// last and once; it holds the whole answer.
//
// Begun says that the model has begun to answer, with the usage that it has
// reported so far, which may be zero. If the answer breaks off, nothing else is
// known of its usage. Begun may come again; the last one counts.
//
// Retry says that the call failed before the answer began, and is repeated.
type Delta struct {
	Begun    *Usage
	Retry    *Retry
	Text     string
	Thinking string
	Call     *ToolCall // a complete call
	End      *Answer
}

// Retry is a call that failed without an answer, and its repetition.
type Retry struct {
	Why     string // in a few words: the HTTP status, "timeout", "connection refused"
	Err     error
	Wait    time.Duration // until the next try
	Try, Of int           // the number of the next try, and how many there are at most
}

// Provider is a model that can be asked.
//
// Stream yields deltas up to End, or up to an error as its last item. A prompt
// that is too long gives an error that wraps ErrOverflow before any delta. If
// the stream breaks off, the error comes instead of End, and there is nothing
// beyond the deltas so far. Breaking out of the loop or cancelling ctx ends the
// call.
type Provider interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Delta, error]
}
