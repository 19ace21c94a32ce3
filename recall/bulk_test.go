package recall

import (
	"fmt"
	"testing"
)

// What an import appends is indexed while it goes on, and all of it at the end.
// A small import opens no index.
func TestBulk(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		opened := 0
		begin := func() *Bulk {
			b := NewBulk(t.Context(), func() (*Index, error) { opened++; return w.ix, nil })
			b.everyRecords, b.everyBytes = 2*flushAt, 1<<20
			return b
		}
		b := begin()
		b.Grown(2*flushAt-1, 1<<20-1)
		if err := b.Wait(); err != nil || opened != 0 {
			t.Errorf("a small import opens the index %d times (%v)", opened, err)
		}
		b = begin()
		records := 0
		for i := range 5 {
			var lines []string
			for j := range flushAt {
				lines = append(lines, fmt.Sprintf("user: word%dx%d", i, j))
			}
			say(t, w.Store, fmt.Sprintf("s%d", i), lines...)
			records += 1 + flushAt
			b.Grown(records, 0)
		}
		if err := b.Wait(); err != nil || opened != 1 {
			t.Fatalf("opened %d times: %v", opened, err)
		}
		indexed := 0
		for _, s := range w.ix.messages.segs {
			indexed += len(s.Docs)
		}
		if want := 5 * flushAt; indexed != want {
			t.Errorf("%d messages are in segments, want %d", indexed, want)
		}
		first(t, w.ix, "word4x7", fmt.Sprintf("s4#%d", 9))
	})
}
