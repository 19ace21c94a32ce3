package postgres

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// write is what one append sends, and what came of it.
type write struct {
	id     string // of the session, as it is stored
	n      int64  // its number; 0: it is new
	after  session.Seq
	lock   string // the name of the lock that it is under, as it is stored
	fence  int64  // its fencing number; 0: it is under none
	values []string
	lines  []sqlstore.Line

	got  int64 // the number of the session; 0: nothing was appended
	err  error
	done chan struct{} // closed when got and err are known
	with *call         // that sends it; nil: it waits
}

// group is group commit: appends that come while others are on their way wait,
// and are sent together in one call of the function goclaw_append. One that
// comes alone is sent at once.
type group struct {
	db   *database
	work sync.WaitGroup

	mu      sync.Mutex
	waiting []*write
	senders int
	came    chan struct{} // closed and made again when a write has come
}

// Limits of a group. Two senders would keep the server busy while one waits for
// the sync of its commit. The others are there in case that one has much to send,
// or waits for another process; more would only make the groups smaller.
const (
	maxSenders    = 4
	maxGroup      = 64
	maxGroupBytes = 1 << 20
)

// call is one call of the function.
type call struct {
	cancel context.CancelFunc
	left   int // writes that are waited for
}

// send sends w and returns when it is known what came of it. If ctx is done
// first, the outcome is not known.
func (g *group) send(ctx context.Context, w *write) error {
	w.done = make(chan struct{})
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	if g.came != nil {
		close(g.came)
		g.came = nil
	}
	if g.senders < maxSenders {
		g.senders++
		g.work.Go(g.run)
	}
	g.mu.Unlock()
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		g.leave(w)
		return ctx.Err()
	}
}

// leave is called when nobody waits for w any more.
func (g *group) leave(w *write) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.with == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(o *write) bool { return o == w })
		return
	}
	if w.with.left--; w.with.left == 0 {
		w.with.cancel()
	}
}

// run sends what waits, until nothing does.
func (g *group) run() {
	for {
		ctx, cancel := context.WithCancel(context.Background())
		begin := time.Now()
		var ws []*write
		err := g.db.pool.lend(ctx, func(c *pgconn.PgConn) error {
			args := params(nil)
			ws, args = g.take(cancel)
			if ws == nil {
				return nil
			}
			return appendAll(ctx, c, ws, args)
		})
		if ws == nil && err != nil { // there is no connection
			ws, _ = g.take(cancel)
		}
		if err != nil && !lost(err) && len(ws) > 1 && ctx.Err() == nil {
			g.apart(ctx, ws)
		} else {
			settle(ws, err)
		}
		cancel()
		g.gather(len(ws), time.Since(begin)/4)
		g.mu.Lock()
		if len(g.waiting) == 0 {
			g.senders--
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// gather waits until n writes wait, if n were sent together before, but not for
// long. Without it the first writer to come back would be sent alone, and all
// others would wait for that. A single writer never waits here.
func (g *group) gather(n int, long time.Duration) {
	if n < 2 {
		return
	}
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		g.mu.Lock()
		if len(g.waiting) >= n {
			g.mu.Unlock()
			return
		}
		if g.came == nil {
			g.came = make(chan struct{})
		}
		came := g.came
		g.mu.Unlock()
		select {
		case <-came:
		case <-timer.C:
			return
		}
	}
}

// settle tells those who wait for ws what came of them.
func settle(ws []*write, err error) {
	for _, w := range ws {
		w.err = err
		close(w.done)
	}
}

// apart sends writes one by one, because one of them cannot be done.
func (g *group) apart(ctx context.Context, ws []*write) {
	for _, w := range ws {
		err := g.db.pool.lend(ctx, func(c *pgconn.PgConn) error {
			return appendAll(ctx, c, []*write{w}, together([]*write{w}))
		})
		settle([]*write{w}, err)
	}
}

// take takes writes that wait, and returns what is sent for them. They are in
// the order of their ids, so that the groups of several processes do not wait
// for each other's rows in a circle.
func (g *group) take(cancel context.CancelFunc) ([]*write, params) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for ; n < len(g.waiting) && n < maxGroup && size < maxGroupBytes; n++ {
		for _, l := range g.waiting[n].lines {
			size += len(l.Data)
		}
	}
	if n == 0 {
		return nil, nil
	}
	ws := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	c := &call{cancel: cancel, left: n}
	for _, w := range ws {
		w.with = c
	}
	slices.SortFunc(ws, func(a, b *write) int { return cmp.Compare(a.id, b.id) })
	return ws, together(ws)
}

// callAppend calls the function that schema.go describes.
const callAppend = "SELECT * FROM goclaw_append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"

// together returns the parameters of callAppend.
func together(ws []*write) params {
	var ns, afters, fences []int64
	var owners, seqs, sums []int32
	var locks, texts, ids, parents, types []string
	var data [][]byte
	for i, w := range ws {
		ns, afters, texts = append(ns, w.n), append(afters, int64(w.after)), append(texts, w.values...)
		locks, fences = append(locks, w.lock), append(fences, w.fence)
		for _, l := range w.lines {
			owners, seqs, sums = append(owners, int32(i+1)), append(seqs, int32(l.Seq)), append(sums, int32(l.Sum))
			ids, parents, types = append(ids, text(l.ID)), append(parents, text(l.Parent)), append(types, text(l.Type))
			data = append(data, l.Data)
		}
	}
	return params{ns, afters, locks, fences, texts, owners, seqs, sums, ids, parents, types, data}
}

// appendAll sends ws.
func appendAll(ctx context.Context, c *pgconn.PgConn, ws []*write, args params) error {
	i := 0
	_, err := query(ctx, c, func(r row) error {
		ws[i].got = r.Int(0)
		i++
		return nil
	}, callAppend, args...)
	return err
}
