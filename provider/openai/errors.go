package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// effortError: the server refuses the reasoning_effort, not the rest.
type effortError struct{ *llm.APIError }

func (e *effortError) Unwrap() error { return e.APIError }

// reply is an error as a server words it. The shapes in use:
//
//	{"error":{"message","type","param","code"}}      OpenAI, Ollama, vLLM, LM Studio
//	{"error":{"code","message","type","n_ctx",...}}  llama.cpp
//	{"error":{"message","code","metadata"}}          OpenRouter
//	{"error":"text"}                                 LM Studio, Ollama
//	{"object":"error","message","type","code"}       vLLM before 0.10
type reply struct {
	status int // 200 in the middle of a stream
	header http.Header
	known  bool // it had one of the shapes above
	bare   bool // there was a message and nothing else to go by
	msg    string
	typ    string
	code   string // a string, or a number in digits
	param  string
	prompt int  // llama.cpp's n_prompt_tokens
	window int  // llama.cpp's n_ctx
	flag   bool // OpenRouter's moderation
	above  bool // msg and typ are those of the provider behind OpenRouter
}

type shape struct {
	Message  string
	Type     string
	Param    any
	Code     any
	Prompt   int                        `json:"n_prompt_tokens"`
	Window   int                        `json:"n_ctx"`
	Metadata map[string]json.RawMessage `json:"metadata"`
	Object   string
}

func read(status int, h http.Header, body []byte) reply {
	r := reply{status: status, header: h}
	var outer struct{ Error json.RawMessage }
	if json.Unmarshal(body, &outer) != nil {
		return r
	}
	var text string
	var s shape
	switch {
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		r.known, r.bare, r.msg = true, true, wire.Line(text)
		return r
	case json.Unmarshal(outer.Error, &s) == nil && s.Message != "":
	case json.Unmarshal(body, &s) == nil && s.Object == "error":
	default:
		return r
	}
	r.known = true
	r.msg, r.typ = wire.Line(s.Message), wire.Line(s.Type)
	r.prompt, r.window = s.Prompt, s.Window
	_, r.flag = s.Metadata["flagged_input"]
	if v, ok := s.Param.(string); ok {
		r.param = wire.Line(v)
	}
	switch c := s.Code.(type) {
	case string:
		r.code = wire.Line(c)
	case float64:
		r.code = strconv.Itoa(int(c))
		if status == http.StatusOK && c >= 400 && c < 600 {
			r.status = int(c) // inside a stream a number is the status it would have had
		}
	}
	r.bare = r.typ == "" && r.code == ""
	// OpenRouter hands the body of the provider behind it on, as a string.
	var raw string
	if json.Unmarshal(s.Metadata["raw"], &raw) == nil {
		if up := read(r.status, h, []byte(raw)); up.known && !up.bare {
			r.msg, r.typ, r.param, r.above = up.msg, up.typ, up.param, true
			if _, err := strconv.Atoi(up.code); err != nil && up.code != "" {
				r.code = up.code
			}
		}
	}
	return r
}

// classify turns what a call failed with into what callers branch on, and says
// whether the same request may succeed later. Sent says that deltas were
// yielded: then nothing is an overflow.
func (p *Provider) classify(err error, model string, sent bool) (_ error, again bool) {
	var status *wire.StatusError
	var inside *ssestream.StreamError
	switch {
	case errors.As(err, &status):
		return p.judge(read(status.Status, status.Header, status.Body), model, sent)
	case errors.As(err, &inside):
		return p.judge(read(http.StatusOK, nil, inside.Event.Data), model, sent)
	case errors.Is(err, errFiltered):
		return p.api.Fail(llm.ErrRefused, "content_filter", errFiltered.Error()), false
	}
	return p.api.Broken(err, sent)
}

