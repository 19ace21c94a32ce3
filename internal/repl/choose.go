package repl

import (
	"context"
	"errors"

	"goclaw/internal/query"
	"goclaw/session"
)

// chooser is a Display on which people choose from what there is.
type chooser interface {
	// ChooseSession returns the session that was chosen, "" if none was.
	ChooseSession(ctx context.Context, c SessionChoice) (session.ID, error)
	// ChoosePoint returns the point of a session to go back to, nil if none was
	// chosen. load reads the session from its first record.
	ChoosePoint(ctx context.Context, clock session.Clock, load func(context.Context) (*session.Session, error)) (*Point, error)
}

// SessionChoice is what sessions are chosen from, and how.
type SessionChoice struct {
	Store  session.Store
	Clock  session.Clock
	Search query.Searcher // nil: what was said is not searched
	Folder string         // the sessions of this folder can be shown alone
	Open   session.ID     // the session that the chat is in; "": none
	Text   string         // what they are filtered by at first
	All    bool           // subagents' sessions, too
}

// Point is a point of a session to go back to.
type Point struct {
	Record session.Record
	End    bool // to the end of the branch that ends with Record; else to before it
	Live   bool // it is on the branch that the chat is on
}

// chooser returns where people choose, nil if that is nowhere.
func (v *view) chooser() chooser {
	c, _ := v.screen.(chooser)
	return c
}

// choose lets the user choose a session, and goes there.
func choose(ctx context.Context, c *commands, from chooser, all bool) error {
	o := SessionChoice{Store: c.o.Store, Clock: c.o.Clock, Folder: c.o.CWD, Open: c.cur.ID, All: all}
	if c.o.Search != nil {
		o.Search = c.o.Search
	}
	id, err := from.ChooseSession(ctx, o)
	if err != nil {
		return err
	}
	if id != "" && id != c.cur.ID {
		return c.goTo(ctx, id)
	}
	if c.cur.ID == "" {
		return nil
	}
	now, err := session.Stat(ctx, c.o.Store, c.cur.ID)
	switch {
	case errors.Is(err, session.ErrNotFound), err == nil && !now.Trashed.IsZero(): // deleted there
		return c.new(ctx, "")
	case err == nil:
		c.cur.Info = now // it may have another title
	}
	return err
}

// point lets the user choose a point of this session, and goes back to it.
func (b *branches) point(ctx context.Context, from chooser) error {
	var s *session.Session
	p, err := from.ChoosePoint(ctx, b.chat.o.Clock, func(ctx context.Context) (read *session.Session, err error) {
		read, err = b.cur.whole(ctx)
		s = read
		return read, err
	})
	switch {
	case err != nil || p == nil:
		return err
	case p.End:
		return b.goOn(ctx, s, p.Record.ID, p.Record.Seq, "switched to the other branch")
	}
	return b.back(ctx, s, p.Record)
}
