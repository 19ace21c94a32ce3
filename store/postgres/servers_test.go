package postgres

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
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
	t.Setenv(poolVariable, b.TCP(""))
	short(t)
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
