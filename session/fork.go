package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Fork begins a new log with the live branch of s, which must be replayed
// from its first record; or, if at is not 0, with the branch that ends at the
// record at, live or not. An empty key stands for the first free
// one of "KEY-2", "KEY-3" and so on. The log is newer than every other log of
// its key. Records keep their ids, and s stays as it is.
func Fork(ctx context.Context, st Store, s *Session, key Key, at Seq, c Clock) (*Session, error) {
	branch := s.Branch
	if at != 0 {
		var err error
		if branch, err = s.branchTo(at); err != nil {
			return nil, err
		}
	}
	key, release, err := claimFork(ctx, st, s.Key, key)
	if err != nil {
		return nil, err
	}
	defer release()
	h := Header{ID: newID(c), Version: Version, Key: key, CWD: s.CWD, Parent: string(s.ID), Origin: Origin{Program: "goclaw", Key: s.Key, ID: s.ID}}
	if n := len(branch); n > 0 {
		h.Origin.Seq = branch[n-1].Seq
	}
	f := newSession(h.ID)
	born, err := birth(ctx, st, key, c)
	if err != nil {
		return nil, err
	}
	recs := []Record{{Seq: 1, Time: born, Body: h}}
	for i, r := range branch {
		r = s.recs[r.Seq-s.recs[0].Seq] // as it is in the log, also if it is a part of an answer
		r.Seq = Seq(i + 2)
		recs = append(recs, r)
	}
	if err := st.Append(ctx, h.ID, recs...); err != nil {
		return nil, err
	}
	for _, r := range recs {
		if err := f.Apply(r); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// branchTo returns the branch that ends at the record seq, live or not. If the
// record is on no branch (a header, a rewind), it is the branch that was live
// after it.
func (s *Session) branchTo(seq Seq) ([]Record, error) {
	i := slices.IndexFunc(s.recs, func(r Record) bool { return r.Seq == seq })
	if seq < 1 || seq > s.Last {
		return nil, NotFound("session %s has no record %d, the last one is %d", s.Key, seq, s.Last)
	}
	if s.partial || i < 0 {
		return nil, fmt.Errorf("record %d of %s: %w", seq, s.Key, ErrPartial)
	}
	if !s.outline.nodes[i].ok {
		then := newSession(s.ID)
		for _, r := range s.recs[:i+1] {
			if err := then.Apply(r); err != nil {
				return nil, err
			}
		}
		return then.Branch, nil
	}
	var branch []Record
	for n := int32(i); n >= 0; n = s.outline.nodes[n].up {
		branch = append(branch, s.recs[n])
	}
	slices.Reverse(branch)
	return branch, nil
}

// claimFork claims key, or, if that is empty, the first free key for a copy of
// the session of.
func claimFork(ctx context.Context, st Store, of, key Key) (Key, func(), error) {
	if key != "" {
		release, err := claim(ctx, st, key)
		return key, release, err
	}
	for n := 2; ; n++ {
		key = Key(fmt.Sprintf("%s-%d", of, n))
		release, err := claim(ctx, st, key)
		if err != nil {
			return "", nil, err
		}
		if _, err = Current(ctx, st, key); errors.Is(err, ErrNotFound) {
			return key, release, nil
		}
		release()
		if err != nil {
			return "", nil, err
		}
	}
}
