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
	srv := &http.Server{Handler: answer, ConnState: func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew: // in Serve, which is counted: no connection is new once it has returned
			running.Add(1)
		case http.StateHijacked, http.StateClosed: // its request was served
			running.Done()
		}
	}}
	running.Go(func() { _ = srv.Serve(l) })
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-l.closed:
			return nil, net.ErrClosed
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
