package storekit

import (
	"context"

	"goclaw/session"
)

// Feed is an optional power of a session.Store: it says what changed, so that
// an index can follow the logs without listing all of them.
type Feed interface {
	// Changes returns what changed since the position since, which an earlier
	// call returned; "" asks for everything. It may return more than that, never
	// less. Positions are valid until the Store is closed.
	Changes(ctx context.Context, since string) (Changes, error)
}

// Changes is what happened to the logs of a Store between two positions.
type Changes struct {
	Now  string   // the position to ask from next time
	Logs []Change // in no order
	// All says that Logs holds every log that is not in the trash: a log that is
	// missing is in the trash or purged.
	All bool
}

// Change is what an index needs to know of a log.
type Change struct {
	ID   session.ID
	Last session.Seq
	// Written changes when another program wrote the whole log again, so that
	// its records may differ.
	Written uint64
	Gone    bool // in the trash, or purged
}

// ChangesOf returns what changed in st since a position. If st is not a Feed, it
// lists all logs.
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
