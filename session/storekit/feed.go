package storekit

import (
	"context"

	"goclaw/session"
)

// Feed is an optional power of a session.Store: it says what changed, so that
// an index can follow the logs without listing all of them.
type Feed interface {
	// Changes returns what changed since a position that an earlier call
	// returned; "" asks for everything. It may return more than that, never
	// less. Positions need not outlive the Store.
	Changes(ctx context.Context, since string) (Changes, error)
}

// Changes is what happened to the logs of a Store between two positions.
type Changes struct {
	Now  string   // the position to ask from next time
	Logs []Change // those that are not in the trash; the latest used first
	// All says that Logs is every log that is not in the trash: whatever is
	// missing from it is in the trash or purged.
	All bool
}

// Change is what an index needs to know of a log.
type Change struct {
	ID   session.ID
	Last session.Seq
	// Written differs from before when another program wrote the log again
	// from its beginning, so that its records may be others.
	Written uint64
	Gone    bool // in the trash, or purged
}

// ChangesOf asks st what changed since. A Store that is no Feed is listed.
func ChangesOf(ctx context.Context, st session.Store, since string) (Changes, error) {
	if f, ok := st.(Feed); ok {
		return f.Changes(ctx, since)
	}
	out := Changes{All: true}
	for in, err := range st.List(ctx, session.Query{}) {
		if err != nil {
			return Changes{}, err
		}
		out.Logs = append(out.Logs, Change{ID: in.ID, Last: in.Last})
	}
	return out, nil
}
