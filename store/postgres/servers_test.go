package postgres

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/storetest"
)

// short runs the suite of all stores with few repetitions.
func short(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": "15", "test.short": "true"} {
		f := flag.Lookup(name)
		old := f.Value.String()
		must(t, f.Value.Set(value))
		defer f.Value.Set(old)
	}
	storetest.Run(t, openDir)
	storetest.Processes(t, openDir)
}

// mayLack ends a test for which something is not installed.
func mayLack(t *testing.T, err, none error) {
	t.Helper()
	if errors.Is(err, none) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	must(t, err)
}

// A newer PostgreSQL than Debian's.
func TestNewer(t *testing.T) {
	s, err := pgtest.Options{Newer: true, Settings: []string{"fsync=off"}}.Start()
	mayLack(t, err, pgtest.ErrNoNewer)
	t.Cleanup(s.Stop)
	t.Setenv(dsnVariable, s.DSN("postgres"))
	short(t)
	h, err := at(t, t.TempDir(), Options{}).Health(bg)
	must(t, err)
	if !strings.HasPrefix(h.Version, "18") {
		t.Errorf("the newer PostgreSQL is %s", h.Version)
	}
}

// pgbouncer with few connections, each lent for one transaction.
func TestPooled(t *testing.T) {
	b, err := server.Bouncer("default_pool_size = 4", "server_idle_timeout = 1")
	mayLack(t, err, pgtest.ErrNoBouncer)
	t.Cleanup(b.Stop)
	// What a pooler does not take.
	for param, want := range map[string]string{
		"search_path=x":                         "the pooler does not take the parameter search_path: take it out of the DSN, and set it for the user (ALTER ROLE ... SET search_path = ...)",
		"options=-c%20statement_timeout%3D1min": "the pooler does not take the parameter options",
		"default_transaction_read_only=off":     "the pooler does not take the parameter default_transaction_read_only",
	} {
		if _, err := Open(bg, b.TCP("postgres")+"&"+param, Options{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error is %v, want %q", param, err, want)
		}
	}
	t.Setenv(poolVariable, b.TCP(""))
	short(t)
	t.Run("fencing", TestFencing)
	// target_session_attrs asks the server when it connects. A follower polls.
	dir := t.TempDir()
	dsn := dsnOf(dir)
	s, err := Open(bg, dsn+"&target_session_attrs=read-write", Options{})
	must(t, err)
	defer s.Close()
	w, err := Open(bg, dsn, Options{})
	must(t, err)
	defer w.Close()
	recs := talk(t, w, "s1", 1)
	seen := make(chan error, 1)
	go func() { seen <- s.Wait(bg, "s1", 2) }()
	must(t, w.Append(bg, "s1", session.Record{Seq: 3, ID: "x", Parent: recs[1].ID, Time: sessiontest.Start, Body: sessiontest.User("seen?")}))
	must(t, <-seen)
	c, err := pgx.Connect(bg, server.DSN("postgres"))
	must(t, err)
	defer c.Close(bg)
	var listening int
	must(t, c.QueryRow(bg, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = $1", s.db.pool.config.Database).Scan(&listening))
	if listening != 0 {
		t.Error("the listener listens on a connection that is not its own")
	}
}

// databaseOf returns the DSN, through a pooler, of the database for a folder,
// which it makes: a pooler takes no search_path.
func databaseOf(name string) string {
	dsn := strings.Replace(os.Getenv(poolVariable), "/?", "/"+name+"?", 1) + "&application_name=" + name
	if _, made := schemas.LoadOrStore(name, true); made {
		return dsn
	}
	c, err := pgx.Connect(bg, os.Getenv(dsnVariable))
	if err == nil {
		_, err = c.Exec(bg, "CREATE DATABASE "+name)
		c.Close(bg)
	}
	if err != nil && code(err) != "42P04" && code(err) != uniqueViolation { // another process has made it
		panic(err)
	}
	return dsn
}
