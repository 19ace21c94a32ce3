package serve

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Strangers who ask too much do not use up what is known clients', and many
// addresses cost little memory.
func TestRate(t *testing.T) {
	now := time.Unix(1, 0)
	l := &rate{now: func() time.Time { return now }}
	r := httptest.NewRequest("GET", "/", nil)
	asked := 0
	for l.allow(r, false) {
		asked++
	}
	if asked != burst {
		t.Errorf("%d requests were answered, want %d", asked, burst)
	}
	if !l.allow(r, true) {
		t.Error("a known client is refused because of a stranger")
	}
	now = now.Add(time.Second)
	for asked = 0; l.allow(r, false); asked++ {
	}
	if asked != perSecond {
		t.Errorf("a second later %d requests were answered, want %d", asked, perSecond)
	}
	for i := range 3 * maxBuckets {
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255)
		if !l.allow(r, false) {
			t.Fatalf("%s is refused", r.RemoteAddr)
		}
	}
	if len(l.of) > maxBuckets {
		t.Errorf("%d addresses are remembered", len(l.of))
	}
}

// Login links that nobody uses are forgotten, the oldest first.
func TestManyLinks(t *testing.T) {
	now := time.Unix(1, 0)
	g := &gate{now: func() time.Time { return now }}
	first := g.link()
	var last string
	for range 10_000 {
		now = now.Add(time.Millisecond)
		last = g.link()
	}
	if len(g.links) > maxLinks {
		t.Errorf("%d links are kept", len(g.links))
	}
	if g.redeem(first) || !g.redeem(last) || g.redeem(last) {
		t.Error("not the latest links work, once")
	}
	for range 10_000 {
		g.redeem(random())
	}
	if len(g.links) != maxLinks-1 {
		t.Errorf("guesses left %d links", len(g.links))
	}
}

// limitedServer serves on this machine as serve does, with at most that many
// connections and that much time for headers. Whoever sends Authorization is known.
func limitedServer(t *testing.T, most int, headers time.Duration) *limited {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	lim := limit(l, most)
	srv := &http.Server{
		ReadHeaderTimeout: headers,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				r.Context().Value(connKey{}).(*conn).known.Store(true)
			}
			io.WriteString(w, "ok")
		}),
		ConnContext: connContext,
	}
	go srv.Serve(lim)
	t.Cleanup(func() { srv.Close() })
	return lim
}

// dial connects to l and sends text.
func dial(t *testing.T, l net.Listener, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	io.WriteString(c, text)
	return c
}

// A connection that never finishes its headers ends.
func TestSlowHeaders(t *testing.T) {
	lim := limitedServer(t, 8, 50*time.Millisecond)
	io.ReadAll(dial(t, lim, "GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")) // until the server closes it
}

// As many connections as there may be keep no one out who has the token.
func TestConnections(t *testing.T) {
	const most = 8
	lim := limitedServer(t, most, time.Minute) // those who know the token may be slow here
	known := dial(t, lim, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: me\r\n\r\n")
	buf := make([]byte, 1000)
	if _, err := known.Read(buf); err != nil {
		t.Fatal(err)
	}
	for range 5 * most { // strangers who say nothing
		dial(t, lim, "")
	}
	io.WriteString(known, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: me\r\n\r\n")
	if _, err := known.Read(buf); err != nil {
		t.Errorf("a known client was thrown out: %v", err)
	}
	resp, err := http.Get("http://" + lim.Addr().String())
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("a new client: %v %v", resp, err)
	}
	lim.mu.Lock()
	defer lim.mu.Unlock()
	if len(lim.conns) > most {
		t.Errorf("%d connections are open", len(lim.conns))
	}
}

// A request with an idempotency key runs once, also if the first one fails or
// panics, and keys cost little memory.
func TestOnce(t *testing.T) {
	now := time.Unix(1, 0)
	o := &once{now: func() time.Time { return now }}
	ask := func(key string, f func() (int, any, error)) (any, error) {
		r := httptest.NewRequest("POST", "/x", nil)
		r.Header.Set("Idempotency-Key", key)
		_, v, err := o.do(r, f)
		return v, err
	}
	one := func() (int, any, error) { return 200, 1, nil }
	two := func() (int, any, error) { return 200, 2, nil }
	func() {
		defer func() { recover() }()
		ask("a", func() (int, any, error) { panic("no") })
	}()
	if _, err := ask("a", func() (int, any, error) { return 0, nil, io.EOF }); err != io.EOF {
		t.Errorf("after a panic: %v", err)
	}
	if v, err := ask("a", one); v != 1 || err != nil {
		t.Errorf("after an error: %v, %v", v, err)
	}
	if v, _ := ask("a", two); v != 1 {
		t.Errorf("asked again: %v", v)
	}
	for i := range 2 * maxOnce {
		ask(fmt.Sprint(i), one)
	}
	if len(o.of) > maxOnce || len(o.order) > maxOnce {
		t.Errorf("%d answers are kept", len(o.of))
	}
	if v, _ := ask(fmt.Sprint(2*maxOnce-1), two); v != 1 {
		t.Errorf("the latest, asked again: %v", v)
	}
	now = now.Add(onceLife)
	if v, _ := ask(fmt.Sprint(2*maxOnce-1), two); v != 2 {
		t.Errorf("a day later: %v", v)
	}
	if len(o.of) != 1 {
		t.Errorf("a day later %d answers are kept", len(o.of))
	}
}
