package serve

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of a server. They are far beyond what a person or a few programs need.
const (
	maxBody    = 32 << 20 // bytes of a request: pictures are in it
	maxConns   = 4096
	perSecond  = 200 // requests of one address
	burst      = 1000
	maxBuckets = 10_000
	writeLimit = 30 * time.Second // for a client that does not read
	maxUnread  = 128 << 10        // bytes that the kernel keeps for it
	beat       = 15 * time.Second // between signs of life on a quiet stream
)

// rate limits how many requests an address may make.
type rate struct {
	now func() time.Time

	mu sync.Mutex
	of map[string]*bucket
}

type bucket struct {
	left float64
	at   time.Time
}

// allow reports whether the address of r may ask once more. Those who are known
// are counted apart, so that strangers at the same address do not use up what is
// theirs.
func (l *rate) allow(r *http.Request, known bool) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	if known {
		host = "known " + host
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.of[host]
	if b == nil {
		if len(l.of) >= maxBuckets {
			l.sweep(now)
		}
		if l.of == nil {
			l.of = map[string]*bucket{}
		}
		b = &bucket{left: burst, at: now}
		l.of[host] = b
	}
	b.left = min(b.left+now.Sub(b.at).Seconds()*perSecond, burst)
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// sweep forgets the addresses that have asked nothing for a while, or all if
// there are too many. mu is held.
func (l *rate) sweep(now time.Time) {
	for host, b := range l.of {
		if now.Sub(b.at) > time.Minute {
			delete(l.of, host)
		}
	}
	if len(l.of) >= maxBuckets {
		l.of = nil
	}
}

// limited is a listener with at most max connections at a time. If there is one
// more, the oldest of those that have not shown the token gives way to it; if all
// have, it is closed.
type limited struct {
	net.Listener
	max int

	mu    sync.Mutex
	conns map[*conn]bool
	count int64
}

func limit(l net.Listener, max int) *limited {
	return &limited{Listener: l, max: max, conns: map[*conn]bool{}}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if mine := l.admit(c); mine != nil {
			return mine, nil
		}
		c.Close()
	}
}

// admit returns c as one of the connections; nil if there is no room.
func (l *limited) admit(c net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= l.max {
		var oldest *conn
		for x := range l.conns {
			if !x.known.Load() && (oldest == nil || x.number < oldest.number) {
				oldest = x
			}
		}
		if oldest == nil {
			return nil
		}
		delete(l.conns, oldest)
		oldest.Conn.Close()
	}
	if c, ok := c.(*net.TCPConn); ok {
		_ = c.SetWriteBuffer(maxUnread)
	}
	l.count++
	mine := &conn{Conn: c, of: l, number: l.count}
	l.conns[mine] = true
	return mine
}

// conn is a connection.
type conn struct {
	net.Conn
	of     *limited
	number int64
	known  atomic.Bool // it has shown the token
}

// connKey is where the context of a request has its connection.
type connKey struct{}

func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// timed gives up on a client that does not read: each stretch of an answer has
// its time.
type timed struct{ http.ResponseWriter }

func (w *timed) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *timed) WriteHeader(status int) {
	w.extend()
	w.ResponseWriter.WriteHeader(status)
}

func (w *timed) Write(p []byte) (n int, err error) {
	const stretch = 64 << 10
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(p[:min(len(p), stretch)])
		n += m
		if p = p[m:]; err != nil || len(p) == 0 {
			return n, err
		}
	}
}

func (w *timed) extend() {
	http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeLimit))
}
