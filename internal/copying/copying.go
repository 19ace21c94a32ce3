// Package copying copies sessions from one store into another, byte for byte, and
// compares the copies with their sources.
package copying

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"

	"goclaw/internal/progress"
	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Job is the sessions that are copied from one store into another, and how
// far that is.
type Job struct {
	dst, src session.Store // src counts what is read
	infos    []session.Info
	shown    *progress.Copy
}

// New returns the copying of sessions from src into dst, which is shown on bar.
func New(dst, src session.Store, infos []session.Info, bar *progress.Bar) *Job {
	c := &Job{dst: dst, infos: infos, shown: progress.NewCopy(bar)}
	c.src = counted{src, c.shown.Record}
	return c
}

// Run copies the sessions, and returns how many records are new. failed is told of a
// session that cannot be copied whole; the others are copied nevertheless.
func (c *Job) Run(ctx context.Context, failed func(session.Info, error)) (records int, err error) {
	defer c.shown.End()
	c.begin("copying")
	for i, in := range c.infos {
		c.shown.Session(i)
		n, err := copySession(ctx, c.dst, c.src, in)
		records += n
		if err != nil && ctx.Err() != nil {
			return records, err
		}
		if err != nil {
			c.shown.End()
			failed(in, err)
		}
	}
	return records, nil
}

// begin begins a pass over all records.
func (c *Job) begin(what string) {
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

// Compare compares the copies with their sources, by the number of records and a
// hash of their lines. A source may have grown since it was copied.
func (c *Job) Compare(ctx context.Context) error {
	defer c.shown.End()
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

// copySession copies one log, into the trash if it is there.
func copySession(ctx context.Context, dst, src session.Store, in session.Info) (int, error) {
	have, err := session.Stat(ctx, dst, in.ID)
	switch {
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return 0, err
	case err == nil && !have.Trashed.IsZero() && (have.Last < in.Last || in.Trashed.IsZero()):
		if err := dst.Restore(ctx, in.ID); err != nil {
			return 0, err
		}
	case err == nil && !have.Trashed.IsZero():
		return 0, nil
	}
	n, err := storekit.Copy(ctx, dst, src, in.ID)
	if errors.Is(err, session.ErrConflict) {
		err = fmt.Errorf("the target has other records under this id, and they were left as they are: copy to another place, or delete and purge it there (%w)", err)
	}
	if !in.Trashed.IsZero() {
		err = errors.Join(err, dst.Delete(ctx, in.ID))
	}
	return n, err
}
