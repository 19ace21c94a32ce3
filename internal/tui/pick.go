package tui

import (
	"context"

	"goclaw/internal/repl"
	"goclaw/internal/tui/look"
	"goclaw/internal/tui/pick"
	"goclaw/session"
)

// ChooseSession shows the picker of sessions.
func (u *UI) ChooseSession(ctx context.Context, c repl.SessionChoice) (session.ID, error) {
	v := pick.NewSessions(ctx, pick.SessionsOptions(c))
	show := u.Open
	if c.Here { // at the start: what was typed before does not choose
		show = u.OpenQuestion
	}
	err := show(ctx, v)
	return v.Choice(), err
}

// ChoosePoint shows the tree of a session.
func (u *UI) ChoosePoint(ctx context.Context, clock session.Clock, load func(context.Context) (*session.Session, error)) (*repl.Point, error) {
	v := pick.NewTree(ctx, pick.TreeOptions{Clock: clock, Load: load})
	err := u.Open(ctx, v)
	return (*repl.Point)(v.Choice()), err
}

// ChooseHit shows the search.
func (u *UI) ChooseHit(ctx context.Context, c repl.HitChoice) (repl.Found, error) {
	v := pick.NewSearch(ctx, pick.SearchOptions(c))
	err := u.Open(ctx, v)
	return repl.Found(v.Choice()), err
}

// ChooseRow shows a table.
func (u *UI) ChooseRow(ctx context.Context, title string, rows [][]string, at int, more []string) (int, error) {
	v := pick.NewTable(pick.TableOptions{Title: title, Rows: rows, At: at, More: more})
	err := u.Open(ctx, v)
	return v.Choice(), err
}

// ShowTexts shows texts in a viewer.
func (u *UI) ShowTexts(ctx context.Context, texts [][2]string, i int) error {
	return u.Open(ctx, look.New(u.model.style, len(texts), i, func(i int) look.Doc {
		return look.Doc{Title: texts[i][0], Text: texts[i][1]}
	}))
}
