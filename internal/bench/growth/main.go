// Command growth measures how large a PostgreSQL database of sessions becomes:
// bytes of each record and session in tables and indexes, and of the server's log
// for each append. It starts the server itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/internal/pgtest"
	"goclaw/llm/llmtest"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

var (
	records = flag.Int("records", 1_000_000, "how many records to write")
	each    = flag.Int("each", 100, "records of a session")
	script  = flag.String("sql", "", "a file of statements to run first, such as those that partition a table")
)

const appends = 20_000 // of one record each, for the server's log

var ctx = context.Background()

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure() error {
	server, err := pgtest.Start("max_wal_size=4GB", "synchronous_commit=off")
	if err != nil {
		return err
	}
	defer server.Stop()
	st, err := postgres.Open(ctx, server.DSN("postgres"), postgres.Options{})
	if err != nil {
		return err
	}
	defer st.Close()
	c, err := pgconn.Connect(ctx, server.DSN("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	if *script != "" {
		sql, err := os.ReadFile(*script)
		if err != nil {
			return err
		}
		if err := c.Exec(ctx, string(sql)).Close(); err != nil {
			return err
		}
	}
	begin := time.Now()
	bytes, err := fill(st)
	if err != nil {
		return err
	}
	sessions := *records / *each
	fmt.Printf("%d records in %d sessions, lines of %d bytes on average, written in %.0f s\n", *records, sessions, bytes/int64(*records), time.Since(begin).Seconds())
	for _, sql := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if err := c.Exec(ctx, sql).Close(); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		what, sql string
		of        int
	}{
		{"a record: the table", "pg_relation_size('goclaw_records')", *records},
		{"  what is too long for it (TOAST)", "pg_table_size('goclaw_records') - pg_relation_size('goclaw_records')", *records},
		{"  the index of numbers", "pg_relation_size('goclaw_records_pkey')", *records},
		{"  the index of ids", "pg_relation_size('goclaw_records_id')", *records},
		{"  the index of transactions", "pg_relation_size('goclaw_records_xact')", *records},
		{"  all", "pg_total_relation_size('goclaw_records')", *records},
		{"a session: the table", "pg_table_size('goclaw_sessions')", sessions},
		{"  its indexes", "pg_indexes_size('goclaw_sessions')", sessions},
		{"a lock", "pg_total_relation_size('goclaw_locks')", 0},
		{"the database", "pg_database_size('postgres')", 0},
	} {
		n, err := number(c, "SELECT "+part.sql)
		if err != nil {
			return err
		}
		fmt.Printf("%-36s %8.1f MB", part.what, float64(n)/1e6)
		if part.of > 0 {
			fmt.Printf(" %8.1f bytes each", float64(n)/float64(part.of))
		}
		fmt.Println()
	}
	if err := logged(server, st, c); err != nil {
		return err
	}
	return turns(server, st)
}

// number returns the number that a statement selects.
func number(c *pgconn.PgConn, sql string) (n int64, err error) {
	rs, err := c.Exec(ctx, sql).ReadAll()
	if err == nil {
		_, err = fmt.Sscan(string(rs[0].Rows[0][0]), &n)
	}
	return n, err
}

