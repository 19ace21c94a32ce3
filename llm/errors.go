package llm

import (
	"errors"
	"fmt"
	"time"
)

// What callers branch on. Providers decide by the type, status and code that
// an API answers with, never by the words of a message alone.
var (
	// ErrOverflow: the prompt, or the answer asked for beside it, exceeds what
	// the model takes.
	ErrOverflow = errors.New("llm: prompt exceeds the context window")
	// ErrAuth: the key is missing, wrong or not allowed to do this.
	ErrAuth = errors.New("llm: not authorised")
	// ErrModel: the provider does not know the model.
	ErrModel = errors.New("llm: unknown model")
	// ErrUnlisted: the provider does not tell which models it has.
	ErrUnlisted = errors.New("llm: models not listed")
	// ErrNetwork: the provider could not be reached, or the line broke.
	ErrNetwork = errors.New("llm: provider not reached")
	// ErrBusy: rate limited or overloaded, retries included.
	ErrBusy = errors.New("llm: provider is busy")
	// ErrRefused: the provider rejects the request as it is.
	ErrRefused = errors.New("llm: request refused")
)

// OverflowError is an ErrOverflow with the numbers that the API gave; zero
// where it gave none.
type OverflowError struct {
	Tokens int // what the prompt came to, at least
	Window int // what the model takes: prompt and answer together
	Answer int // what was asked for the answer, where that was too much beside the prompt
	Most   int // the longest answer, where what was asked for is longer whatever the prompt
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

// APIError is what a provider answered. Kind is one of the sentinels above.
type APIError struct {
	Provider   string
	Status     int    // HTTP status, 0 if there was none
	Code       string // the API's own code or type
	Message    string // the API's own words, for people
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
