package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Fork begins a new log with the live branch of s, which must be replayed
// from its first record; or, if at is not empty, with the branch that ends at
// the record that Locate finds for it. An empty key stands for the first free
// one of "KEY-2", "KEY-3" and so on. The log is newer than every other log of
// its key. Records keep their ids, and s stays as it is.
func Fork(ctx context.Context, st Store, s *Session, key Key, at string, c Clock) (*Session, error) {
	branch := s.Branch
	if at != "" {
		seq, err := Locate(each(s.recs), s.Info, at)
		if err != nil {
			return nil, err
		}
		if branch, err = s.branchTo(seq); err != nil {
			return nil, err
		}
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

// branchTo returns the branch that ends at the record seq, live or not. Where
// the record is on none (a header, a rewind) it is the branch that was live
// after it.
func (s *Session) branchTo(seq Seq) ([]Record, error) {
	i := slices.IndexFunc(s.recs, func(r Record) bool { return r.Seq == seq })
	if s.partial || i < 0 {
		return nil, fmt.Errorf("record %d of %s: %w", seq, s.Key, ErrPartial)
	}
	if !s.outline.nodes[i].ok {
		then, err := Replay(s.ID, each(s.recs[:i+1]))
		return then.Branch, err
	}
	var branch []Record
	for n := int32(i); n >= 0; n = s.outline.nodes[n].up {
		branch = append(branch, s.recs[n])
	}
	slices.Reverse(branch)
	return branch, nil
}

// each yields recs.
func each(recs []Record) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Locate returns the position of the record that ref names in the log of in,
// whose records are recs: its number, as lists and searches show it, its id, or
// the beginning of an id that fits only one.
func Locate(recs iter.Seq2[Record, error], in Info, ref string) (Seq, error) {
	ref = strings.TrimPrefix(ref, "#")
	if n, err := strconv.ParseInt(ref, 10, 64); err == nil && n >= 1 && Seq(n) <= in.Last {
		return Seq(n), nil
	}
	var found []Seq
	for r, err := range recs {
		var d *Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if r.ID == ref && ref != "" {
			return r.Seq, nil
		}
		if ref != "" && strings.HasPrefix(r.ID, ref) {
			found = append(found, r.Seq)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return 0, NotFound("session %s has no record %q, the last one is %d", in.Key, ref, in.Last)
	}
	return 0, fmt.Errorf("%q fits %d records of session %s: type more of the id, or the record's number", ref, len(found), in.Key)
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