// judge decides by status, type and code what r is, and whether the same
// request may succeed later.
func (p *Provider) judge(r reply, model string, sent bool) (err error, again bool) {
	api := p.api.Reply(r.status, r.header, cmp.Or(r.code, r.typ), r.msg)
	say := func(kind error, words string) { wire.Say(api, kind, words) }
	if over := overflow(r, api); over != nil && !sent {
		say(llm.ErrOverflow, "the prompt is too long")
		return over, false
	}
	switch {
	case r.status == 400 && r.param == "reasoning_effort":
		say(llm.ErrRefused, "the level of thinking is not accepted")
		return &effortError{api}, false
	case r.code == "model_not_found",
		r.status == 404 && r.known,
		r.status == 400 && r.param == "model",
		r.status == 400 && r.code == "400" && r.typ == "" && strings.HasSuffix(r.msg, " is not a valid model ID"):
		say(llm.ErrModel, fmt.Sprintf("unknown model %q", model))
	case r.status == 403 && r.flag:
		say(llm.ErrRefused, "the request was refused by moderation")
	case r.status == 401, r.status == 403, r.code == "invalid_api_key":
		say(llm.ErrAuth, "the API key is not accepted")
	case r.status == 404:
		say(llm.ErrRefused, "no chat completions API at "+p.api.Base)
	case r.status == 402, r.code == "insufficient_quota", r.typ == "insufficient_quota":
		say(llm.ErrRefused, "the account is out of credit")
	case r.status == 429, r.code == "rate_limit_exceeded":
		say(llm.ErrBusy, "rate limited")
		again = true
	case r.status >= 500, r.status == 408, r.status == 409, r.typ == "server_error", r.typ == "overloaded_error":
		say(llm.ErrBusy, "the server failed")
		again = true
	case r.status == http.StatusOK && !r.known:
		say(llm.ErrNetwork, "the answer is not a stream: is "+p.api.Base+" an OpenAI-compatible API?")
	default:
		say(llm.ErrRefused, "the request was refused")
	}
	return api, wire.Again(r.header, again)
}

// An overflowing says how one server complains. Shape looks at status, type
// and code; where they are generic, words must match as well. The groups of
// words are named limit, total, prompt and answer.
type overflowing struct {
	server string
	shape  func(r reply) bool
	words  *regexp.Regexp // nil: the shape alone says it
	hint   *regexp.Regexp // finds numbers where the shape alone says it
}

