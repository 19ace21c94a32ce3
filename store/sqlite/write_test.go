package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// TestManyRows: of records that are inserted together either all are written or
// none, wherever the one stands that cannot be.
func TestManyRows(t *testing.T) {
	for _, taken := range []session.Seq{10, 17, 40, 49} {
		path := filepath.Join(t.TempDir(), "sessions.db")
		s := at(t, path)
		recs := talk(t, s, "s1", 60)
		_, lines, err := sqlstore.Encode(recs)
		must(t, err)
		sql(t, path, "DELETE FROM records WHERE seq > 9")
		w := &s.writer
		must(t, w.alone(func() error { return w.insert(1, lines[taken-1:taken]) }))
		if err := w.alone(func() error { return w.insert(1, lines[9:50]) }); !errors.Is(err, session.ErrStale) {
			t.Errorf("record %d is there already: %v, want %v", taken, err, session.ErrStale)
		}
		if n, err := w.c.Int("SELECT count(*) FROM records"); err != nil || n != 10 {
			t.Errorf("%d records (%v) after an insert over record %d, want 10", n, err, taken)
		}
		must(t, w.alone(func() error { return w.insert(1, lines[50:]) }))
	}
}
