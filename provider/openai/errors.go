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
//	{"object":"error","message","type","code"}       vLLM before 0.10, SGLang, Mistral
//	{"detail":"text"}                                servers made with FastAPI
//	[{"error":{"code","message","status"}}]          Gemini
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
	if list := []json.RawMessage(nil); json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var outer struct {
		Error  json.RawMessage
		Detail any
	}
	if json.Unmarshal(body, &outer) != nil {
		return r
	}
	if detail, ok := outer.Detail.(string); ok && len(outer.Error) == 0 {
		r.known, r.bare, r.msg = true, true, wire.Line(detail)
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
	// OpenRouter passes on its provider's error body as a string.
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
func (p *server) classify(err error, req llm.Request, sent bool) (_ error, again bool) {
	var status *wire.StatusError
	var inside *wire.StreamError
	switch {
	case errors.As(err, &status):
		return p.judge(read(status.Status, status.Header, status.Body), req, sent)
	case errors.As(err, &inside):
		return p.judge(read(http.StatusOK, nil, inside.Data), req, sent)
	case errors.Is(err, errNoRoom):
		return &llm.OverflowError{Err: p.api.Fail(llm.ErrOverflow, noRoom, errNoRoom.Error())}, false
	case errors.Is(err, errFiltered):
		return p.api.Fail(llm.ErrRefused, "content_filter", errFiltered.Error()), false
	}
	return p.api.Broken(err, sent)
}

// judge decides by status, type and code what r is, and whether the same
// request may succeed later.
func (p *server) judge(r reply, req llm.Request, sent bool) (err error, again bool) {
	api := p.api.Reply(r.status, r.header, cmp.Or(r.code, r.typ), r.msg)
	api.Param = r.param
	say := func(kind error, words string) { wire.Say(api, kind, words) }
	if over := overflow(r, api, req.MaxTokens); over != nil && !sent {
		wire.SayOverflow(over, api)
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
		say(llm.ErrModel, fmt.Sprintf("unknown model %q", req.Model))
	case r.status == 403 && r.flag:
		say(llm.ErrRefused, "the request was refused by moderation")
	case r.status == 401, r.status == 403, r.code == "invalid_api_key":
		say(llm.ErrAuth, "the API key is not accepted")
	case r.status == 404:
		say(llm.ErrRefused, "no "+p.speaks+" API at "+p.api.Base)
	case r.status == 402, r.code == "insufficient_quota", r.typ == "insufficient_quota":
		say(llm.ErrRefused, "the account is out of credit")
	case r.status == 429, r.code == "rate_limit_exceeded":
		say(llm.ErrBusy, "rate limited")
		again = true
	case r.status >= 500, r.status == 408, r.status == 409, r.typ == "server_error", r.typ == "overloaded_error",
		r.code == "server_error", r.code == "server_is_overloaded", r.code == "slow_down":
		say(llm.ErrBusy, "the server failed")
		again = true
	case r.status == http.StatusOK && !r.known:
		say(llm.ErrNetwork, "the answer is not a stream: is "+p.api.Base+" an OpenAI-compatible API?")
	default:
		say(llm.ErrRefused, wire.RequestRefused)
	}
	return api, wire.Again(r.header, again)
}

// An overflowing says how one server complains. Shape looks at status, type
// and code; where they are generic, words must match as well. The groups of
// words are named limit, total, prompt and answer, most for the longest answer
// and above for one more than that.
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
	openAI := regexp.MustCompile(`^(?:prompt is too long: (?P<prompt9>\d+) tokens > (?P<limit9>\d+) maximum` + // passed on by gateways
		`|This model's maximum context length is (?P<limit>\d+) tokens[.,] [Hh]owever,? (?:your messages resulted in (?P<prompt>\d+) tokens|you requested (?P<total>\d+) tokens \((?P<prompt2>\d+) in (?:the messages|your prompt)[,;](?: (?P<prompt5>\d+) in the functions,)?(?: and)? (?P<answer>\d+) (?:in|for) the completion\)|your request has (?P<prompt3>\d+) input tokens)` +
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
				`|This model's maximum context length is (?P<limit5>\d+) tokens\. However, you requested (?P<answer5>\d+) output tokens and your prompt contains \d+ characters \(more than \d+ characters, which is the upper bound for (?P<prompt5>\d+) input tokens\)` +
				`|You passed (?P<prompt2>\d+) input tokens and requested (?P<answer2>\d+) output tokens\. However, the model's context length is only (?P<limit2>\d+) tokens` +
				`|'max_tokens' or 'max_completion_tokens' is too large: (?P<answer3>\d+)\. This model's maximum context length is (?P<limit3>\d+) tokens and your request has (?P<prompt3>\d+) input tokens` +
				`|The decoder prompt \(length (?P<prompt4>\d+)\) is longer than the maximum model length of (?P<limit4>\d+)` +
				`)`),
		},
		{
			// Others repeat the sentence with a type and a code of their own. It
			// says enough without them.
			server: "vLLM before 0.10, DeepSeek, gateways",
			shape:  func(r reply) bool { return r.status == 400 || r.status == 422 },
			words:  openAI,
		},
		{
			server: "OpenRouter",
			shape:  func(r reply) bool { return r.status == 400 && r.code == "400" && r.typ == "" },
			words:  regexp.MustCompile(`^This endpoint's maximum context length is (?P<limit>\d+) tokens\. However, you requested about (?P<total>\d+) tokens \([^)]*?(?:(?P<answer>\d+) in the output)?\)`),
		},
		{
			server: "Anthropic behind OpenRouter",
			shape:  func(r reply) bool { return r.status == 400 && r.above && r.typ == "invalid_request_error" },
			words: regexp.MustCompile(`^(?:prompt is too long: (?P<prompt>\d+) tokens > (?P<limit>\d+) maximum` +
				"|input length and `max_tokens` exceed context limit: (?P<prompt2>\\d+) \\+ (?P<answer>\\d+) > (?P<limit2>\\d+))"),
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
			server: "SGLang, TGI, Mistral, xAI, Moonshot, Gemini",
			shape:  func(r reply) bool { return r.status == 400 || r.status == 422 },
			words: regexp.MustCompile(`^(?:` +
				`Requested token count exceeds the model's maximum context length of (?P<limit>\d+) tokens\. You requested a total of \d+ tokens: (?P<prompt>\d+) tokens from the input messages and (?P<answer>\d+) tokens for the completion` +
				`|The input \((?P<prompt2>\d+) tokens\) is longer than the model's context length \((?P<limit2>\d+) tokens\)` +
				"|Input validation error: `inputs` tokens \\+ `max_new_tokens` must be <= (?P<limit3>\\d+)\\. Given: (?P<prompt3>\\d+) `inputs` tokens and (?P<answer3>\\d+) `max_new_tokens`" +
				"|Input validation error: `inputs` must have less than (?P<limit4>\\d+) tokens\\. Given: (?P<prompt4>\\d+)" +
				`|Prompt contains (?P<prompt5>\d+) tokens(?: and \d+ draft tokens)?, too large for model with (?P<limit5>\d+) maximum context length` +
				`|This model's maximum prompt length is (?P<limit6>\d+) but the request contains (?P<prompt6>\d+) tokens` +
				`|(?:Invalid request: )?Your request exceeded model token limit: (?P<limit7>\d+) \(requested: (?P<total>\d+)\)` +
				`|The input token count \((?P<prompt8>\d+)\) exceeds the maximum number of tokens allowed \((?P<limit8>\d+)\)` +
				`)`),
		},
		{
			// The answer asked for is longer than any that the model gives.
			server: "any",
			shape: func(r reply) bool {
				return r.status == 400 || r.status == 422 || r.status == http.StatusRequestedRangeNotSatisfiable
			},
			words: regexp.MustCompile(`^(?:` +
				`max_(?:completion_)?tokens is too large: (?P<answer>\d+)\. ?This model supports at most (?P<most>\d+) completion tokens` + // OpenAI, Azure, NVIDIA
				`|Invalid max_tokens value, the valid range of max_tokens is \[1, ?(?P<most2>\d+)\]` + // DeepSeek
				`|(?:<400> )?(?:InternalError\.Algo\.InvalidParameter: )?Range of max_tokens should be \[1, ?(?P<most3>\d+)\]` + // DashScope
				"|`?max_(?:completion_)?tokens`?(?: for `[^`]*`)? must be less than or equal to `?(?P<most4>\\d+)`?" + // Groq
				"|The parameter `?max_(?:completion_)?tokens`? specified in the request (?:is|are) not valid: integer above maximum value, expected a value <= (?P<most5>\\d+), but got (?P<answer5>\\d+)" + // Volcengine
				`|max_tokens \((?P<answer6>\d+)\) exceeds model's maximum output tokens \((?P<most6>\d+)\)` + // Ollama's cloud
				`|Unable to submit request because it has a maxOutputTokens value of (?P<answer7>\d+) but the supported range is from 1 \(inclusive\) to (?P<above>\d+) \(exclusive\)` + // Gemini
				`|max_tokens: (?P<answer8>\d+) > (?P<most8>\d+), which is the maximum allowed number of output tokens` + // Anthropic behind another
				"|Input validation error: `max_new_tokens` must be <= (?P<most9>\\d+)\\. Given: (?P<answer9>\\d+)" + // TGI
				`|The maximum tokens you requested exceeds the model limit of (?P<most10>\d+)` + // Bedrock
				`|Invalid 'max_(?:completion_|output_)?tokens': integer above maximum value\. Expected a value <= (?P<most11>\d+), but got (?P<answer11>\d+)` + // OpenAI
				`|max_(?:completion_)?tokens \((?P<answer12>\d+)\) is too large\. The maximum is (?P<most12>\d+)` + // several gateways
				`)`),
		},
		{
			// The prompt leaves less than nothing for an answer whose length nobody
			// chose.
			server: "vLLM",
			shape:  func(r reply) bool { return r.status == 400 && r.typ == "BadRequestError" },
			words:  regexp.MustCompile(`^max_tokens must be at least 1, got -\d+`),
		},
		{
			// Something on the way takes no body of this size. A limit on tokens a
			// minute also says 413, with another code.
			server: "any",
			shape: func(r reply) bool {
				return r.status == http.StatusRequestEntityTooLarge && r.code != "rate_limit_exceeded"
			},
		},
		{
			server: "LiteLLM, whatever the server behind it says",
			shape: func(r reply) bool {
				return relays(r.status) && strings.HasPrefix(r.msg, "litellm.ContextWindowExceededError: ")
			},
		},
	}
})

