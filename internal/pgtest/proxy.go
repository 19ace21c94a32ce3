package pgtest

import (
	"net"
	"sync"
)

// Proxy passes bytes between clients and a server, until it is told to keep
// silent: then nothing comes through, and nobody is told.
type Proxy struct {
	Addr   string // where clients connect
	target string
	listen net.Listener

	mu     sync.Mutex
	silent chan struct{} // closed when the silence ends; nil: there is none
	conns  map[net.Conn]bool
	closed bool
}

// NewProxy returns a proxy for a server. The caller must call Close.
func NewProxy(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, listen: l, conns: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

func (p *Proxy) serve() {
	for {
		c, err := p.listen.Accept()
		if err != nil {
			return
		}
		go p.pass(c)
	}
}

// pass connects a client.
func (p *Proxy) pass(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	p.wait()
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.keep(server) {
		return
	}
	defer p.drop(server)
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			p.copy(way[1], way[0])
			done <- struct{}{}
		}()
	}
	<-done
}

// copy passes on what comes, or holds it back during a silence.
func (p *Proxy) copy(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.wait()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns when there is no silence.
func (p *Proxy) wait() {
	p.mu.Lock()
	silent := p.silent
	p.mu.Unlock()
	if silent != nil {
		<-silent
	}
}

// Silence has nothing come through from now on. Connections stay open, and new
// ones are accepted.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent == nil {
		p.silent = make(chan struct{})
	}
}

// Speak ends the silence: what was held back arrives late, or, if lose is set,
// never, and its connections are closed.
func (p *Proxy) Speak(lose bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if lose {
		for c := range p.conns {
			c.Close()
		}
	}
	if p.silent != nil {
		close(p.silent)
		p.silent = nil
	}
}

// keep notes an open connection. It is closed, and keep returns false, if the
// proxy has been closed.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	c.Close()
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listen.Close()
	p.Speak(true)
}