// overflows is made when the first error comes: compiling patterns is no part
// of starting up.
var overflows = sync.OnceValue(func() []overflowing {
	// OpenAI's sentences, which vLLM, DeepSeek and others repeat.
	openAI := regexp.MustCompile(`^(?:This model's maximum context length is (?P<limit>\d+) tokens[.,] [Hh]owever,? (?:your messages resulted in (?P<prompt>\d+) tokens|you requested (?P<total>\d+) tokens \((?P<prompt2>\d+) in (?:the messages|your prompt)[,;] (?P<answer>\d+) (?:in|for) the completion\)|your request has (?P<prompt3>\d+) input tokens)` +
		`|Input tokens exceed the configured limit of (?P<limit2>\d+) tokens\. Your messages resulted in (?P<prompt4>\d+) tokens)`)
	return []overflowing{
		{
			server: "OpenAI, Groq, LM Studio",
			shape:  func(r reply) bool { return r.code == "context_length_exceeded" },
			hint:   openAI,
		},
		{
			server: "llama.cpp",
			shape:  func(r reply) bool { return r.typ == "exceed_context_size_error" },
		},
		{
			server: "vLLM",
			shape:  func(r reply) bool { return r.status == 400 && r.typ == "BadRequestError" && r.code == "400" },
			words: regexp.MustCompile(`^(?:` +
				`This model's maximum context length is (?P<limit>\d+) tokens\. However, you requested (?P<answer>\d+) output tokens and your prompt contains at least (?P<prompt>\d+) input tokens` +
				`|You passed (?P<prompt2>\d+) input tokens and requested (?P<answer2>\d+) output tokens\. However, the model's context length is only (?P<limit2>\d+) tokens` +
				`|'max_tokens' or 'max_completion_tokens' is too large: (?P<answer3>\d+)\. This model's maximum context length is (?P<limit3>\d+) tokens and your request has (?P<prompt3>\d+) input tokens` +
				`|The decoder prompt \(length (?P<prompt4>\d+)\) is longer than the maximum model length of (?P<limit4>\d+)` +
				`)`),
		},
		{
			server: "vLLM before 0.10, DeepSeek",
			shape: func(r reply) bool {
				return r.status == 400 && (r.typ == "BadRequestError" || r.typ == "invalid_request_error")
			},
			words: openAI,
		},
		{
			server: "OpenRouter",
			shape:  func(r reply) bool { return r.status == 400 && r.code == "400" && r.typ == "" },
			words:  regexp.MustCompile(`^This endpoint's maximum context length is (?P<limit>\d+) tokens\. However, you requested about (?P<total>\d+) tokens \([^)]*?(?:(?P<answer>\d+) in the output)?\)`),
		},
		{
			server: "Anthropic behind OpenRouter",
			shape:  func(r reply) bool { return r.status == 400 && r.above && r.typ == "invalid_request_error" },
			words:  regexp.MustCompile(`^prompt is too long: (?P<prompt>\d+) tokens > (?P<limit>\d+) maximum`),
		},
		{
			server: "Ollama",
			shape: func(r reply) bool {
				return r.status == 400 && (r.bare || r.typ == "invalid_request_error" || r.typ == "api_error")
			},
			words: regexp.MustCompile(`^(?:request \((?P<prompt>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)` +
				`|(?:the )?input length exceeds the context length$|prompt too long; exceeded max context length)`),
		},
		{
			server: "LM Studio",
			shape:  func(r reply) bool { return (r.status == 400 || r.status == http.StatusOK) && r.bare },
			words: regexp.MustCompile(`^(?:Trying to keep the first (?P<prompt>\d+) tokens when context the overflows\. However, the model is loaded with context length of only (?P<limit>\d+) tokens` +
				`|The number of tokens to keep from the initial prompt is greater than the context length(?: \(n_keep: (?P<prompt2>\d+) ?>= n_ctx: (?P<limit2>\d+)\))?` +
				`|Input does not fit in context length\. The input has (?P<prompt3>\d+) tokens, but the context length only supports (?P<limit3>\d+) tokens` +
				`|Context size has been exceeded)`),
		},
		{
			// Something on the way takes no body of this size. A limit on tokens a
			// minute also says 413, with a code of its own.
			server: "any",
			shape: func(r reply) bool {
				return r.status == http.StatusRequestEntityTooLarge && r.code != "rate_limit_exceeded"
			},
		},
	}
})

// overflow returns the overflow that r is, or nil. Window is what would have
// been left for the prompt beside the answer that was asked for.
func overflow(r reply, api *llm.APIError) error {
	for _, o := range overflows() {
		if !o.shape(r) {
			continue
		}
		var n map[string]int
		if o.hint != nil {
			n = numbers(o.hint, r.msg)
		}
		if o.words != nil {
			if n = numbers(o.words, r.msg); n == nil {
				continue
			}
		}
		e := &llm.OverflowError{Tokens: n["prompt"], Window: n["limit"] - n["answer"], Err: api}
		if r.window > 0 {
			e.Tokens, e.Window = r.prompt, r.window
		}
		if e.Tokens == 0 && n["total"] > 0 {
			e.Tokens = n["total"] - n["answer"]
		}
		if n["limit"] > 0 && e.Window <= 0 {
			return nil // no prompt would fit: the limit on the answer is wrong
		}
		return e
	}
	return nil
}

// numbers returns the named numbers that re finds in msg, or nil if it does
// not match. Digits behind a name only keep the alternatives apart.
func numbers(re *regexp.Regexp, msg string) map[string]int {
	m := re.FindStringSubmatch(msg)
	if m == nil {
		return nil
	}
	out := map[string]int{}
	for i, group := range re.SubexpNames() {
		if group != "" && m[i] != "" {
			out[strings.TrimRight(group, "0123456789")] = wire.Int(m[i])
		}
	}
	return out
}
