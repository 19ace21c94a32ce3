package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

const (
	clients = 64
	size    = 1000 // bytes of a record, about
)

// appends measures pgbench's INSERT and our append, in turns.
func appends(server *pgtest.Server, st *postgres.Store) ([]figure, error) {
	var plain, ours, ratios, plainCPU, ourCPU []float64
	for round := range *rounds {
		begin := server.CPU()
		p, client, err := inserts(server, round)
		if err != nil {
			return nil, err
		}
		took := (server.CPU() - begin + client).Seconds()
		plainCPU = append(plainCPU, 1e6*took/(p*each.Seconds()))
		begin = server.CPU() + own()
		o, err := speak(st, round)
		if err != nil {
			return nil, err
		}
		took = (server.CPU() + own() - begin).Seconds()
		ourCPU = append(ourCPU, 1e6*took/(o*each.Seconds()))
		plain, ours, ratios = append(plain, p), append(ours, o), append(ratios, o/p)
	}
	return []figure{
		{what: fmt.Sprintf("pgbench, INSERT of one row, %d clients, a second", clients), got: median(plain), form: "%.0f"},
		{what: fmt.Sprintf("append of one record, %d sessions, a second", clients), got: median(ours), form: "%.0f"},
		{what: "  of the INSERT", got: median(ratios), form: "%.2f", least: 0.5},
		{what: "CPU of an INSERT, server and client", got: median(plainCPU), form: "%.0f µs"},
		{what: "CPU of an append, server and client", got: median(ourCPU), form: "%.0f µs"},
	}, nil
}

var tps = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)

// inserts has pgbench insert rows, and returns how many a second, and what CPU
// time it took itself.
func inserts(server *pgtest.Server, round int) (float64, time.Duration, error) {
	bench := filepath.Join(server.Bin, "pgbench")
	if _, err := os.Stat(bench); err != nil {
		return 0, 0, fmt.Errorf("pgbench is not beside the server (Debian has it in the package postgresql): %w", err)
	}
	dir, err := os.MkdirTemp("", "bench-postgres")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	table, dsn := fmt.Sprint("plain", round), server.DSN("postgres")
	script := filepath.Join(dir, "insert.sql")
	if err := errors.Join(
		execute(dsn, "CREATE TABLE "+table+" (n bigserial PRIMARY KEY, data bytea NOT NULL)"),
		os.WriteFile(script, fmt.Appendf(nil, "INSERT INTO %s (data) VALUES ('%s');\n", table, strings.Repeat("x", size)), 0o600),
	); err != nil {
		return 0, 0, err
	}
	cmd := exec.Command(bench, "--no-vacuum", fmt.Sprint("--client=", clients), "--jobs=2", fmt.Sprint("--time=", int(each.Seconds())), "--file="+script, dsn)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w: %s", err, out)
	}
	m := tps.FindSubmatch(out)
	if m == nil {
		return 0, 0, fmt.Errorf("pgbench says: %s", out)
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	return n, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), err
}

// speak appends, each client to a session of its own, and returns how many
// appends there were in a second.
func speak(st session.Store, round int) (float64, error) {
	text := strings.Repeat("x", size-150) // the rest is the line around it
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	begin := time.Now()
	for c := range clients {
		wg.Go(func() {
			id := session.ID(fmt.Sprintf("r%d-c%02d", round, c))
			r := session.Record{Seq: 1, Time: begin, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}
			for time.Since(begin) < *each && errs[c] == nil {
				errs[c] = st.Append(ctx, id, r)
				done.Add(1)
				r = session.Record{Seq: r.Seq + 1, ID: fmt.Sprintf("%08d", r.Seq), Parent: r.ID, Time: time.Now(), Body: sessiontest.User(text)}
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds(), errors.Join(errs...)
}
