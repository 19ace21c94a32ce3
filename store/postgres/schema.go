package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"goclaw/session"
)

// schemaVersion is the version of the tables that this program writes.
const schemaVersion = 2

// schemaLock is the advisory lock under which tables are created: "gocl".
const schemaLock = 0x676f636c

// The tables. They are where the search path of the connection leads first.
//
// Text is compared byte by byte. The columns minute, agent, channel and words of
// a session are computed from the others for List. An append changes no column
// that has an index, except minute once in a minute, so that it need not touch
// the indexes.
//
// xact is the transaction that wrote a record: of two transactions the one that
// began first may end last, so that a feed reads again what was in progress. Its
// index is small, because records lie in the order in which they were written.
const createTables = `
CREATE TABLE goclaw_schema (version integer NOT NULL);
CREATE TABLE goclaw_sessions (
	n                 bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id                text COLLATE "C" NOT NULL UNIQUE,
	key               text COLLATE "C" NOT NULL,
	title             text COLLATE "C" NOT NULL,
	created           text COLLATE "C" NOT NULL,
	updated           text COLLATE "C" NOT NULL,
	trashed           text COLLATE "C",
	records           bigint NOT NULL,
	last              bigint NOT NULL,
	compactions       bigint NOT NULL,
	turns             bigint NOT NULL,
	provider          text COLLATE "C" NOT NULL,
	model             text COLLATE "C" NOT NULL,
	thinking          text COLLATE "C" NOT NULL,
	used              bigint NOT NULL,
	spent_input       bigint NOT NULL,
	spent_output      bigint NOT NULL,
	spent_cache_read  bigint NOT NULL,
	spent_cache_write bigint NOT NULL,
	leaf              text COLLATE "C" NOT NULL,
	keep_from         bigint NOT NULL,
	last_bend         bigint NOT NULL,
	parent            text COLLATE "C" NOT NULL,
	cwd               text COLLATE "C" NOT NULL,
	origin_program    text COLLATE "C" NOT NULL,
	origin_path       text COLLATE "C" NOT NULL,
	origin_key        text COLLATE "C" NOT NULL,
	origin_id         text COLLATE "C" NOT NULL,
	origin_seq        bigint NOT NULL,
	minute            text COLLATE "C" NOT NULL,
	agent             text COLLATE "C" NOT NULL,
	channel           text COLLATE "C" NOT NULL,
	words             text COLLATE "C" NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX goclaw_sessions_key ON goclaw_sessions (key);
CREATE INDEX goclaw_sessions_minute ON goclaw_sessions (minute) WHERE trashed IS NULL;
CREATE TABLE goclaw_records (
	session bigint NOT NULL,
	xact    bigint NOT NULL,
	seq     integer NOT NULL,
	crc32c  integer NOT NULL,
	id      text COLLATE "C" NOT NULL,
	parent  text COLLATE "C" NOT NULL,
	type    text COLLATE "C" NOT NULL,
	data    bytea NOT NULL,
	PRIMARY KEY (session, seq)
);
CREATE INDEX goclaw_records_id ON goclaw_records (session, id);
CREATE INDEX goclaw_records_xact ON goclaw_records USING brin (xact) WITH (pages_per_range = 16, autosummarize = on);
CREATE TABLE goclaw_moves (
	id   text COLLATE "C" PRIMARY KEY,
	xact bigint NOT NULL
);
CREATE INDEX goclaw_moves_xact ON goclaw_moves (xact);
CREATE SEQUENCE goclaw_fences;
CREATE TABLE goclaw_locks (
	name    text COLLATE "C" PRIMARY KEY,
	fence   bigint NOT NULL,
	who     text NOT NULL,
	pid     integer NOT NULL,
	process text NOT NULL,
	since   timestamptz NOT NULL,
	expires timestamptz NOT NULL
) WITH (fillfactor = 50);
INSERT INTO goclaw_schema VALUES (1);
`

