package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/internal/bench/overhead"
	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

// execute runs statements.
func execute(dsn, sql string) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return c.Exec(ctx, sql).Close()
}

// turns measures the overhead of a turn.
func turns(_ *pgtest.Server, st *postgres.Store) ([]figure, error) {
	dir, err := os.MkdirTemp("", "bench-postgres")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	before, after, end, err := overhead.Turns(st, dir, 45)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("turn on %dk tokens: ", overhead.History/1000)
	return []figure{
		{what: name + "input to request on the wire", got: ms(before), form: "%.1f ms"},
		{what: name + "end of answer to its record", got: ms(after), form: "%.1f ms"},
		{what: name + "release of the lock", got: ms(end), form: "%.1f ms"},
		{what: name + "overhead in all", got: ms(before) + ms(after) + ms(end), form: "%.1f ms", most: 15},
	}, nil
}

// restores measures opening sessions whose contexts are of the same size.
func restores(_ *pgtest.Server, st *postgres.Store) ([]figure, error) {
	sizes := []int{1000, *records}
	took := make([][]time.Duration, len(sizes))
	for i, n := range sizes {
		if err := fill(st, session.ID(fmt.Sprint("long", i)), n); err != nil {
			return nil, err
		}
	}
	for range 31 {
		for i, n := range sizes {
			begin := time.Now()
			s, err := session.Open(ctx, st, session.ID(fmt.Sprint("long", i)))
			took[i] = append(took[i], time.Since(begin))
			if err != nil {
				return nil, err
			}
			if s.Records != n || int(s.KeepFrom) < n-100 {
				return nil, fmt.Errorf("a session of %d records is restored with %d, from %d on", n, s.Records, s.KeepFrom)
			}
		}
	}
	short, long := ms(took[0]), ms(took[1])
	return []figure{
		{what: fmt.Sprintf("restoring a session of %d records", sizes[0]), got: short, form: "%.2f ms"},
		{what: fmt.Sprintf("restoring a session of %d records", sizes[1]), got: long, form: "%.2f ms"},
		{what: "  of the former", got: long / short, form: "%.2f", most: 3},
	}, nil
}

// fill appends n records, of which a compaction near the end leaves the last few
// in the context.
func fill(st session.Store, id session.ID, n int) error {
	const kept, batch = 60, 2000
	at, text := sessiontest.Start, strings.Repeat("some words ", 30)
	recs := []session.Record{{Seq: 1, Time: at, Body: session.Header{ID: id, Key: session.Key(id), Version: session.Version}}}
	name := func(seq session.Seq) string { return fmt.Sprintf("%08d", seq) }
	for seq := session.Seq(2); seq <= session.Seq(n); seq++ {
		r := session.Record{Seq: seq, ID: name(seq), Time: at.Add(time.Duration(seq) * time.Second)}
		if seq > 2 {
			r.Parent = name(seq - 1)
		}
		switch {
		case seq == session.Seq(n-kept/2):
			r.Body = session.Compaction{Summary: text, FirstKept: name((seq - kept) &^ 1)}
		case seq%2 == 0:
			r.Body = sessiontest.User(text)
		default:
			r.Body = sessiontest.Answer(text)
		}
		if recs = append(recs, r); len(recs) == batch || seq == session.Seq(n) {
			if err := st.Append(ctx, id, recs...); err != nil {
				return err
			}
			recs = recs[:0]
		}
	}
	return nil
}

// copies makes many sessions from the one called model, one a second before it.
const copies = `INSERT INTO goclaw_sessions (%[1]s)
SELECT %[2]s FROM goclaw_sessions, generate_series(1, %[3]d) i, LATERAL (SELECT to_char(updated::timestamp - i * interval '1 second', 'YYYY-MM-DD"T"HH24:MI:SS.US000"Z"') AS at) t WHERE id = 'model';
ANALYZE goclaw_sessions`

// lists measures the list of the newest sessions.
func lists(server *pgtest.Server, st *postgres.Store) ([]figure, error) {
	const newest = 50
	model := session.Record{Seq: 1, Time: time.Now(), Body: session.Header{ID: "model", Key: "main:cli:model", Version: session.Version}}
	if err := st.Append(ctx, "model", model); err != nil {
		return nil, err
	}
	if err := manySessions(server.DSN("postgres")); err != nil {
		return nil, err
	}
	var took []time.Duration
	for range 31 {
		begin, n := time.Now(), 0
		for _, err := range st.List(ctx, session.Query{Limit: newest}) {
			if err != nil {
				return nil, err
			}
			n++
		}
		took = append(took, time.Since(begin))
		if n != newest {
			return nil, fmt.Errorf("%d sessions are listed, want %d", n, newest)
		}
	}
	return []figure{{what: fmt.Sprintf("the newest %d of %d sessions", newest, *sessions), got: ms(took), form: "%.1f ms", most: 20}}, nil
}

// manySessions adds rows to the table of sessions.
func manySessions(dsn string) error {
	c, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	var columns, values []string
	res := c.ExecParams(ctx, `SELECT attname::text FROM pg_attribute WHERE attrelid = 'goclaw_sessions'::regclass AND attnum > 0 AND attname <> 'n'`, nil, nil, nil, nil)
	for res.NextRow() {
		name := string(res.Values()[0])
		value := map[string]string{"id": "id || i", "key": "key || i", "updated": "t.at", "created": "t.at", "minute": "left(t.at, 16)", "words": "words || i"}[name]
		if value == "" {
			value = name
		}
		columns, values = append(columns, name), append(values, value)
	}
	if _, err := res.Close(); err != nil {
		return err
	}
	if len(columns) == 0 {
		return errors.New("there are no sessions")
	}
	return c.Exec(ctx, fmt.Sprintf(copies, strings.Join(columns, ", "), strings.Join(values, ", "), *sessions)).Close()
}
