package recall

import (
	"context"
	"sync"
)

// When Bulk indexes: a segment holds twice as many records, or about as much
// text.
const (
	bulkRecords = 64 << 10
	bulkBytes   = 32 << 20
)

// Bulk indexes, in the background, what an import appends: both together take
// little longer than the import alone. If less is appended than is worth it,
// nothing is opened: the next search indexes it.
type Bulk struct {
	open func() (*Index, error)

	ctx  context.Context
	work chan struct{} // there is something to index
	done sync.WaitGroup
	ix   *Index // nil: not opened
	err  error

	records, everyRecords int // at which work was sent last, and how many more it takes
	bytes, everyBytes     int64
}

// NewBulk returns a Bulk for the index that open opens. The caller calls Wait
// at the end, and closes the index.
func NewBulk(ctx context.Context, open func() (*Index, error)) *Bulk {
	b := &Bulk{open: open, ctx: ctx, work: make(chan struct{}, 1), everyRecords: bulkRecords, everyBytes: bulkBytes}
	b.done.Go(func() {
		for range b.work {
			if b.err == nil {
				b.err = b.sync(true)
			}
		}
	})
	return b
}

// Grown says how much was appended since the beginning. It may be called by one
// goroutine at a time, and returns at once.
func (b *Bulk) Grown(records int, bytes int64) {
	if records-b.records < b.everyRecords && bytes-b.bytes < b.everyBytes {
		return
	}
	b.records, b.bytes = records, bytes
	select {
	case b.work <- struct{}{}:
	default: // what was sent before is not done yet, and will see this too
	}
}

// Wait waits until everything is indexed, if it was begun.
func (b *Bulk) Wait() error {
	close(b.work)
	b.done.Wait()
	if b.ix == nil || b.err != nil {
		return b.err
	}
	return b.sync(false)
}

// sync indexes what was appended. more says that more will be.
func (b *Bulk) sync(more bool) (err error) {
	if b.ix == nil {
		if b.ix, err = b.open(); err != nil {
			return err
		}
	}
	return b.ix.sync(b.ctx, more)
}
