package postgres

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
	"goclaw/session"
)

// Each problem of a server is found where it is real.
func TestHealth(t *testing.T) {
	small, err := pgtest.Start("fsync=off", "max_connections=12", "superuser_reserved_connections=3", "shared_buffers=16MB")
	must(t, err)
	defer small.Stop()
	admin, err := pgx.Connect(bg, small.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	run := func(text string) {
		t.Helper()
		_, err := admin.Exec(bg, text)
		must(t, err)
	}
	run("CREATE SCHEMA plain; CREATE SCHEMA skewed; CREATE ROLE poor LOGIN; GRANT ALL ON SCHEMA plain TO poor")
	run(`CREATE FUNCTION skewed.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$SELECT pg_catalog.clock_timestamp() + interval '5 minutes'$$`)
	plain := small.DSN("postgres") + "&search_path=plain"
	problems := func(dsn string) (Health, string) {
		t.Helper()
		s, err := Open(bg, dsn, Options{})
		must(t, err)
		defer s.Close()
		h, err := s.Health(bg)
		must(t, err)
		found := h.Problems()
		if len(found) == 0 || !strings.HasPrefix(found[0], "the server has fsync = off: ") {
			t.Errorf("fsync is off, the problems are %q", found)
			return h, ""
		}
		return h, strings.Join(found[1:], "\n")
	}
	wants := func(what, got, want string) {
		t.Helper()
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%s: problems are %q, want %q", what, got, want)
		}
	}
	h, got := problems(plain)
	wants("a server that is good otherwise", got, "")
	if h.Version == "" || h.Schema != schemaVersion || h.Clock.Abs() > 10*time.Second || h.Max != 9 || h.Connections < 2 || h.Locks+h.Expired != 0 || h.Size == 0 {
		t.Errorf("health is %+v", h)
	}
	_, got = problems(plain + "&synchronous_commit=off")
	wants("no durability", got, "synchronous_commit is off")
	_, got = problems(plain + "&default_transaction_read_only=on")
	wants("read-only", got, "default_transaction_read_only is on")
	h, got = problems(small.DSN("postgres") + "&search_path=skewed,pg_catalog")
	wants("another clock", got, "the clock of the server differs from this machine's by "+h.Clock.Round(time.Second).String())
	if off := h.Clock - 5*time.Minute; off.Abs() > time.Minute { // what the answer took is in it
		t.Errorf("the clock of the server is ahead by %v", h.Clock)
	}

	// Nearly all connections, and then all that a plain user may have.
	asPoor := strings.Replace(plain, pgtest.User+"@", "poor@", 1)
	run("GRANT ALL ON ALL TABLES IN SCHEMA plain TO poor; GRANT ALL ON ALL SEQUENCES IN SCHEMA plain TO poor")
	var many []*pgx.Conn
	for range 8 {
		c, err := pgx.Connect(bg, asPoor)
		must(t, err)
		many = append(many, c)
	}
	_, got = problems(plain)
	wants("few connections", got, "of 9 connections of the server are in use: raise max_connections there, lower pool_max_conns here")
	_, err = Open(bg, asPoor, Options{Patience: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "the server has no free connection: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("no connection: error is %v", err)
	}
	run("ALTER ROLE poor CONNECTION LIMIT 1")
	if _, err = Open(bg, asPoor, Options{Patience: time.Millisecond}); err == nil || !strings.Contains(err.Error(), "the server has no free connection: ") {
		t.Errorf("no connection for this user: error is %v", err)
	}
	for _, c := range many {
		c.Close(bg)
	}
	primary, err := Open(bg, plain, Options{})
	must(t, err)
	recs := talk(t, primary, "s1", 1)
	must(t, primary.Close())
	standby, err := small.Standby()
	must(t, err)
	defer standby.Stop()
	dsn := standby.DSN("postgres") + "&search_path=plain"
	_, got = problems(dsn)
	wants("a standby", got, "the server is a standby, and takes no records: name the primary, or several hosts")
	refusesWrites(t, dsn, recs)
	refusesWrites(t, small.DSN("postgres")+"&search_path=plain&default_transaction_read_only=on", recs)
	_, err = Open(bg, dsn+"&target_session_attrs=read-write", Options{Patience: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "the server is read-only (a standby?)") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a standby in place of the primary: %v", err)
	}
}

// refusesWrites tests a server that takes no writes: it is read, and each write is
// refused with one line.
func refusesWrites(t *testing.T, dsn string, recs []session.Record) {
	t.Helper()
	r, err := Open(bg, dsn, Options{Patience: time.Millisecond})
	must(t, err)
	defer r.Close()
	_, locked := r.Lock(bg, "s1", "x")
	for what, err := range map[string]error{
		"append": r.Append(bg, "s1", session.Record{Seq: 3, ID: "x", Parent: recs[1].ID, Body: recs[1].Body}),
		"delete": r.Delete(bg, "s1"),
		"lock":   locked,
	} {
		if err == nil || !strings.Contains(err.Error(), "the server is read-only (a standby?): nothing was written") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if in, err := session.Stat(bg, r, "s1"); err != nil || in.Last != 2 {
		t.Errorf("read: %+v, %v", in, err)
	}
}

// Rows of locks are counted; those that nobody has used for long are removed.
func TestLockRows(t *testing.T) {
	dir := t.TempDir()
	a, b := at(t, dir, Options{Lease: time.Hour}), at(t, dir, Options{Lease: time.Hour})
	for _, name := range []string{"held", "given back", "lost", "old"} {
		release, err := a.Lock(bg, name, "a")
		must(t, err)
		if name == "given back" {
			release()
		}
	}
	sql(t, dir, "UPDATE goclaw_locks SET expires = now() - interval '1 hour' WHERE name = 'lost'")
	sql(t, dir, "UPDATE goclaw_locks SET expires = now() - interval '2 days', since = now() - interval '3 days' WHERE name = 'old'")
	for _, want := range [][2]int{{1, 2}, {1, 1}} {
		h, err := b.Health(bg)
		must(t, err)
		if got := [2]int{h.Locks, h.Expired}; got != want {
			t.Errorf("%d locks are held and %d have expired, want %v", h.Locks, h.Expired, want)
		}
		_, err = b.Rebuild(bg)
		must(t, err)
	}
	if _, err := b.Lock(bg, "held", "b"); err == nil {
		t.Error("a row of a lock that is held was removed")
	}
}

// An old version is refused: a real server behind a relay that changes only what
// it says of its version.
func TestOldVersion(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server.Port))
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(s, c); s.Close() }()
			go func() { older(c, s); c.Close() }()
		}
	}()
	dsn := strings.Replace(server.TCP("postgres"), fmt.Sprint(":", server.Port), fmt.Sprint(":", l.Addr().(*net.TCPAddr).Port), 1)
	_, err = Open(bg, dsn, Options{})
	if err == nil || !strings.Contains(err.Error(), "the server is PostgreSQL 12: goclaw needs 13 or newer") {
		t.Errorf("error is %v", err)
	}
}

// older copies from r to w and changes the major version.
func older(w io.Writer, r io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		text := string(buf[:n])
		if _, after, ok := strings.Cut(text, "server_version\x00"); ok {
			text = strings.Replace(text, "server_version\x00"+after[:2], "server_version\x0012", 1)
		}
		if _, fail := io.WriteString(w, text); fail != nil || err != nil {
			return
		}
	}
}
