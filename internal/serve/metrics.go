package serve

import (
	"fmt"
	"net/http"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// metrics count what a server does, for Prometheus.
type metrics struct {
	started           time.Time
	requests, turns   atomic.Int64
	requestNS, turnNS atomic.Int64
	following         atomic.Int64
	mu                sync.Mutex
	problems          map[int]int64
}

func newMetrics() *metrics { return &metrics{started: time.Now(), problems: map[int]int64{}} }

func (m *metrics) request(began time.Time) {
	m.requests.Add(1)
	m.requestNS.Add(int64(time.Since(began)))
}

func (m *metrics) turn(began time.Time) {
	m.turns.Add(1)
	m.turnNS.Add(int64(time.Since(began)))
}

// follower counts someone who reads events, until the function is called.
func (m *metrics) follower() func() {
	m.following.Add(1)
	return func() { m.following.Add(-1) }
}

func (m *metrics) status(status int) {
	m.mu.Lock()
	m.problems[status]++
	m.mu.Unlock()
}

func (s *Server) writeMetrics(w http.ResponseWriter, _ *http.Request) error {
	m := s.metrics
	var b strings.Builder
	one := func(name, kind, help string, v any) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n%s %v\n", name, help, name, kind, name, v)
	}
	one("goclaw_requests_total", "counter", "Requests that were answered.", m.requests.Load())
	one("goclaw_request_seconds_total", "counter", "Time that requests took, streams included.", time.Duration(m.requestNS.Load()).Seconds())
	one("goclaw_turns_total", "counter", "Turns that have ended.", m.turns.Load())
	one("goclaw_turn_seconds_total", "counter", "Time that turns took.", time.Duration(m.turnNS.Load()).Seconds())
	one("goclaw_turns_running", "gauge", "Turns that run now.", s.turns.count())
	one("goclaw_followers", "gauge", "Clients that read events now.", m.following.Load())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	one("goclaw_heap_bytes", "gauge", "Memory in use.", mem.HeapAlloc)
	one("goclaw_goroutines", "gauge", "Goroutines.", runtime.NumGoroutine())
	one("goclaw_start_time_seconds", "gauge", "When the server started, in Unix time.", m.started.Unix())
	fmt.Fprintf(&b, "# HELP goclaw_problems_total Requests that failed, by status.\n# TYPE goclaw_problems_total counter\n")
	m.mu.Lock()
	var codes []int
	for code := range m.problems {
		codes = append(codes, code)
	}
	sort.Ints(codes)
	for _, code := range codes {
		fmt.Fprintf(&b, "goclaw_problems_total{status=\"%d\"} %d\n", code, m.problems[code])
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := w.Write([]byte(b.String()))
	return err
}

// count returns how many turns run now.
func (rs *running) count() (n int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, t := range rs.of {
		if !t.over() {
			n++
		}
	}
	return n
}