// proxied is what LiteLLM puts before its upstream server's words: names
// of errors, one around the other, and in older versions the body they came in.
var proxied = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^litellm\.[\w.]+: (?:(?:litellm\.)?[\w-]+(?:Error|Exception)(?:: | - | ))*` +
		`(?:(?:Error code: \d+ - )?\{(?:[^{}]*\{)?[^{}]*?["']message["']: ?["'])?`)
})

// relays reports whether a proxy answers with status for a server that refused
// the request itself; 200 is the middle of a stream.
func relays(status int) bool {
	switch status {
	case http.StatusOK, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return true
	}
	return false
}

// overflow returns the overflow that r is, or nil. Asked is how long the answer
// was to be, for a server that does not repeat it. A proxy puts its own type
// and code in place of the server's: then the server's words decide.
func overflow(r reply, api *llm.APIError, asked int) *llm.OverflowError {
	msg := proxied().ReplaceAllString(r.msg, "")
	inner := msg != r.msg && relays(r.status)
	for _, o := range overflows() {
		if !o.shape(r) && (!inner || o.words == nil) {
			continue
		}
		var n map[string]int
		if o.hint != nil {
			n = numbers(o.hint, msg)
		}
		if o.words != nil {
			if n = numbers(o.words, msg); n == nil {
				continue
			}
		}
		e := &llm.OverflowError{Tokens: n["prompt"], Window: n["limit"], Answer: n["answer"], Most: n["most"], Err: api}
		switch {
		case r.window > 0:
			e.Tokens, e.Window = r.prompt, r.window
		case n["above"] > 0:
			e.Most = n["above"] - 1
		case e.Tokens == 0 && n["total"] > 0:
			e.Tokens = n["total"] - n["answer"]
		case e.Window == 0 && e.Most == 0 && strings.Contains(msg, "messages or completion."):
			e.Answer = asked // Groq says only that one of them is too long
		}
		return e
	}
	return nil
}

// numbers returns the named numbers that re finds in msg, or nil if it does
// not match. Digits after a name only keep the alternatives apart, or are
// parts to be added up.
func numbers(re *regexp.Regexp, msg string) map[string]int {
	m := re.FindStringSubmatch(msg)
	if m == nil {
		return nil
	}
	out := map[string]int{}
	for i, group := range re.SubexpNames() {
		if group != "" && m[i] != "" {
			out[strings.TrimRight(group, "0123456789")] += wire.Int(m[i])
		}
	}
	return out
}
