package session

import (
	"context"
	"errors"
	"fmt"
)

// Fork begins a new log with the live branch of s, which must be replayed
// from its first record, up to the record at, or all of it if at is empty. An
// empty key stands for the first free one of "KEY-2", "KEY-3" and so on.
// The log is newer than every other log of its key. Records keep their ids, and
// s stays as it is.
func Fork(ctx context.Context, st Store, s *Session, key Key, at string, c Clock) (*Session, error) {
	branch := s.Branch
	if at != "" {
		n := 0
		for i, r := range branch {
			if r.ID == at {
				n = i + 1
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("record %q on the live branch of %s: %w", at, s.Key, ErrNotFound)
		}
		branch = branch[:n]
	}
	key, release, err := claimFork(ctx, st, s.Key, key)
	if err != nil {
		return nil, err
	}
	defer release()
	h := Header{ID: NewID(c), Version: Version, Key: key, CWD: s.CWD, Parent: string(s.ID), Origin: Origin{Program: "goclaw", Key: s.Key, ID: s.ID}}
	if n := len(branch); n > 0 {
		h.Origin.Seq = branch[n-1].Seq
	}
	f := &Session{outline: NewOutline(h.ID)}
	born, err := birth(ctx, st, key, c)
	if err != nil {
		return nil, err
	}
	recs := []Record{{Seq: 1, Time: born, Body: h}}
	for i, r := range branch {
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

// claimFork claims key, or if it is empty the first one that a copy of of can
// have.
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
