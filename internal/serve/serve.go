// Package serve is goclaw as a server: an API over HTTP for programs and for the
// page in it.
//
// A session has one stream of events (stream.go), made from its log and from what
// a turn in this process says between two records. The id of an event says how
// far a client has read, so that it can come back to any server that shares the
// store.
package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/compact"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
)

// Backend is what is served: sessions, and what the commands make of them. Its
// methods may be called at the same time. What they return is written as JSON.
type Backend interface {
	Store() session.Store
	// Find returns the session that ref names: its id or key.
	Find(ctx context.Context, ref string, trash bool) (session.Info, error)
	// List returns the sessions that q selects, with titles, and says where the
	// next ones begin ("": there are none).
	List(ctx context.Context, q url.Values) (infos []session.Info, next string, err error)
	Session(in session.Info) any
	Record(r session.Record) (json.RawMessage, error)
	Event(ev agent.Event) map[string]any
	Context(ctx context.Context, in session.Info) (json.RawMessage, error)
	Usage(ctx context.Context, in *session.Info, q url.Values) (any, error)
	Search(ctx context.Context, q url.Values) (any, error)
	Models(ctx context.Context) ([]string, error)
	// Begin begins a session; an empty key stands for a new one.
	Begin(ctx context.Context, h session.Header) (session.Info, error)
	// Choose has a session asked with the model of that name. goclaw, or no
	// name, is whichever it uses.
	Choose(ctx context.Context, in session.Info, model string) error
	// Turns returns what runs turns in a session. ask is asked before something
	// is done that needs permission. done is called when they are not needed now.
	Turns(ctx context.Context, in session.Info, ask tool.Approver) (t Turns, done func(), err error)
	// Continue returns the session in which to go on: in itself, or the
	// continuation of a mirror.
	Continue(ctx context.Context, in session.Info) (session.Info, error)
	// Planned and Compacted return a compaction as JSON.
	Planned(cut compact.Cut) any
	Compacted(rec session.Record, cut compact.Cut) any
}

// Turns run in one session.
type Turns interface {
	Run(ctx context.Context, in llm.Message) iter.Seq2[agent.Event, error]
	Compact(ctx context.Context, focus string) (agent.Recorded, compact.Cut, error)
	Plan(ctx context.Context, focus string) (compact.Cut, error)
	Undo(ctx context.Context) (session.Record, session.Info, error)
}

// Options are what a Server is made from.
type Options struct {
	Backend Backend
	Token   string
	Hosts   []string // names beside localhost that the server is called by
	Address string   // at which other servers with the same store reach it; "": there are none
	Version string
	Log     *slog.Logger // nil: nothing is logged
}

// Server answers requests.
type Server struct {
	b       Backend
	gate    *gate
	rate    *rate
	streams *streams
	turns   *running
	peers   *peers
	once    *once
	metrics *metrics
	version string
	log     *slog.Logger
	stop    context.Context // done when the server stops: streams end
	end     context.CancelFunc
	http    *http.Server
	routes  []string // as net/http writes them

	forms forms
}

// New returns a Server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	hosts := append([]string{"localhost", "127.0.0.1", "::1"}, o.Hosts...)
	for i := range hosts {
		hosts[i] = strings.ToLower(hosts[i])
	}
	s := &Server{
		b: o.Backend, gate: &gate{token: o.Token, hosts: hosts, now: time.Now}, rate: &rate{now: time.Now},
		streams: &streams{st: o.Backend.Store(), record: o.Backend.Record, of: map[session.ID]*stream{}},
		once:    &once{now: time.Now}, metrics: newMetrics(), version: o.Version, log: o.Log,
	}
	s.peers = &peers{st: o.Backend.Store(), own: o.Address, token: o.Token}
	s.streams.peers = s.peers
	s.turns = &running{server: s, of: map[session.ID]*turn{}}
	s.stop, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 5 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		ErrorLog:    slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		ConnContext: connContext,
	}
	return s
}

