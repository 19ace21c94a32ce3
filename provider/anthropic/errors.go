package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"goclaw/llm"
	"goclaw/provider/internal/wire"
)

// refused: the model, or a filter before it, declined to answer.
type refused struct{ why string }

func (e *refused) Error() string { return e.why }

// boundError: the API does not accept thinking that was made elsewhere.
type boundError struct{ *llm.APIError }

func (e *boundError) Unwrap() error { return e.APIError }

// reply is an error as the API words it, with a status or, in the middle of a
// stream, without one (200).
type reply struct {
	status int
	header http.Header
	typ    string
	msg    string
}

// classify turns what a call failed with into what callers branch on, and says
// whether the same request may succeed later. Sent says that deltas were
// yielded: then nothing is an overflow.
func (p *Provider) classify(err error, model string, sent bool) (_ error, again bool) {
	var (
		status *wire.StatusError
		inside *wire.StreamError
		why    *refused
	)
	switch {
	case errors.As(err, &status):
		return p.judge(read(status.Status, status.Header, status.Body), model, sent)
	case errors.As(err, &inside) && json.Valid(inside.Data):
		// An error event. Its status is that of the stream and says nothing.
		return p.judge(read(http.StatusOK, nil, inside.Data), model, sent)
	case errors.As(err, &why):
		msg := "the model declined to answer"
		if why.why != "" {
			msg += ": " + wire.Line(why.why)
		}
		return p.api.Fail(llm.ErrRefused, "refusal", msg), false
	}
	return p.api.Broken(err, sent)
}

func read(status int, h http.Header, body []byte) reply {
	var envelope struct {
		Error struct{ Type, Message string }
	}
	r := reply{status: status, header: h}
	if json.Unmarshal(body, &envelope) == nil {
		r.typ, r.msg = wire.Line(envelope.Error.Type), wire.Line(envelope.Error.Message)
	}
	return r
}

const tooLarge = "request_too_large"

// patterns are made when the first error comes: compiling them is no part of
// starting up. The words of a 400 are looked at only after its type, and only
// for errors that have no type.
var patterns = sync.OnceValue(func() (p struct{ tooLong, noRoom, most, bound *regexp.Regexp }) {
	p.tooLong = regexp.MustCompile(`(?i)^prompt is too long(?:: (\d+) tokens > (\d+) maximum)?$`)
	p.noRoom = regexp.MustCompile("^input length and `max_tokens` exceed context limit: (\\d+) \\+ (\\d+) > (\\d+)")
	p.most = regexp.MustCompile(`^max_tokens: (\d+) > (\d+), which is the maximum allowed number of output tokens`)
	p.bound = regexp.MustCompile("(?i)(?:Invalid `?signature`? in `?thinking`? block|`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified|each thinking block must contain (?:non-whitespace )?thinking)")
	return p
})

// judge decides by status and type what r is, and whether the same request may
// succeed later.
func (p *Provider) judge(r reply, model string, sent bool) (err error, again bool) {
	api := p.api.Reply(r.status, r.header, r.typ, r.msg)
	say := func(kind error, words string) { wire.Say(api, kind, words) }
	if r.typ == "invalid_request_error" || r.status == http.StatusRequestEntityTooLarge || r.typ == tooLarge {
		if over := overflow(r, api); over != nil && !sent {
			wire.SayOverflow(over, api)
			return over, false
		}
		if r.typ == "invalid_request_error" && patterns().bound.MatchString(r.msg) {
			say(llm.ErrRefused, "thinking from another conversation")
			return &boundError{api}, false
		}
	}
	switch {
	case r.status == 401 || r.status == 403 || r.typ == "authentication_error" || r.typ == "permission_error":
		say(llm.ErrAuth, "the API key is not accepted")
	case r.typ == "not_found_error" && strings.HasPrefix(r.msg, "model: "):
		api.Message = ""
		say(llm.ErrModel, fmt.Sprintf("unknown model %q", model))
	case r.status == 404 && r.typ == "":
		say(llm.ErrRefused, "no Messages API at "+p.api.Base)
	case r.status == 429 || r.typ == "rate_limit_error":
		say(llm.ErrBusy, "rate limited")
		again = true
	case r.status == 529 || r.typ == "overloaded_error":
		say(llm.ErrBusy, "overloaded")
		again = true
	case r.status >= 500 || r.status == 408 || r.status == 409 || r.typ == "api_error" || r.typ == "timeout_error":
		say(llm.ErrBusy, "the server failed")
		again = true
	case r.status == http.StatusOK && r.typ == "":
		say(llm.ErrNetwork, "the answer is not a stream: is "+p.api.Base+" an Anthropic API?")
	default:
		say(llm.ErrRefused, wire.RequestRefused)
	}
	return api, wire.Again(r.header, again)
}

// overflow returns the overflow that r is, or nil. A request of more than 32 MB
// is one too: it never reaches a model, and what makes it shorter helps.
func overflow(r reply, api *llm.APIError) *llm.OverflowError {
	if m := patterns().tooLong.FindStringSubmatch(r.msg); m != nil && r.typ == "invalid_request_error" {
		return &llm.OverflowError{Tokens: wire.Int(m[1]), Window: wire.Int(m[2]), Err: api}
	}
	if m := patterns().noRoom.FindStringSubmatch(r.msg); m != nil && r.typ == "invalid_request_error" {
		return &llm.OverflowError{Tokens: wire.Int(m[1]), Answer: wire.Int(m[2]), Window: wire.Int(m[3]), Err: api}
	}
	if m := patterns().most.FindStringSubmatch(r.msg); m != nil && r.typ == "invalid_request_error" {
		return &llm.OverflowError{Answer: wire.Int(m[1]), Most: wire.Int(m[2]), Err: api}
	}
	if r.status == http.StatusRequestEntityTooLarge || r.typ == tooLarge {
		return &llm.OverflowError{Err: api}
	}
	return nil
}
