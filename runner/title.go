package runner

import (
	"context"

	"goclaw/agent"
	"goclaw/internal/naming"
	"goclaw/session"
)

// title names a session that has no title, as soon as it is about something. A
// title that it has is never replaced: a person may have given it.
func (h hand) title(ctx context.Context, yield func(agent.Event, error) bool) error {
	if h.s.Title != "" {
		return nil
	}
	t := naming.Topic(h.s)
	if t == "" {
		return nil
	}
	rec, err := h.keep(ctx, h.s.Next(session.Title{Title: t}, h.r.o.Clock))
	if err != nil {
		return err
	}
	if !yield(rec, nil) {
		return errOver
	}
	return nil
}
