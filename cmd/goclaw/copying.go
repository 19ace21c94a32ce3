package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"goclaw/internal/progress"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// copying is the sessions that are copied from one store into another, and how
// far that is.
type copying struct {
	dst, src session.Store // src counts what is read
	infos    []session.Info
	shown    *progress.Copy
}

// begin begins a pass over all records.
func (c *copying) begin(what string) {
	records := 0
	for _, in := range c.infos {
		records += int(in.Last)
	}
	c.shown.Begin(what, len(c.infos), records)
}

// counted is a store that calls each for every record that is read from it.
type counted struct {
	session.Store
	each func()
}

func (s counted) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range s.Store.Read(ctx, id, after) {
			s.each()
			if !yield(r, err) {
				return
			}
		}
	}
}

// compare compares the copies with their sources, by the number of records and a
// hash of their lines. A source may have grown since it was copied.
func (c *copying) compare(ctx context.Context) error {
	c.begin("comparing")
	for i, in := range c.infos {
		c.shown.Session(i)
		copied, n, err := hashOf(ctx, c.dst, in.ID, 0)
		if err != nil {
			return err
		}
		source, m, err := hashOf(ctx, c.src, in.ID, n)
		if errors.Is(err, session.ErrNotFound) { // purged since
			continue
		}
		if err != nil {
			return err
		}
		if n < in.Last || n != m || copied != source {
			return fmt.Errorf("the copy of %s (%s) differs: it has %s, of %d: %w", transcript.Printable(string(in.Key)), in.ID, transcript.Count(int(n), "record"), max(in.Last, m), session.ErrConflict)
		}
	}
	return nil
}

// hashOf returns a hash of the lines of a log up to the record to (0: all), and the
// number of the last.
func hashOf(ctx context.Context, st session.Store, id session.ID, to session.Seq) (sum [sha256.Size]byte, last session.Seq, err error) {
	h := sha256.New()
	for r, err := range session.Undamaged(st.Read(ctx, id, 0), func(*session.Damage) {}) {
		if err != nil {
			return sum, last, err
		}
		if to > 0 && r.Seq > to {
			break
		}
		last = r.Seq
		fmt.Fprintf(h, "%d %d\n", r.Seq, len(r.Raw))
		h.Write(r.Raw)
	}
	h.Sum(sum[:0])
	return sum, last, nil
}
