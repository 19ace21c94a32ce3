package jsonl

import (
	"context"
	"errors"

	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/internal/space"
)

// Append implements session.Store.
func (s *Store) Append(ctx context.Context, id session.ID, recs ...session.Record) (err error) {
	defer func() { err = space.Wrap("jsonl", s.dir, err) }()
	if err := s.enter(ctx); err != nil {
		return err
	}
	if len(recs) == 0 {
		return s.appendNothing(ctx, id)
	}
	for range 4 {
		l, err := s.target(id, recs)
		if err != nil {
			return err
		}
		if err = s.appendTo(ctx, l, recs); err != errGone {
			return err
		}
		s.forget(l)
	}
	return notFound(id)
}

// appendNothing fails where an append of no records must.
func (s *Store) appendNothing(ctx context.Context, id session.ID) error {
	trashed := false
	err := s.with(ctx, id, func(l *log) error {
		trashed = l.trashed()
		return nil
	})
	switch {
	case trashed:
		return inTrash(id)
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return err
	}
	return storekit.CheckAppend(id, 0, nil)
}

// target returns the log id, or a new one that recs begin.
func (s *Store) target(id session.ID, recs []session.Record) (*log, error) {
	if l := s.known(id); l != nil {
		return l, nil
	}
	if recs[0].Seq != 1 { // it must exist, perhaps under another name
		if l, err := s.find(id); l != nil || err != nil {
			return l, err
		}
	}
	if err := storekit.CheckAppend(id, 0, recs); err != nil {
		return nil, err
	}
	h := recs[0].Body.(session.Header)
	return s.newLog(id, s.layout.place(h.Key, id)), nil
}

func (s *Store) appendTo(ctx context.Context, l *log, recs []session.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun, err := l.append(ctx, recs, func() (bool, error) {
		if s.known(l.id) == l {
			return true, nil
		}
		return s.locate(l.id)
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.register(l)
	if begun {
		s.stale(l.live)
	}
	s.notify()
	return nil
}
