package pgtest

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A pgbouncer and a proxy in front of a server: a silence loses nothing by
// itself, and pgbouncer refuses a wrong password.
func TestBouncerAndProxy(t *testing.T) {
	s, err := Start("fsync=off")
	if errors.Is(err, ErrNone) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
	defer s.Stop()
	b, err := s.Bouncer()
	if errors.Is(err, ErrNoBouncer) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
	defer b.Stop()
	ctx := t.Context()
	if _, err := pgconn.Connect(ctx, strings.Replace(b.TCP("postgres"), "s3cret", "guess", 1)); err == nil {
		t.Error("a wrong password is let in")
	}
	config, err := pgconn.ParseConfig(b.TCP("postgres"))
	must(t, err)
	p, err := NewProxy(net.JoinHostPort("127.0.0.1", strconv.Itoa(b.Port)))
	must(t, err)
	defer p.Close()
	config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.Addr)
	}
	c, err := pgconn.ConnectConfig(ctx, config)
	must(t, err)
	defer c.Close(ctx)
	must(t, c.Exec(ctx, "CREATE TABLE x (n int)").Close())
	p.Silence()
	done := make(chan error, 1)
	go func() { done <- c.Exec(ctx, "INSERT INTO x VALUES (1)").Close() }()
	select {
	case err := <-done:
		t.Errorf("a statement comes through a silence: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Speak(false)
	must(t, <-done)
	p.Silence()
	go func() { done <- c.Exec(ctx, "INSERT INTO x VALUES (2)").Close() }()
	p.Speak(true)
	if err := <-done; err == nil {
		t.Error("a connection outlives the loss of it")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCPU: the processor time of the server grows with what it does, and what
// its ended processes have used stays in it.
func TestCPU(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc here")
	}
	s, err := Start("fsync=off")
	if errors.Is(err, ErrNone) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
	defer s.Stop()
	before := s.CPU()
	_, err = s.SQL("SELECT sum(sqrt(n)) FROM generate_series(1, 2000000) n")
	must(t, err)
	if after := s.CPU(); after <= before {
		t.Errorf("%s before a query, %s after it", before, after)
	}
}
