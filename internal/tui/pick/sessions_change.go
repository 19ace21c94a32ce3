package pick

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/naming"
	"goclaw/session"
)

// changed says that a change of the store was made, or not.
type changed struct {
	of   *Sessions
	err  error
	what func(s *Sessions) // shows it
	undo func(s *Sessions) // if it failed: shows that it was not made
}

// change makes a change of the store. make returns how to show it.
func (s *Sessions) change(make func(ctx context.Context) (func(*Sessions), error), undo func(*Sessions)) tea.Cmd {
	return s.jobs.add(func(ctx context.Context) tea.Msg {
		what, err := make(ctx)
		return changed{of: s, err: err, what: what, undo: undo}
	})
}

func (s *Sessions) changed(c changed) {
	if c.err != nil {
		if c.undo != nil {
			c.undo(s)
		}
		s.fail(c.err)
		return
	}
	if c.what != nil {
		c.what(s)
	}
}

// rename gives a session a title, as goclaw sessions rename does. The title of an
// imported one is a record of our own copy: the source is not written to.
func (s *Sessions) rename(id session.ID, title string) tea.Cmd {
	return s.change(func(ctx context.Context) (func(*Sessions), error) {
		open, err := session.Open(ctx, s.o.Store, id)
		if err != nil {
			return nil, err
		}
		_, err = session.Keep(ctx, s.o.Store, open, open.Next(session.Title{Title: title}, s.o.Clock), s.o.Clock)
		return func(s *Sessions) {
			if r := s.rows.byID[id]; r != nil {
				r.call(title)
				s.refilter(true)
			}
			s.say("it is called %q now", name(title))
		}, err
	}, nil)
}

// fork copies the session at the cursor, and goes to the copy.
func (s *Sessions) fork() tea.Cmd {
	r := s.current()
	if r == nil {
		return nil
	}
	id := r.ID
	s.say("copying …")
	return s.change(func(ctx context.Context) (func(*Sessions), error) {
		whole, err := session.Replay(id, s.o.Store.Read(ctx, id, 0))
		if err != nil {
			return nil, err
		}
		f, err := session.Fork(ctx, s.o.Store, whole, "", 0, s.o.Clock)
		if err != nil {
			return nil, err
		}
		f.Title = naming.Title(ctx, s.o.Store, f.Info)
		return func(s *Sessions) {
			s.rows.add(true, f.Info)
			s.refilter(true)
			s.moveTo(f.ID)
			s.say("forked as %s: Enter opens it", name(f.Key))
		}, nil
	}, nil)
}

// remove moves the session at the cursor to the trash.
func (s *Sessions) remove() tea.Cmd {
	r := s.current()
	if r == nil {
		return nil
	}
	id, title := r.ID, r.title
	s.undo = append(s.undo, id)
	s.gone(id, true)
	s.say("%q is in the trash; Ctrl-Z brings it back", cut(title, 40))
	return s.change(func(ctx context.Context) (func(*Sessions), error) { return nil, s.o.Store.Delete(ctx, id) }, func(s *Sessions) {
		s.undo = slices.DeleteFunc(s.undo, func(u session.ID) bool { return u == id })
		s.gone(id, false)
	})
}

// restore brings back what was deleted last.
func (s *Sessions) restore() tea.Cmd {
	if len(s.undo) == 0 {
		s.say("nothing was deleted here: goclaw sessions --trash lists the trash")
		return nil
	}
	id := s.undo[len(s.undo)-1]
	s.undo = s.undo[:len(s.undo)-1]
	s.gone(id, false)
	s.moveTo(id)
	left := ""
	if n := len(s.undo); n > 0 {
		left = fmt.Sprintf("; Ctrl-Z brings %d more back", n)
	}
	s.say("%q is back%s", cut(s.rows.byID[id].title, 40), left)
	return s.change(func(ctx context.Context) (func(*Sessions), error) {
		err := s.o.Store.Restore(ctx, id)
		if errors.Is(err, session.ErrNotFound) {
			err = fmt.Errorf("it is not in the trash any more: %w", err)
		}
		return nil, err
	}, func(s *Sessions) { s.gone(id, true) })
}

// gone takes a session out of the list, or puts it back.
func (s *Sessions) gone(id session.ID, gone bool) {
	if r := s.rows.byID[id]; r != nil {
		r.gone = gone
		s.refilter(false)
	}
}
