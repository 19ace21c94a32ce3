package llm

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on. Providers decide by the type, status and code
// of an API's answer, never by the words of a message alone.
var (
	// ErrOverflow: the prompt, or the prompt with the answer asked for, exceeds
	// what the model takes.
	ErrOverflow = errors.New("llm: prompt exceeds the context window")
	// ErrAuth: the key is missing, wrong or not allowed to do this.
	ErrAuth = errors.New("llm: not authorised")
	// ErrModel: the provider does not know the model.
	ErrModel = errors.New("llm: unknown model")
	// ErrUnlisted: the provider does not list its models.
	ErrUnlisted = errors.New("llm: models not listed")
	// ErrNetwork: the provider could not be reached, or the connection broke.
	ErrNetwork = errors.New("llm: provider not reached")
	// ErrBusy: the provider limits the rate or is overloaded, after retries.
	ErrBusy = errors.New("llm: provider is busy")
	// ErrRefused: the provider refuses the request as it is.
	ErrRefused = errors.New("llm: request refused")
)

// OverflowError is an ErrOverflow with the numbers that the API gave; those that
// it did not give are zero.
type OverflowError struct {
	Tokens int // of the prompt, at least
	Window int // of the model: prompt and answer together
	Answer int // asked for the answer, if that was too much together with the prompt
	Most   int // of the longest possible answer, if more was asked for
	Err    error
}

func (e *OverflowError) Error() string {
	switch {
	case e.Most > 0:
		return fmt.Sprintf("llm: the model gives answers of at most %d tokens", e.Most)
	case e.Answer > 0 && e.Window > 0:
		return fmt.Sprintf("llm: prompt of %d tokens and answer of up to %d exceed the context window of %d", e.Tokens, e.Answer, e.Window)
	case e.Tokens > 0 && e.Window > 0:
		return fmt.Sprintf("llm: prompt of %d tokens exceeds the context window of %d", e.Tokens, e.Window)
	case e.Window > 0:
		return fmt.Sprintf("llm: prompt exceeds the context window of %d tokens", e.Window)
	}
	return ErrOverflow.Error()
}

// Unwrap makes errors.Is(err, ErrOverflow) true and keeps the cause.
func (e *OverflowError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrOverflow}
	}
	return []error{ErrOverflow, e.Err}
}

// RefusedError says that an API refuses a part of the request, as it would in
// every later one, and which. Err wraps ErrRefused.
type RefusedError struct {
	Message int    // index in Request.Messages; -1: the API does not say
	Block   int    // index in its Blocks; -1: the API does not say
	Image   bool   // an image is refused
	Why     string // the API's words, without the place
	Err     error
}

func (e *RefusedError) Error() string { return e.Err.Error() }

func (e *RefusedError) Unwrap() error { return e.Err }

// APIError is an error that a provider answered with. Kind is one of the errors
// above.
type APIError struct {
	Provider   string
	Status     int    // HTTP status, 0 if there was none
	Code       string // the API's own code or type
	Message    string // the API's own words, for people
	Param      string // the part of the request that the API names, if any
	RetryAfter time.Duration
	Kind       error
}

func (e *APIError) Error() string {
	msg := e.Message
	if msg == "" {
		msg = e.Code
	}
	if e.Status != 0 {
		return fmt.Sprintf("%s: %s (HTTP %d)", e.Provider, msg, e.Status)
	}
	return fmt.Sprintf("%s: %s", e.Provider, msg)
}

func (e *APIError) Unwrap() error { return e.Kind }
