package main

import (
	"net"
	"net/http"
	"sync/atomic"
)

// port is a port of this machine on which a test can put a server. Without one
// it hangs up on whoever calls.
type port struct {
	url string
	now atomic.Pointer[http.Handler]
}

// newPort reserves a port until the process ends.
func newPort() *port {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p := &port{url: "http://" + l.Addr().String()}
	go http.Serve(l, p)
	return p
}

func (p *port) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := p.now.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	panic(http.ErrAbortHandler)
}

// serve puts h on the port; nil takes it away.
func (p *port) serve(h http.Handler) {
	if h == nil {
		p.now.Store(nil)
		return
	}
	p.now.Store(&h)
}

// ports are where the program that TestMain builds looks for model servers. The
// real ones may be in use.
var ports = struct{ ollama, lmStudio, llamaCpp *port }{newPort(), newPort(), newPort()}

// portFlags are the linker's flags for a program with these ports, and time.
func portFlags() string {
	set := func(name string, p *port) string { return " -X goclaw/internal/local." + name + "=" + p.url }
	return set("OllamaURL", ports.ollama) + set("LMStudioURL", ports.lmStudio) + set("LlamaCppURL", ports.llamaCpp) +
		" -X goclaw/internal/local.Patience=10s" // the machine may be busy
}