// createAppend makes the function that appends to several sessions. The server
// keeps its plans for as long as a connection lasts, also behind a pooler, and
// its call is quick to parse.
//
// A session has one entry in ns (its number; 0: it is new), afters (the record
// that its log must end with), locks and fences (the lock that it is under, and
// the fencing number that this must have; 0: none), and in texts one for each
// column of allColumns. owners says to which session a record belongs: 1 is the
// first. The function returns the number of each session, in their order, NULL if
// nothing was appended to it.
//
// Rows are locked session by session, in the order in which they come. A plan
// may have been made while the table was small, when reading all of it costs as
// little as an index: the settings rule that out, and "trashed IS NULL" is not
// written so because the whole of goclaw_sessions_minute would do as well.
var createAppend = func() string {
	var set, values []string
	for i, c := range allColumns() {
		v := fmt.Sprintf("texts[k + %d]", i+1)
		if _, num := allValues(session.Info{})[i].(int64); num {
			v += "::bigint"
		}
		set, values = append(set, c+" = "+v), append(values, v)
	}
	return `
CREATE FUNCTION goclaw_append(ns bigint[], afters bigint[], locks text[], fences bigint[], texts text[],
	owners integer[], seqs integer[], sums integer[], ids text[], parents text[], types text[], lines bytea[])
RETURNS SETOF bigint LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $function$
DECLARE
	now_xact bigint := pg_current_xact_id()::text::bigint;
	k integer := 0;
	got bigint;
BEGIN
	FOR i IN 1 .. cardinality(ns) LOOP
		got := NULL;
		IF fences[i] <> 0 THEN
			PERFORM FROM goclaw_locks WHERE name = locks[i] AND fence = fences[i] FOR SHARE;
		END IF;
		IF fences[i] <> 0 AND NOT FOUND THEN
			NULL;
		ELSIF ns[i] = 0 THEN
			INSERT INTO goclaw_sessions (` + strings.Join(allColumns(), ", ") + `)
			VALUES (` + strings.Join(values, ", ") + `)
			ON CONFLICT (id) DO NOTHING RETURNING n INTO got;
		ELSE
			UPDATE goclaw_sessions SET ` + strings.Join(set, ", ") + `
			WHERE n = ns[i] AND last = afters[i] AND coalesce(trashed, '') = '' RETURNING n INTO got;
		END IF;
		ns[i] := got;
		RETURN NEXT got;
		k := k + ` + strconv.Itoa(len(set)) + `;
	END LOOP;
	INSERT INTO goclaw_records (session, xact, seq, crc32c, id, parent, type, data)
	SELECT ns[r.owner], now_xact, r.seq, r.crc32c, r.id, r.parent, r.type, r.data
	FROM unnest(owners, seqs, sums, ids, parents, types, lines) r (owner, seq, crc32c, id, parent, type, data)
	WHERE ns[r.owner] IS NOT NULL;
END $function$;
UPDATE goclaw_schema SET version = 2;
`
}()

// migrations lead from each version of the tables to the next, from none to the
// first.
var migrations = []string{createTables, createAppend}

// prepare looks at the tables, creates them if there are none, and brings older
// ones up to date.
func (db *database) prepare(ctx context.Context) error {
	return db.pool.lend(ctx, func(c *pgconn.PgConn) error {
		if err := suits(c); err != nil {
			return err
		}
		v, err := version(ctx, c)
		if err == nil && v < schemaVersion && !db.readOnly {
			err = migrate(ctx, c)
			allow(c, db.pool.answer)
			if err == nil {
				v, err = version(ctx, c)
			} else if v > 0 && code(err) == noPrivilege {
				return fmt.Errorf("its tables have schema %d, this version needs %d, and this user may not change them: start goclaw once as the user who owns them", v, schemaVersion)
			}
		}
		switch {
		case err != nil:
			return err
		case v == 0:
			return errors.New("it has no sessions of goclaw")
		case v > schemaVersion:
			return fmt.Errorf("it has schema %d, this version knows up to %d: a newer goclaw wrote it", v, schemaVersion)
		}
		return nil
	})
}

// suits returns an error if the server cannot hold the tables.
func suits(c *pgconn.PgConn) error {
	if e := c.ParameterStatus("server_encoding"); e != "UTF8" {
		return fmt.Errorf("the encoding of the database is %s: goclaw needs UTF8", e)
	}
	major, _, _ := strings.Cut(c.ParameterStatus("server_version"), ".")
	if v, err := strconv.Atoi(major); err == nil && v < 13 {
		return fmt.Errorf("the server is PostgreSQL %d: goclaw needs 13 or newer", v)
	}
	return nil
}

// version returns the version of the tables, 0 if there are none.
func version(ctx context.Context, c *pgconn.PgConn) (v int64, err error) {
	// The catalogue is asked, because a name that was not found is remembered for
	// a while, even if another process has made the table since.
	_, err = query(ctx, c, func(r row) error { v = r.Int(0); return nil },
		"SELECT count(*) FROM pg_tables WHERE tablename = 'goclaw_schema' AND schemaname = ANY(current_schemas(false))")
	if err != nil || v == 0 {
		return 0, err
	}
	_, err = query(ctx, c, func(r row) error { v = r.Int(0); return nil }, "SELECT version FROM goclaw_schema")
	return v, err
}

// migrate brings the tables up to date, unless another process has done so.
func migrate(ctx context.Context, c *pgconn.PgConn) error {
	allow(c, 0) // it may take any time, and wait for another process
	run := func(sql string) error { return c.Exec(ctx, sql).Close() }
	if err := run(fmt.Sprintf("BEGIN; SELECT pg_advisory_xact_lock(%d)", schemaLock)); err != nil {
		return err
	}
	v, err := version(ctx, c)
	for ; err == nil && v < schemaVersion; v++ {
		err = run(migrations[v])
	}
	if err != nil {
		return errors.Join(err, run("ROLLBACK"))
	}
	return run("COMMIT")
}
