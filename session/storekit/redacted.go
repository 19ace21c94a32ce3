package storekit

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"goclaw/session"
)

// Redactions is an optional power of a session.Store: it finds the redactions
// of a log that follow the record after, in order, without reading the log.
type Redactions interface {
	Redactions(ctx context.Context, id session.ID, after session.Seq) ([]session.Record, error)
}

// Redacted returns st with what redactions take out of records taken out of what
// Read yields. Everything that reads logs for people, models or programs reads
// them through it; only copies of whole logs read st itself.
//
// A redacted record has no Raw. A redaction that is yielded keeps the places in
// records that the same reading has not yielded, for readers that hold those.
func Redacted(st session.Store) session.Store {
	if r, ok := st.(*redacted); ok {
		return r
	}
	return &redacted{Store: st, known: map[session.ID]*reading{}}
}

type redacted struct {
	session.Store

	mu    sync.Mutex
	known map[session.ID]*reading // of a store without Redactions
}

// reading is what was found in the records from from up to last of a log.
type reading struct {
	from, last session.Seq
	found      []session.Record
}

// Read implements session.Store.
func (s *redacted) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		found, err := s.redactions(ctx, id, after)
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		by := map[string][]session.Record{}
		for _, r := range found {
			for _, t := range r.Body.(session.Redaction).Targets {
				by[t.ID] = append(by[t.ID], r)
			}
		}
		done := map[string]bool{} // the targets that were yielded
		for r, err := range s.Store.Read(ctx, id, after) {
			if err == nil && len(by) > 0 {
				r = without(r, by[r.ID], done)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// without returns r without what found takes out of it.
func without(r session.Record, found []session.Record, done map[string]bool) session.Record {
	if b, ok := r.Body.(session.Redaction); ok {
		r.Body, r.Raw = b.Applied(func(id string) bool { return done[id] }), nil
		return r
	}
	if r.ID == "" {
		return r
	}
	for _, by := range found {
		if by.Seq <= r.Seq {
			continue
		}
		done[r.ID] = true
		for _, t := range by.Body.(session.Redaction).Targets {
			if t.ID == r.ID {
				r = t.Apply(r)
			}
		}
	}
	return r
}

// redactions returns the redactions that follow after.
func (s *redacted) redactions(ctx context.Context, id session.ID, after session.Seq) ([]session.Record, error) {
	if st, ok := s.Store.(Redactions); ok {
		return st.Redactions(ctx, id, after)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[id]
	if k == nil || after < k.from {
		k = &reading{from: max(after, 0), last: max(after, 0)}
	}
	// What is added later is read from where the last reading ended.
	for r, err := range s.Store.Read(ctx, id, k.last) {
		if d := (*session.Damage)(nil); errors.As(err, &d) {
			continue
		}
		if errors.Is(err, session.ErrNotFound) {
			delete(s.known, id)
			return nil, nil // whoever reads is told
		}
		if err != nil {
			return nil, err
		}
		k.last = r.Seq
		if _, ok := r.Body.(session.Redaction); ok {
			k.found = append(k.found, r)
		}
	}
	s.known[id] = k
	return slices.DeleteFunc(slices.Clone(k.found), func(r session.Record) bool { return r.Seq <= after }), nil
}

// Purge implements session.Store.
func (s *redacted) Purge(ctx context.Context, id session.ID) error {
	s.mu.Lock()
	delete(s.known, id)
	s.mu.Unlock()
	return s.Store.Purge(ctx, id)
}

// Wait implements session.Waiter.
func (s *redacted) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	if w, ok := s.Store.(session.Waiter); ok {
		return w.Wait(ctx, id, after)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// Changes implements Feed.
func (s *redacted) Changes(ctx context.Context, since string) (Changes, error) {
	return ChangesOf(ctx, s.Store, since)
}
