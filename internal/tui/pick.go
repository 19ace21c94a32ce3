package tui

import (
	"context"

	"goclaw/internal/repl"
	"goclaw/internal/tui/pick"
	"goclaw/session"
)

// ChooseSession shows the picker of sessions.
func (u *UI) ChooseSession(ctx context.Context, c repl.SessionChoice) (session.ID, error) {
	v := pick.NewSessions(ctx, pick.SessionsOptions(c))
	err := u.Open(ctx, v)
	return v.Choice(), err
}

// ChoosePoint shows the tree of a session.
func (u *UI) ChoosePoint(ctx context.Context, clock session.Clock, load func(context.Context) (*session.Session, error)) (*repl.Point, error) {
	v := pick.NewTree(ctx, pick.TreeOptions{Clock: clock, Load: load})
	err := u.Open(ctx, v)
	return (*repl.Point)(v.Choice()), err
}
