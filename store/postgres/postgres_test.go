package postgres

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/storetest"
)

// dsnVariable and poolVariable tell the processes that tests start where the
// server is, and the pooler in front of it if there is one.
const (
	dsnVariable  = "GOCLAW_TEST_POSTGRES"
	poolVariable = "GOCLAW_TEST_POOLER"
)

// server is the server of all tests; nil if there is none.
var server *pgtest.Server

func TestMain(m *testing.M) {
	if os.Getenv(dsnVariable) == "" {
		s, err := pgtest.Start("fsync=off")
		switch {
		case errors.Is(err, pgtest.ErrNone) && os.Getenv("GOCLAW_NO_SKIP") == "":
			fmt.Println("skipped:", err)
			return
		case err != nil:
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		server = s
		os.Setenv(dsnVariable, s.DSN("postgres"))
	}
	code := storetest.Code(m, openDir)
	if server != nil {
		server.Stop()
	}
	os.Exit(code)
}

// dsnOf returns the DSN of the schema for a folder, which it makes.
func dsnOf(dir string) string {
	dsn := os.Getenv(dsnVariable)
	h := fnv.New64a()
	h.Write([]byte(dir))
	name := fmt.Sprintf("t%x", h.Sum64())
	if os.Getenv(poolVariable) != "" {
		return databaseOf(name)
	}
	dsn, base := dsn+"&search_path="+name+"&application_name="+name, dsn
	if _, made := schemas.LoadOrStore(name, true); made {
		return dsn
	}
	c, err := pgx.Connect(bg, base)
	if err == nil {
		_, err = c.Exec(bg, "CREATE SCHEMA IF NOT EXISTS "+name)
		c.Close(bg)
	}
	if err != nil && code(err) != uniqueViolation { // two processes may make it at once
		panic(err)
	}
	return dsn
}

// schemas are those that dsnOf has made.
var schemas sync.Map

// opened is a store whose records a test may change behind its back.
type opened struct {
	*Store
	dsn string
}

// Tamper implements storetest.Tamperer.
func (o opened) Tamper(text, by string) error {
	config, err := pgx.ParseConfig(o.dsn)
	if err != nil {
		return err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // there may be a pooler
	c, err := pgx.ConnectConfig(bg, config)
	if err != nil {
		return err
	}
	defer c.Close(bg)
	tag, err := c.Exec(bg, "UPDATE goclaw_records SET data = replace(encode(data, 'escape'), $1, $2)::bytea WHERE position($3::bytea in data) > 0", text, by, []byte(text))
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%q is in %d records", text, tag.RowsAffected())
	}
	return err
}

// Settle implements storetest.Settler.
func (o opened) Settle() error {
	c, err := pgx.Connect(bg, os.Getenv(dsnVariable))
	if err != nil {
		return err
	}
	defer c.Close(bg)
	name := o.db.pool.config.RuntimeParams["application_name"]
	for {
		var n int32
		if err := c.QueryRow(bg, "SELECT count(*)::int4 FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n); err != nil || n <= int32(o.db.pool.size()) {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func openDir(dir string) (session.Store, error) {
	dsn := dsnOf(dir)
	s, err := Open(bg, dsn, Options{})
	if err != nil {
		return nil, err
	}
	return opened{s, dsn}, nil
}

func TestStore(t *testing.T) {
	// A round with a server takes ten times as long as one with a file.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		must(t, f.Value.Set("15"))
		defer f.Value.Set(f.DefValue)
	}
	storetest.Run(t, openDir)
}

func TestProcesses(t *testing.T) { storetest.Processes(t, openDir) }

var bg = context.Background()

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// at opens the store of a folder.
func at(t testing.TB, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(bg, dsnOf(dir), opts)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// talk appends a header and a few records to the log id.
func talk(t testing.TB, s session.Store, id session.ID, n int) []session.Record {
	t.Helper()
	recs := []session.Record{{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key("k:" + id), Version: session.Version}}}
	parent := ""
	for i := range n {
		r := session.Record{Seq: session.Seq(i + 2), ID: fmt.Sprintf("e%03d", i+1), Parent: parent, Time: sessiontest.Start, Body: sessiontest.User(fmt.Sprint("say ", i+1))}
		recs, parent = append(recs, r), r.ID
	}
	must(t, s.Append(bg, id, recs...))
	return recs
}
