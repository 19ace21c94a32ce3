// Command postgres measures the PostgreSQL store beside a plain INSERT of the
// same size, on the same server, with the same number of clients. It starts the
// server itself, and it and the load share this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

const (
	clients = 64
	size    = 1000 // bytes of a record, about
	each    = 5 * time.Second
	rounds  = 3
	least   = 0.5 // of the plain INSERT
)

var ctx = context.Background()

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure() error {
	server, err := pgtest.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	dsn := server.DSN("postgres")
	st, err := postgres.Open(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, clients), postgres.Options{})
	if err != nil {
		return err
	}
	defer st.Close()
	var plain, ours, ratios []float64
	for round := range rounds {
		p, err := inserts(dsn, round)
		if err != nil {
			return err
		}
		o, err := appends(st, round)
		if err != nil {
			return err
		}
		plain, ours, ratios = append(plain, p), append(ours, o), append(ratios, o/p)
	}
	ratio := median(ratios)
	fmt.Printf("%d clients, records of %d bytes, one server and the load on one machine; medians of %d rounds\n", clients, size, rounds)
	fmt.Printf("%-34s %8.0f a second\n%-34s %8.0f a second\n", "INSERT of one row", median(plain), "append of one record", median(ours))
	fmt.Printf("%-34s %8.2f (at least %.1f)\n", "  of the INSERT", ratio, least)
	if ratio < least {
		return errors.New("an append is slower than it may be")
	}
	return nil
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// run calls one for every client, again and again, and returns the calls a
// second.
func run(one func(client, n int) error) (float64, error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, clients)
	begin := time.Now()
	for c := range clients {
		wg.Go(func() {
			for n := 0; time.Since(begin) < each && errs[c] == nil; n++ {
				errs[c] = one(c, n)
				done.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(begin).Seconds(), errors.Join(errs...)
}

// inserts measures the INSERT.
func inserts(dsn string, round int) (float64, error) {
	conns := make([]*pgconn.PgConn, clients)
	for i := range conns {
		c, err := pgconn.Connect(ctx, dsn)
		if err != nil {
			return 0, err
		}
		defer c.Close(ctx)
		conns[i] = c
	}
	table := fmt.Sprint("plain", round)
	if err := conns[0].Exec(ctx, "CREATE TABLE "+table+" (n bigserial PRIMARY KEY, data bytea NOT NULL)").Close(); err != nil {
		return 0, err
	}
	data := []byte(strings.Repeat("x", size))
	return run(func(client, _ int) error {
		_, err := conns[client].ExecParams(ctx, "INSERT INTO "+table+" (data) VALUES ($1)", [][]byte{data}, []uint32{17}, []int16{1}, nil).Close()
		return err
	})
}

// appends measures the store: each client has a session of its own.
func appends(st session.Store, round int) (float64, error) {
	text := strings.Repeat("x", size-150) // the rest is the line around it
	leaf := make([]string, clients)
	return run(func(client, n int) error {
		id := session.ID(fmt.Sprintf("r%d-c%02d", round, client))
		if n == 0 {
			return st.Append(ctx, id, session.Record{Seq: 1, Time: time.Now(), Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}})
		}
		r := session.Record{Seq: session.Seq(n + 1), ID: fmt.Sprintf("%08d", n), Parent: leaf[client], Time: time.Now(), Body: sessiontest.User(text)}
		leaf[client] = r.ID
		return st.Append(ctx, id, r)
	})
}
