package main

import (
	"errors"
	"fmt"

	"goclaw/agent"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/stores"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// errQuiet fails without a message: what is wrong was already shown.
var errQuiet = errors.New("failed")

// usageError is a wrong command line.
type usageError struct{ error }

func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// hinted is an error with a hint that only its command knows.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// noSession adds how to start a session, if err is that there is none.
func (e *env) noSession(err error) error {
	var none *naming.NoneError
	var bad *naming.KeyError
	if errors.As(err, &bad) {
		return &usageError{err}
	}
	if !errors.As(err, &none) {
		return err
	}
	if session.Key(none.Ref).Complete() {
		return &hinted{err, "goclaw sessions lists what there is; --new starts this one"}
	}
	example := "main:cli:trip"
	if p := session.Key(e.conf.Session.DefaultKey).Parts(); p.Agent != "" && p.Channel != "" {
		example = p.Agent + ":" + p.Channel + ":trip"
	}
	return &hinted{err, "goclaw sessions lists what there is; --new with a complete key, such as " + example + ", starts a session"}
}

// noRecord adds how to find the records of the session id, if err is that there
// is no such record.
func noRecord(err error, id session.ID) error {
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return &hinted{err, fmt.Sprintf("goclaw sessions show %s --records lists its records", id)}
}

// hint says what to do about an error, where there is something.
func hint(err error) string {
	var held *session.HeldError
	var own *hinted
	var damaged *sqlite.DamagedError
	var said *stores.ToldError
	switch {
	case errors.As(err, &said):
		return ""
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &held):
		return "wait for it, or continue in a copy: goclaw sessions fork " + held.Name
	case errors.Is(err, agent.ErrSteps):
		return "limits.stepsPerTurn in the configuration allows more; goclaw ask --continue resumes the turn"
	case errors.Is(err, session.ErrNotFound):
		return "goclaw sessions lists what there is; goclaw sessions --trash lists what was deleted"
	case errors.As(err, &damaged):
		return stores.Rescue(damaged)
	case errors.Is(err, session.ErrStale):
		return "goclaw doctor --fix rebuilds the index from the logs"
	}
	return models.Hint(err)
}
