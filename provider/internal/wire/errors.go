package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"goclaw/internal/secrets"
	"goclaw/llm"
	"goclaw/provider/retry"
)

// ErrCut says that a stream ended in good order, but before the answer did.
var ErrCut = errors.New("the stream ended before the answer did")

// MalformedError is an event that makes no sense at its place in the stream.
type MalformedError struct{ What string }

func (e *MalformedError) Error() string { return e.What }

// API is the server that is asked: what it is called in messages, where it is,
// what is sent with each request, and how patient we are with it.
type API struct {
	Name   string
	Base   string
	Header http.Header
	Client *Client
	Retry  retry.Policy
}

// Post sends body, which is JSON, to a path below the base, and returns the
// event stream that is the answer. Extra headers replace those of every
// request.
func (a API) Post(ctx context.Context, path string, body []byte, extra http.Header) (io.ReadCloser, error) {
	u, err := url.Parse(a.Base)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "goclaw")
	maps.Copy(req.Header, a.Header)
	maps.Copy(req.Header, extra)
	res, err := a.Client.Do(req)
	if err != nil {
		return nil, a.hide(err)
	}
	return res.Body, nil
}

// maxList bounds how much of a list is read.
const maxList = 16 << 20

// Get returns what the server answers at a path below the base. Any status but
// 200 is a *StatusError.
func (a API) Get(ctx context.Context, path ...string) ([]byte, error) {
	u, err := url.Parse(a.Base)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.JoinPath(path...).String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "goclaw")
	maps.Copy(req.Header, a.Header)
	res, err := a.Client.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err == nil && res.StatusCode != http.StatusOK {
		err = a.hide(&StatusError{Status: res.StatusCode, Header: res.Header, Body: body})
	}
	return body, err
}

// hide takes the key and the password that were sent out of what the server
// said: some repeat them, and errors are shown, logged and recorded.
func (a API) hide(err error) error {
	var status *StatusError
	var inside *StreamError
	switch {
	case errors.As(err, &status):
		status.Body = []byte(secrets.Without(string(status.Body), a.keys()...))
	case errors.As(err, &inside):
		inside.Data = []byte(secrets.Without(string(inside.Data), a.keys()...))
	}
	return err
}

// keys returns the secrets that are sent with each request.
func (a API) keys() (keys []string) {
	for _, name := range []string{"X-Api-Key", "Api-Key", "Authorization"} {
		keys = append(keys, strings.TrimPrefix(a.Header.Get(name), "Bearer "))
	}
	if u, err := url.Parse(a.Base); err == nil {
		password, _ := u.User.Password()
		keys = append(keys, password)
	}
	return keys
}

// Unlisted reports whether err says that the server has no list of models: it
// does not know the path, or the way to ask.
func Unlisted(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && (s.Status == http.StatusNotFound || s.Status == http.StatusMethodNotAllowed || s.Status == http.StatusNotImplemented)
}

// Do calls try, and calls it again where judge says that the same call may
// succeed and out has yielded nothing. Judge turns an error of try into what
// callers branch on. A reader who left has no error, and ctx.Err() is handed
// on as it is.
func (a API) Do(ctx context.Context, out *Sink, try func() error, judge func(error) (err error, again bool)) error {
	why := ""
	tell := func(err error, wait time.Duration, next, of int) bool {
		return out.Retry(llm.Retry{Why: why, Err: err, Wait: wait, Try: next, Of: of})
	}
	err := a.Retry.Do(ctx, func() error {
		err := a.hide(try())
		switch {
		case err == nil || out.Stopped:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		said, again := judge(err)
		if !again || out.Sent {
			return said
		}
		why, err = inShort(err, said), said
		var after time.Duration
		if api := (*llm.APIError)(nil); errors.As(err, &api) {
			after = api.RetryAfter
		}
		return &retry.Again{Err: err, After: after}
	}, tell)
	if out.Stopped {
		return nil
	}
	return err
}

// inShort says in a few words why a call failed with err, of which judged is
// made: the status, or what is wrong with the connection.
func inShort(err, judged error) string {
	api := (*llm.APIError)(nil)
	var line net.Error
	switch {
	case errors.As(judged, &api) && api.Status != 0:
		return strconv.Itoa(api.Status)
	case api != nil && api.Kind != llm.ErrNetwork && api.Code != "":
		return strings.TrimSuffix(api.Code, "_error")
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &line) && line.Timeout():
		return "timeout"
	case errors.Is(err, ErrCut):
		return "the answer broke off"
	}
	reason, _ := Network(err)
	return reason
}

// Fail is an error of ours about the server, not one that it worded.
func (a API) Fail(kind error, code, msg string) *llm.APIError {
	return &llm.APIError{Provider: a.Name, Code: code, Message: msg, Kind: kind}
}

// Reply is an error that the server worded, still without a kind. A status of
// 200 is that of the stream in whose middle it came and says nothing.
func (a API) Reply(status int, h http.Header, code, msg string) *llm.APIError {
	if status == http.StatusOK {
		status = 0
	}
	return &llm.APIError{Provider: a.Name, Status: status, Code: code, Message: msg, RetryAfter: a.Retry.After(h)}
}

// RequestRefused is what is said of a request that the server refuses for a
// reason that has no kind.
const RequestRefused = "the request was refused"

// Say gives e its kind and puts words before the server's message.
func Say(e *llm.APIError, kind error, words string) {
	e.Kind = kind
	if e.Message != "" {
		words += ": " + e.Message
	}
	e.Message = words
}

// SayOverflow gives api, the cause of e, its kind and says what was too long.
func SayOverflow(e *llm.OverflowError, api *llm.APIError) {
	words := "the prompt is too long"
	switch {
	case e.Most > 0:
		words = "the answer asked for is too long"
	case e.Answer > 0:
		words = "the prompt and the answer asked for are too long together"
	}
	Say(api, llm.ErrOverflow, words)
}

// Again is what the server says about trying again, or else our guess.
func Again(h http.Header, ours bool) bool {
	switch strings.ToLower(h.Get("X-Should-Retry")) {
	case "true":
		return true
	case "false":
		return false
	}
	return ours
}

// Broken is an error that came instead of a whole answer and that the server
// did not word: a stream that makes no sense or was cut, a line that broke or
// was never there. Sent says that deltas had come before it.
func (a API) Broken(err error, sent bool) (_ error, again bool) {
	var garbled *MalformedError
	switch {
	case errors.As(err, &garbled):
		return a.Fail(llm.ErrNetwork, "malformed", "malformed stream: "+garbled.What), false
	case notJSON(err):
		return a.Fail(llm.ErrNetwork, "malformed", "malformed event in the stream: "+Line(err.Error())), false
	case errors.Is(err, ErrCut):
		return a.Fail(llm.ErrNetwork, "cut", ErrCut.Error()), true
	}
	reason, again := Network(err)
	what := "cannot reach "
	if sent {
		what = "lost the connection to "
	}
	return a.Fail(llm.ErrNetwork, "network", what+a.host()+": "+reason), again
}

func (a API) host() string {
	if u, err := url.Parse(a.Base); err == nil && u.Host != "" {
		return u.Host
	}
	return a.Base
}
