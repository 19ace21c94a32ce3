package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/store/postgres"
)

// examineServer adds what is wrong with the server of a PostgreSQL store, and says
// what is known of it.
func examineServer(ctx context.Context, st store, d *diagnosis) {
	pg, ok := whole(st).(*postgres.Store)
	if !ok {
		return
	}
	h, err := pg.Health(ctx)
	if err != nil {
		d.add(finding{What: "server", Problem: oneLine(err)})
		return
	}
	for _, p := range h.Problems() {
		d.add(finding{What: "server", Problem: p})
	}
	d.Server = fmt.Sprintf("PostgreSQL %s, schema %d, %d MB; %d of %d connections in use; %s held, %d expired; its clock is %s off",
		h.Version, h.Schema, h.Size>>20, h.Connections, h.Max, transcript.Count(h.Locks, "lock"), h.Expired, h.Clock.Round(time.Millisecond))
}

// compareCopies compares the logs of dst with those of src, by the number of
// records and a hash of their lines.
func compareCopies(ctx context.Context, dst, src session.Store, infos []session.Info, progress func(done int)) error {
	for i, in := range infos {
		a, n, err := hashOf(ctx, src, in.ID)
		if err != nil {
			return err
		}
		b, m, err := hashOf(ctx, dst, in.ID)
		if err != nil {
			return err
		}
		if n != m || a != b {
			return fmt.Errorf("the copy of %s differs: it has %s, of %d: %w", in.ID, transcript.Count(m, "record"), n, session.ErrConflict)
		}
		progress(i + 1)
	}
	return nil
}

// hashOf returns a hash of all lines of a log.
func hashOf(ctx context.Context, st session.Store, id session.ID) (sum [sha256.Size]byte, n int, err error) {
	h := sha256.New()
	for r, err := range undamaged(st.Read(ctx, id, 0), func(*session.Damage) {}) {
		if err != nil {
			return sum, n, err
		}
		n++
		fmt.Fprintf(h, "%d %d\n", r.Seq, len(r.Raw))
		h.Write(r.Raw)
	}
	h.Sum(sum[:0])
	return sum, n, nil
}
