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

// memories are the stores in memory, by dir.
var memories sync.Map

// openMemory opens a handle to the store of dir.
func openMemory(dir string) (session.Store, error) {
	m, _ := memories.LoadOrStore(dir, memory.New())
	return &handle{Store: m.(*memory.Store), closed: make(chan struct{})}, nil
}

// handle is a store in memory that can be closed and opened again.
type handle struct {
	*memory.Store
	once   sync.Once
	closed chan struct{}
}

func (h *handle) check(ctx context.Context) error {
	select {
	case <-h.closed:
		return session.ErrClosed
	default:
		return ctx.Err()
	}
}

func (h *handle) Append(ctx context.Context, id session.ID, recs ...session.Record) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	return h.Store.Append(ctx, id, recs...)
}

func (h *handle) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return guarded(ctx, h, h.Store.Read(ctx, id, after))
}

func (h *handle) List(ctx context.Context, q session.Query) iter.Seq2[session.Info, error] {
	return guarded(ctx, h, h.Store.List(ctx, q))
}

func guarded[T any](ctx context.Context, h *handle, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := h.check(ctx); err != nil {
			var none T
			yield(none, err)
			return
		}
		seq(yield)
	}
}

func (h *handle) Delete(ctx context.Context, id session.ID) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	return h.Store.Delete(ctx, id)
}

func (h *handle) Restore(ctx context.Context, id session.ID) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	return h.Store.Restore(ctx, id)
}

func (h *handle) Purge(ctx context.Context, id session.ID) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	return h.Store.Purge(ctx, id)
}

func (h *handle) Lock(ctx context.Context, name, who string) (func(), error) {
	if err := h.check(ctx); err != nil {
		return nil, err
	}
	return h.Store.Lock(ctx, name, who)
}

func (h *handle) Wait(ctx context.Context, id session.ID, after session.Seq) error {
	if err := h.check(ctx); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-h.closed:
			cancel()
		case <-inner.Done():
		}
	}()
	err := h.Store.Wait(inner, id, after)
	if closed := h.check(ctx); closed != nil {
		return closed
	}
	return err
}

func (h *handle) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}
