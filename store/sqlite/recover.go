package sqlite

import (
	"context"
	"fmt"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
	"goclaw/store/sqlite/internal/files"
	"goclaw/store/sqlite/internal/rescue"
)

// Recovered says what Recover has found.
type Recovered struct {
	Sessions int
	Records  int
	Lost     int // records that are known to have been there
}

// Recover appends to dst, which should be empty, every session of the database
// at path that has a record on a page that can be read. It does not need SQLite,
// so that damage to any page costs what is on that page. The file is not
// changed. With no dst, it only says what it would do.
//
// A record keeps its number; a lost one is replaced by a record of no kind and
// reported, unless only lost ones follow. The package rescue says what else
// becomes of damage.
func Recover(ctx context.Context, path string, dst session.Store, report func(session.ID, error)) (Recovered, error) {
	path, err := files.Resolve(path)
	if err != nil {
		return Recovered{}, fmt.Errorf("sqlite: %w", err)
	}
	d, err := rescue.Open(ctx, path, schema, true)
	if err != nil {
		return Recovered{}, err
	}
	defer d.Close()
	for _, p := range d.Problems {
		report(p.ID, p.Err)
	}
	r := recovery{ctx: ctx, dst: dst, report: report}
	for _, s := range d.Sessions {
		if err := r.session(d, s); err != nil {
			return r.done, err
		}
	}
	if d.Changed() {
		err = fmt.Errorf("sqlite: %s was written to while it was read: try again when no program uses it", path)
	}
	return r.done, err
}

// HasRecords reports whether the file at path has a row of the table records,
// whatever else is in it.
func HasRecords(path string) bool {
	path, err := files.Resolve(path)
	return err == nil && rescue.HasRecords(path, schema)
}

// recovery appends sessions to a new store.
type recovery struct {
	ctx    context.Context
	dst    session.Store // may be nil
	report func(session.ID, error)
	done   Recovered
}

// session appends s, if a record of it is left.
func (r *recovery) session(d *rescue.Database, s *rescue.Session) error {
	var batch, lost []session.Record // lost follows batch
	size, records := 0, 0
	for e := range d.Read(s, 0, true) {
		switch {
		case e.Err != nil:
			r.report(s.ID, e.Err)
			continue
		case e.Lost:
			lost = append(lost, e.Record)
			r.done.Lost++
			continue
		}
		batch, lost = append(append(batch, lost...), e.Record), nil
		records++
		if size += len(e.Record.Raw); len(batch) >= 1000 || size >= 4<<20 {
			if err := r.append(s.ID, batch); err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
	}
	if records == 0 {
		return nil
	}
	r.done.Sessions++
	r.done.Records += records
	err := r.append(s.ID, batch)
	if err == nil && r.dst != nil && s.Trashed() {
		err = r.dst.Delete(r.ctx, s.ID)
	}
	return err
}

// append appends recs to the session id. A record that the store refuses is
// replaced.
func (r *recovery) append(id session.ID, recs []session.Record) error {
	if r.dst == nil || len(recs) == 0 {
		return r.ctx.Err()
	}
	if err := r.dst.Append(r.ctx, id, recs...); err == nil || r.ctx.Err() != nil {
		return err
	}
	for _, rec := range recs {
		err := r.dst.Append(r.ctx, id, rec)
		if err == nil {
			continue
		}
		if r.dst.Append(r.ctx, id, sqlstore.Lost(rec.Seq)) != nil {
			return err
		}
		r.report(id, fmt.Errorf("record %d cannot be kept: %w", rec.Seq, err))
		r.done.Records--
		r.done.Lost++
	}
	return nil
}
