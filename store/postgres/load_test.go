//go:build unix

package postgres

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
)

// Three processes run turns on the same sessions while one is killed, another
// is stopped for longer than its lease, and a third is cut off from the server:
// every question is answered once or reported as interrupted, no tool runs
// twice, and every log replays. The same through a pooler that lends connections
// for one transaction. With -soak both together run for that long.
func TestLoad(t *testing.T) {
	if c := os.Getenv(loadVariable); c != "" {
		work(t, c)
		return
	}
	if server == nil {
		t.Fatal("the server of the tests belongs to another process")
	}
	long, err := time.ParseDuration(flag.Lookup("soak").Value.String())
	must(t, err)
	bouncer, err := server.Bouncer()
	if errors.Is(err, pgtest.ErrNoBouncer) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
	defer bouncer.Stop()
	for _, c := range []struct {
		name string
		port int
	}{{"direct", server.Port}, {"pgbouncer", bouncer.Port}} {
		t.Run(c.name, func(t *testing.T) {
			l := newLoad(t, "load_"+c.name, c.port)
			l.run(long / 2)
			l.judge()
		})
	}
}

const (
	loadVariable  = "GOCLAW_TEST_LOAD"
	loadProcesses = 3
	loadLease     = time.Second
)

// job is what a process is told to do.
type job struct {
	Name  string // of the process, once for each start
	DSN   string
	Model string // the model's address
	Dir   string // of the diaries and the marks
	Begin time.Time
}

// load is three processes, and the network and the model that they use.
type load struct {
	t     *testing.T
	name  string // of the database
	dir   string
	model *loadModel
	begin time.Time
	rng   *rand.Rand

	mu      sync.Mutex
	places  []*place
	killed  map[string]bool // names of processes
	suffers map[string]int  // how often what was done
}

// place is where one process runs: it is started again when it was killed.
type place struct {
	n      int
	starts int
	proxy  *pgtest.Proxy
	name   string // of the process
	cmd    *exec.Cmd
	stop   func() error
	output *strings.Builder
}

func newLoad(t *testing.T, name string, port int) *load {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	name = fmt.Sprintf("%s_%x", name, seed)
	admin, err := pgx.Connect(bg, server.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	_, err = admin.Exec(bg, "CREATE DATABASE "+name)
	must(t, err)
	l := &load{t: t, name: name, dir: t.TempDir(), model: newLoadModel(t), begin: time.Now(), rng: rand.New(rand.NewPCG(seed, 1)),
		killed: map[string]bool{}, suffers: map[string]int{}}
	for i := range loadProcesses {
		proxy, err := pgtest.NewProxy(net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
		must(t, err)
		t.Cleanup(proxy.Close)
		p := &place{n: i, proxy: proxy}
		l.places = append(l.places, p)
		l.start(p)
	}
	return l
}

// start starts a process.
func (l *load) start(p *place) {
	p.starts++
	p.name = fmt.Sprintf("p%d.%d", p.n, p.starts)
	dsn := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&goclaw_lease=%v", url.UserPassword(pgtest.User, pgtest.Password), p.proxy.Addr, l.name, loadLease)
	conf, err := json.Marshal(job{Name: p.name, DSN: dsn, Model: l.model.URL, Dir: l.dir, Begin: l.begin})
	must(l.t, err)
	p.cmd = exec.Command(os.Args[0], "-test.run=^TestLoad$")
	p.cmd.Env = append(os.Environ(), loadVariable+"="+string(conf))
	p.output = &strings.Builder{}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	in, err := p.cmd.StdinPipe()
	must(l.t, err)
	p.stop = in.Close
	must(l.t, p.cmd.Start())
	cmd := p.cmd
	l.t.Cleanup(func() { _ = cmd.Process.Kill() })
}

// run disturbs the processes for so long, at least once each way, and then lets
// them finish.
func (l *load) run(long time.Duration) {
	l.awake()
	for round := 0; round == 0 || time.Since(l.begin) < long; round++ {
		order := l.rng.Perm(loadProcesses)
		var wg sync.WaitGroup
		for i, disturb := range []func(*place, time.Duration, bool){l.kill, l.pause, l.cut} {
			p, before, away, coin := l.places[order[i]], l.upTo(500*time.Millisecond), loadLease*5/4+l.upTo(loadLease), l.rng.IntN(2) == 0
			wg.Go(func() {
				time.Sleep(before)
				disturb(p, away, coin)
			})
		}
		wg.Wait()
		time.Sleep(l.upTo(time.Second))
	}
	for _, p := range l.places {
		must(l.t, p.stop())
	}
	for _, p := range l.places {
		if err := p.cmd.Wait(); err != nil {
			l.t.Errorf("process %s: %v\n%s", p.name, err, p.output)
		}
	}
}

// awake waits until every process has had an answer.
func (l *load) awake() {
	for _, p := range l.places {
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if b, _ := os.ReadFile(filepath.Join(l.dir, p.name+".diary")); strings.Contains(string(b), "\ndone ") {
				break
			}
			if time.Since(begin) > time.Minute {
				_ = p.cmd.Process.Kill()
				_ = p.cmd.Wait()
				l.t.Fatalf("process %s answers nothing\n%s", p.name, p.output)
			}
		}
	}
}

func (l *load) upTo(d time.Duration) time.Duration { return time.Duration(l.rng.Int64N(int64(d))) }

func (l *load) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.suffers[what]++
}

// kill kills a process, and starts it again.
func (l *load) kill(p *place, _ time.Duration, _ bool) {
	if err := p.cmd.Process.Kill(); err != nil {
		l.t.Error(err)
	}
	_ = p.cmd.Wait()
	l.mu.Lock()
	l.killed[p.name] = true
	l.mu.Unlock()
	l.count("killed")
	l.start(p)
}

// pause stops a process for a while.
func (l *load) pause(p *place, away time.Duration, _ bool) {
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := p.cmd.Process.Signal(s); err != nil {
			l.t.Errorf("%v: %v\n%s", s, err, p.output)
		}
		if s == syscall.SIGSTOP {
			time.Sleep(away)
		}
	}
	l.count("stopped")
}

// cut cuts a process off from the server for a while.
func (l *load) cut(p *place, away time.Duration, lose bool) {
	p.proxy.Silence()
	time.Sleep(away)
	p.proxy.Speak(lose)
	l.count("cut off")
}
