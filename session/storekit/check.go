package storekit

import (
	"context"
	"iter"

	"goclaw/session"
)

// Checker is an optional power of a session.Store whose records have checksums.
// Read does not compare them.
type Checker interface {
	// ReadChecked yields what Read yields of a whole log, and a *session.Damage
	// for each record that differs from its checksum: Changed is its number. The
	// record itself is yielded as it is. Records of older versions may have no
	// checksum.
	ReadChecked(ctx context.Context, id session.ID) iter.Seq2[session.Record, error]
}
