package storekit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"goclaw/session"
)

// Copy appends to the log id of dst the records of src that it lacks, and returns
// how many those were. After an interruption, call it again. If the log of dst is
// not the beginning of that of src, the error wraps session.ErrConflict. Damage
// in src is skipped and returned at the end.
func Copy(ctx context.Context, dst, src session.Store, id session.ID) (int, error) {
	var have session.Info
	for in, err := range dst.List(ctx, session.Query{ID: id}) {
		if err != nil {
			return 0, err
		}
		have = in
	}
	if have.Last > 0 {
		if err := samePrefix(ctx, dst, src, id); err != nil {
			return 0, err
		}
	}
	n, size := 0, 0
	var batch []session.Record
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := dst.Append(ctx, id, batch...)
		if err == nil {
			n += len(batch)
			batch, size = batch[:0], 0
		}
		return err
	}
	var damage []error
	for r, err := range src.Read(ctx, id, have.Last) {
		var d *session.Damage
		if errors.As(err, &d) {
			damage = append(damage, d)
			continue
		}
		if err != nil {
			return n, err
		}
		batch = append(batch, r)
		size += len(r.Raw)
		if len(batch) == 1000 || size > 4<<20 {
			if err := flush(); err != nil {
				return n, err
			}
		}
	}
	return n, errors.Join(append(damage, flush())...)
}

// samePrefix compares the records of dst with those of src, by id and by bytes.
func samePrefix(ctx context.Context, dst, src session.Store, id session.ID) error {
	next, stop := iter.Pull2(src.Read(ctx, id, 0))
	defer stop()
	for d, err := range dst.Read(ctx, id, 0) {
		if err != nil {
			return err
		}
		r, err, ok := next()
		for d := (*session.Damage)(nil); errors.As(err, &d); {
			r, err, ok = next()
		}
		if err != nil {
			return err
		}
		if !ok || r.ID != d.ID || r.Raw != nil && d.Raw != nil && string(r.Raw) != string(d.Raw) {
			return fmt.Errorf("session: record %d of %s differs from its copy: %w", d.Seq, id, session.ErrConflict)
		}
	}
	return nil
}
