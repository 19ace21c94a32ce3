package storetest

import (
	"context"
	"iter"
	"sync"
	"testing"

	"goclaw/session"
	"goclaw/store/memory"
)

func TestMemory(t *testing.T) { Run(t, openMemory) }

// houses are the stores in memory, by dir.
var houses sync.Map

// openMemory opens a door to the one store that stands for dir.
func openMemory(_ *testing.T, dir string) session.Store {
	house, _ := houses.LoadOrStore(dir, memory.New())
	return &door{Store: house.(*memory.Store), gone: make(chan struct{})}
}

// door is a store in memory that can be closed and opened again.
type door struct {
	*memory.Store
	once sync.Once
	gone chan struct{}
}

func (d *door) shut(ctx context.Context) error {
	select {
	case <-d.gone:
		return session.ErrClosed
	default:
		return ctx.Err()
	}
}

func (d *door) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Store.Append(ctx, id, recs...)
}

func (d *door) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return guarded(ctx, d, d.Store.Read(ctx, id, after))
}

func (d *door) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return guarded(ctx, d, d.Store.List(ctx, q))
}

func guarded[T any](ctx context.Context, d *door, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := d.shut(ctx); err != nil {
			var none T
			yield(none, err)
			return
		}
		seq(yield)
	}
}

func (d *door) Delete(ctx context.Context, id session.ID) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Store.Delete(ctx, id)
}

func (d *door) Restore(ctx context.Context, id session.ID) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Store.Restore(ctx, id)
}

func (d *door) Purge(ctx context.Context, id session.ID) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	return d.Store.Purge(ctx, id)
}

func (d *door) Lock(ctx context.Context, name, who string) (func(), error) {
	if err := d.shut(ctx); err != nil {
		return nil, err
	}
	return d.Store.Lock(ctx, name, who)
}

func (d *door) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	if err := d.shut(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.gone:
			cancel()
		case <-inner.Done():
		}
	}()
	err := d.Store.Wait(inner, id, after)
	if shut := d.shut(ctx); shut != nil {
		return shut
	}
	return err
}

func (d *door) Close() error {
	d.once.Do(func() { close(d.gone) })
	return nil
}