// LoginPath returns the path of a login link, which works once.
func (s *Server) LoginPath() string { return "/login?code=" + s.gate.link() }

// Serve answers on l until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(limit(l, maxConns))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown lets turns finish until ctx is done, and interrupts them then: what
// they said is recorded. Streams end when no turn runs any more.
func (s *Server) Shutdown(ctx context.Context) error {
	s.turns.drain(ctx)
	s.end()
	soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(soon)
	if err != nil {
		err = s.http.Close()
	}
	return err
}

// Handler returns what answers requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.routes = nil
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request) error) {
		s.routes = append(s.routes, pattern)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := f(w, r); err != nil {
				s.problem(w, r, err)
			}
		})
	}
	handle("GET /v1/openapi.json", s.openapi)
	about, turns := sessionsAPI{s}, turnsAPI{s}
	handle("GET /v1/sessions", about.list)
	handle("POST /v1/sessions", about.create)
	handle("GET /v1/sessions/{id}", about.get)
	handle("PATCH /v1/sessions/{id}", about.patch)
	handle("DELETE /v1/sessions/{id}", about.remove)
	handle("POST /v1/sessions/{id}/restore", about.restore)
	handle("POST /v1/sessions/{id}/fork", about.fork)
	handle("GET /v1/sessions/{id}/records", about.records)
	view := viewAPI{s}
	handle("GET /v1/sessions/{id}/transcript", view.transcript)
	handle("GET /v1/sessions/{id}/images/{seq}/{n}", view.image)
	handle("GET /v1/sessions/{id}/branches", view.branches)
	handle("POST /v1/sessions/{id}/branches", view.move)
	handle("GET /v1/sessions/{id}/context", about.context)
	handle("GET /v1/sessions/{id}/checkpoints", about.checkpoints)
	handle("GET /v1/sessions/{id}/usage", about.sessionUsage)
	handle("POST /v1/sessions/{id}/compact", turns.compact)
	handle("POST /v1/sessions/{id}/turns", turns.startTurn)
	handle("GET /v1/sessions/{id}/turns/current", turns.currentTurn)
	handle("DELETE /v1/sessions/{id}/turns/current", turns.stopTurn)
	handle("GET /v1/sessions/{id}/events", turns.events)
	handle("GET /v1/sessions/{id}/questions", turns.questions)
	handle("POST /v1/sessions/{id}/questions/{question}", turns.answer)
	handle("GET /v1/search", about.search)
	handle("GET /v1/usage", about.usage)
	handle("GET /v1/models", about.models)
	handle("POST /v1/chat/completions", completionsAPI{s}.complete)
	handle("POST /v1/login-links", s.newLink)
	handle("GET /metrics", s.writeMetrics)
	handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) error {
		return writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "version": s.version})
	})
	handle("GET /login", s.login)
	handle("/", func(w http.ResponseWriter, r *http.Request) error {
		if may := allowed(mux, r); may != "" {
			w.Header().Set("Allow", may)
			return wrong(http.StatusMethodNotAllowed, "%s is not for %s: it takes %s", r.URL.Path, r.Method, may)
		}
		return s.page(w, r)
	})
	return s.guard(mux)
}

// allowed returns the methods that there are for the path of a request.
func allowed(mux *http.ServeMux, r *http.Request) string {
	var out []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		other := *r
		other.Method = method
		if _, pattern := mux.Handler(&other); strings.HasPrefix(pattern, method+" ") {
			out = append(out, method)
		}
	}
	return strings.Join(out, ", ")
}

// open are the paths that need no token.
var open = map[string]bool{"/healthz": true, "/login": true}

