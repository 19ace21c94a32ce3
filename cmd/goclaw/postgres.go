package main

import (
	"context"
	"fmt"
	"time"

	"goclaw/internal/stores"
	"goclaw/internal/text"
	"goclaw/internal/transcript"
	"goclaw/store/postgres"
)

// examineServer adds what is wrong with the server of a PostgreSQL store, and says
// what is known of it.
func examineServer(ctx context.Context, st stores.Store, d *diagnosis) {
	pg, ok := stores.Whole(st).(*postgres.Store)
	if !ok {
		return
	}
	h, err := pg.Health(ctx)
	if err != nil {
		d.add(finding{What: "server", Problem: transcript.Problem(err)})
		return
	}
	for _, p := range h.Problems() {
		d.add(finding{What: "server", Problem: p})
	}
	d.Server = fmt.Sprintf("PostgreSQL %s, schema %d, %s; %d of %d connections in use; %s held, %d expired; its clock is %s off",
		h.Version, h.Schema, text.Bytes(h.Size), h.Connections, h.Max, transcript.Count(h.Locks, "lock"), h.Expired, h.Clock.Round(time.Millisecond))
	if says := h.Standbys(); says != "" {
		d.Server += "; " + says
	}
}
