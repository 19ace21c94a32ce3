package wiretest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Piped returns a client whose requests, to any address, answer serves over
// connections in memory. In a bubble of testing/synctest time is then virtual:
// a slow machine does not look like a slow server. It lives as long as the test.
func Piped(t *testing.T, answer http.HandlerFunc) *http.Client {
	t.Helper()
	l := listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	var running sync.WaitGroup // in a bubble nothing may go on after the test
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		answer(w, r)
	})}
	running.Go(func() { _ = srv.Serve(l) })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = srv.Close()
		running.Wait()
	})
	return &http.Client{Transport: transport}
}

// listener accepts the ends of pipes.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { close(l.closed); return nil }
func (l listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