// fill writes the records, and returns how many bytes their lines have.
func fill(st *postgres.Store) (int64, error) {
	const workers = 4
	sizes, errs := make([]int64, workers), make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for i := w; i < *records / *each && errs[w] == nil; i += workers {
				var recs []session.Record
				for n := range *each {
					recs = append(recs, record(rng, session.ID(fmt.Sprintf("01a1e2ad-e9a6-79ba-9c25-%012d", i)), n, length(rng)))
				}
				for half := range 2 { // as several appends would
					part := recs[half*len(recs)/2 : (half+1)*len(recs)/2]
					errs[w] = st.Append(ctx, session.ID(recs[0].Body.(session.Header).ID), part...)
					if errs[w] != nil {
						return
					}
				}
				for _, r := range recs {
					if m, ok := r.Body.(session.Message); ok {
						sizes[w] += int64(len(m.Text())) + 190 // the line around it
					}
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for w := range workers {
		total += sizes[w]
		if errs[w] != nil {
			return 0, errs[w]
		}
	}
	return total, nil
}

// length returns how many bytes something said has: most is short, and a few
// results of tools are long.
func length(rng *rand.Rand) int {
	switch n := rng.IntN(100); {
	case n < 40:
		return 50 + rng.IntN(300)
	case n < 75:
		return 300 + rng.IntN(1200)
	case n < 97:
		return 1500 + rng.IntN(4000)
	}
	return 10_000 + rng.IntN(30_000)
}

// record returns record n of a session; the first is its header.
func record(rng *rand.Rand, id session.ID, n, size int) session.Record {
	at := sessiontest.Start.Add(time.Duration(n) * time.Second)
	if n == 0 {
		return session.Record{Seq: 1, Time: at, Body: session.Header{ID: id, Key: session.Key("main:cli:" + id), Version: session.Version}}
	}
	name := func(n int) string { return fmt.Sprintf("%08x", n*2654435761) }
	parent := ""
	if n > 1 {
		parent = name(n - 1)
	}
	return session.Record{Seq: session.Seq(n + 1), ID: name(n), Parent: parent, Time: at, Body: sessiontest.User(say(rng, size))}
}

// say returns a text of size bytes, which compresses as prose does.
func say(rng *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() < size {
		n := rng.IntN(4000)
		n = n * n / 4000 // some words are more frequent
		fmt.Fprintf(&b, "%s%s ", syllables[n%len(syllables)], syllables[n/len(syllables)%len(syllables)])
	}
	return b.String()[:size]
}

var syllables = strings.Fields(`the re in con de pro per com un dis ex en sub inter tion ment ness able er ing ed ly ful less ist ism ity
ous al ic an ar or ive ate en ize fy ward wise ship hood dom age ance ence ant ent ary ory ess ette ine ish like most some`)

// logged measures the server's log and its processor time for appends of one
// record, by 16 sessions at a time.
func logged(server *pgtest.Server, st *postgres.Store, c *pgconn.PgConn) error {
	for _, size := range []int{300, 1000, 4000} {
		before, err := number(c, "SELECT pg_current_wal_insert_lsn() - '0/0'")
		if err != nil {
			return err
		}
		const writers = 16
		used := server.CPU()
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(w), uint64(size)))
				id := session.ID(fmt.Sprintf("w%d-%d", size, w))
				for n := 0; n < appends/writers && errs[w] == nil; n++ {
					errs[w] = st.Append(ctx, id, record(rng, id, n, size))
				}
			})
		}
		wg.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		after, err := number(c, "SELECT pg_current_wal_insert_lsn() - '0/0'")
		if err != nil {
			return err
		}
		fmt.Printf("an append of %4d bytes: %d bytes of the server's log, %s of processor time of the server\n", size, (after-before)/appends, share(server.CPU()-used, appends))
	}
	hot, err := number(c, "SELECT (100 * n_tup_hot_upd / greatest(n_tup_upd, 1)) FROM pg_stat_user_tables WHERE relname = 'goclaw_sessions'")
	if err == nil {
		fmt.Printf("updates of sessions that touched no index: %d %%\n", hot)
	}
	return err
}

// turns measures the processor time of the server for a turn without tools: the
// lock, what is read, three records, and the notification.
func turns(server *pgtest.Server, st *postgres.Store) error {
	const keys, each = 16, 125
	r := runner.Simple(st, runner.Model{Provider: llmtest.New(), Name: "test/echo", Window: 8000})
	used, errs := server.CPU(), make([]error, keys)
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for n := 0; n < each && errs[k] == nil; n++ {
				for _, err := range r.Say(ctx, session.Key(fmt.Sprint("bench:cli:", k)), "hello") {
					errs[k] = err
				}
			}
		})
	}
	wg.Wait()
	fmt.Printf("a turn: %s of processor time of the server\n", share(server.CPU()-used, keys*each))
	return errors.Join(errs...)
}

// share returns the n-th part of d, for printing.
func share(d time.Duration, n int) string {
	return fmt.Sprint((d / time.Duration(n)).Round(time.Microsecond))
}