// guard lets only those requests through that may be answered.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.metrics.request(time.Now())
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				s.log.Error("panic", "request", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		w = &timed{w}
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		known := s.gate.knows(r)
		if c, ok := r.Context().Value(connKey{}).(*conn); ok && known {
			c.known.Store(true)
		}
		var p *problem
		switch why := s.gate.foreign(r); {
		case why != "":
			p = wrong(http.StatusForbidden, "%s", why)
		case !s.rate.allow(r, known):
			h.Set("Retry-After", "1")
			p = wrong(http.StatusTooManyRequests, "too many requests: at most %d in a second", perSecond)
		case !open[r.URL.Path] && !known:
			h.Set("WWW-Authenticate", `Bearer realm="goclaw"`)
			p = wrong(http.StatusUnauthorized, "this needs the token of this server (Authorization: Bearer ...), or a login link")
		case r.ContentLength > maxBody:
			h.Set("Connection", "close")
			p = wrong(http.StatusRequestEntityTooLarge, "the body of the request is longer than %d bytes", maxBody)
		}
		if p != nil && p.Status == http.StatusUnauthorized && r.URL.Path == "/" {
			stranger(w, p.Status)
			return
		}
		if p != nil {
			s.problem(w, r, p)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}

// problem answers with an error.
func (s *Server) problem(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= 500 {
		s.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	s.metrics.status(p.Status)
	p.write(w)
}

// login gives whoever has a login link the cookie of the page.
func (s *Server) login(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet { // a program that only looks where the link leads
		return nil
	}
	if !s.gate.redeem(r.URL.Query().Get("code")) {
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			if s.gate.knows(r) { // an old link, in a browser that has its cookie
				http.Redirect(w, r, "/", http.StatusSeeOther)
			} else {
				stranger(w, http.StatusForbidden)
			}
			return nil
		}
		return wrong(http.StatusForbidden, "this link was used already or is too old: goclaw serve prints a new one")
	}
	http.SetCookie(w, s.gate.cookie())
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}

func (s *Server) newLink(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusCreated, map[string]any{"url": fmt.Sprintf("http://%s%s", r.Host, s.LoginPath())})
}

// once remembers the answers to requests that have an idempotency key, so that
// one that is sent again is not carried out again.
type once struct {
	now func() time.Time

	mu    sync.Mutex
	of    map[string]*answered
	order []*answered // as they came
}

// answered is an answer, or one that is being made.
type answered struct {
	key    string
	at     time.Time
	ready  chan struct{}
	status int
	body   any
	err    error
}

const (
	onceLife = 24 * time.Hour
	maxOnce  = 10_000
)

// do answers r with what f returns, which is called once for each idempotency
// key. Without a key it always is. What failed may be tried again.
func (o *once) do(r *http.Request, f func() (int, any, error)) (int, any, error) {
	key, err := idempotencyKey(r)
	if err != nil {
		return 0, nil, err
	}
	if key == "" {
		return f()
	}
	key = r.Method + " " + r.URL.Path + " " + key
	for {
		a, mine := o.take(key)
		if mine {
			defer o.settle(key, a)
			a.err = errors.New("the request failed") // if f panics
			a.status, a.body, a.err = f()
			return a.status, a.body, a.err
		}
		select {
		case <-a.ready:
			if a.err == nil {
				return a.status, a.body, nil
			}
		case <-r.Context().Done():
			return 0, nil, r.Context().Err()
		}
	}
}

// take returns the answer to the request with that key, and whether the caller
// has to make it.
func (o *once) take(key string) (a *answered, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if a := o.of[key]; a != nil && now.Sub(a.at) < onceLife {
		return a, false
	}
	if o.of == nil {
		o.of = map[string]*answered{}
	}
	for len(o.order) > 0 && (len(o.order) >= maxOnce || now.Sub(o.order[0].at) >= onceLife) {
		if old := o.order[0]; o.of[old.key] == old {
			delete(o.of, old.key)
		}
		o.order = o.order[1:]
	}
	a = &answered{key: key, at: now, ready: make(chan struct{})}
	o.of[key] = a
	o.order = append(o.order, a)
	return a, true
}

// settle tells those who wait for an answer that it is there.
func (o *once) settle(key string, a *answered) {
	o.mu.Lock()
	if a.err != nil && o.of[key] == a {
		delete(o.of, key)
	}
	o.mu.Unlock()
	close(a.ready)
}
