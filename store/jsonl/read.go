package jsonl

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"goclaw/internal/codec"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Read implements session.Store. It begins at the nearest record before whose
// place is known: at least the first one of the context and the end are.
func (s *Store) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		r, err := openLog(ctx, s, id, after)
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		defer r.file.Close()
		for rec, err := range records(ctx, s.scan(r.name, r.file, r.from, r.size), r.key) {
			var d *session.Damage
			if err == nil && rec.Seq <= after || errors.As(err, &d) && d.After < after {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// openLog opens the log id of s for the records after seq after.
func openLog(ctx context.Context, s *Store, id session.ID, after session.Seq) (r reader, err error) {
	for again := true; again && err == nil; {
		err = s.with(ctx, id, func(l *log) (err error) {
			r, again, err = l.reader(max(after, 0))
			return err
		})
	}
	return r, err
}

// ReadChecked implements storekit.Checker. It yields the records that differ
// from their checksums after all others.
func (s *Store) ReadChecked(ctx context.Context, id session.ID) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		known := s.readSums(id) // before the log, which may grow
		r, err := openLog(ctx, s, id, 0)
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		defer r.file.Close()
		s.checked(ctx, r, known)(yield)
	}
}

// records yields the records and the damage that sc reads. key is for a log
// that has none.
func records(ctx context.Context, sc *codec.Scanner, key session.Key) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for sc.Next() {
			if err := ctx.Err(); err != nil {
				yield(session.Record{}, err)
				return
			}
			if d := sc.Damage(); d != nil {
				if !yield(session.Record{}, d) {
					return
				}
				continue
			}
			r := sc.Record()
			if h, ok := r.Body.(session.Header); ok && r.Seq == 1 && key != "" {
				h.Key = key
				r.Body, r.Raw = h, nil
			}
			if !yield(r, nil) {
				return
			}
		}
		if err := sc.Err(); err != nil {
			yield(session.Record{}, err)
		}
	}
}

// List implements session.Store. It asks for the state of each file and reads
// the new part of those that have grown.
func (s *Store) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		infos, err := s.list(ctx, q)
		for i, in := range infos {
			if q.Limit > 0 && i == q.Limit || !yield(*in, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Info{}, err)
		}
	}
}

func (s *Store) list(ctx context.Context, q session.Query) ([]*session.Info, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	if q.ID != "" {
		return s.listOne(ctx, q)
	}
	var infos []*session.Info
	var errs []error
	var seen map[*log]bool // filled only if a second look is needed
	for range 4 {
		if err := s.folder.sync(); err != nil {
			return nil, err
		}
		logs := slices.DeleteFunc(s.folder.listed(q.Trash), func(l *log) bool { return seen[l] })
		found, lost, err := s.rows(ctx, logs, q)
		if err != nil {
			errs = append(errs, err)
		}
		infos = append(infos, found...)
		if !lost || ctx.Err() != nil {
			break
		}
		// Some may have moved to a folder that was read before.
		if seen == nil {
			seen = map[*log]bool{}
		}
		for _, l := range logs {
			seen[l] = true
		}
	}
	slices.SortFunc(infos, func(a, b *session.Info) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.ID, b.ID))
	})
	return infos, errors.Join(errs...)
}

func (s *Store) listOne(ctx context.Context, q session.Query) ([]*session.Info, error) {
	var infos []*session.Info
	err := s.with(ctx, q.ID, func(l *log) error {
		if in := l.info(); in.Records > 0 && q.Match(in) {
			infos = append(infos, &in)
		}
		return nil
	})
	if errors.Is(err, session.ErrNotFound) {
		err = nil
	}
	return infos, err
}

// rows brings logs up to date and returns the rows that q asks for. lost says
// that a file was gone.
func (s *Store) rows(ctx context.Context, logs []*log, q session.Query) (infos []*session.Info, lost bool, err error) {
	rows := make([]session.Info, len(logs))
	var mu sync.Mutex
	var errs []error
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(logs) || ctx.Err() != nil {
				return
			}
			switch err := logs[i].row(ctx, q, &rows[i]); {
			case err == errGone:
				s.folder.forget(logs[i])
				mu.Lock()
				lost = true
				mu.Unlock()
			case err != nil:
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		}
	}
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(logs)/16) - 1 {
		wg.Go(work)
	}
	work()
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	infos = make([]*session.Info, 0, len(rows))
	for i := range rows {
		if rows[i].Records > 0 {
			infos = append(infos, &rows[i])
		}
	}
	return infos, lost, errors.Join(errs...)
}

// row sets in to the row of l if q asks for it. The key of one of our own logs
// does not change: if q asks for another, the file is not looked at.
func (l *log) row(ctx context.Context, q session.Query, in *session.Info) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.view.known && !l.view.keyless && !l.view.info.Mirror() && q.Key != "" && l.view.info.Key != q.Key {
		return nil
	}
	if err := l.refresh(ctx); err != nil {
		return err
	}
	if *in = l.info(); !q.Match(*in) {
		in.Records = 0 // no row
	}
	return nil
}

// Changes returns every log that is not in the trash.
func (s *Store) Changes(ctx context.Context, _ string) (storekit.Changes, error) {
	out := storekit.Changes{All: true}
	for in, err := range s.List(ctx, session.Query{}) {
		if err != nil {
			return storekit.Changes{}, err
		}
		c := storekit.Change{ID: in.ID, Last: in.Last}
		if l := s.folder.known(in.ID); l != nil {
			l.mu.Lock()
			c.Written = l.view.gen // changes when another program rewrites the log
			l.mu.Unlock()
		}
		out.Logs = append(out.Logs, c)
	}
	return out, nil
}
