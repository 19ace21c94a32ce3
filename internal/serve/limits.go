package serve

import (
	"net"
	"net/http"
	"sync"
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

// allow reports whether the address of r may ask once more.
func (l *rate) allow(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.of[host]
	if b == nil {
		if l.of == nil || len(l.of) >= maxBuckets {
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

// limited is a listener with at most maxConns connections at a time: others
// wait.
type limited struct {
	net.Listener
	slots chan struct{}
}

func limit(l net.Listener) net.Listener { return &limited{l, make(chan struct{}, maxConns)} }

func (l *limited) Accept() (net.Conn, error) {
	l.slots <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &conn{Conn: c, slots: l.slots}, nil
}

type conn struct {
	net.Conn
	slots chan struct{}
	once  sync.Once
}

func (c *conn) Close() error {
	c.once.Do(func() { <-c.slots })
	return c.Conn.Close()
}
