package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
)

// Ten processes open a new database at once.
func TestTenBeginners(t *testing.T) {
	if dir := os.Getenv("GOCLAW_TEST_BEGIN"); dir != "" {
		s, err := Open(bg, dir, Options{})
		must(t, err)
		id := session.ID(fmt.Sprint("s", os.Getpid()))
		must(t, s.Append(bg, id, session.Record{Seq: 1, Body: session.Header{ID: id}}))
		must(t, s.Close())
		return
	}
	dir := t.TempDir()
	begin(t, dsnOf(dir), 10)
	if n := count(t, at(t, dir, Options{})); n != 10 {
		t.Errorf("%d sessions of 10", n)
	}
}

// begin starts n processes at once, which open the database and append to a
// session each.
func begin(t *testing.T, dsn string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=TestTenBeginners")
			cmd.Env = append(os.Environ(), "GOCLAW_TEST_BEGIN="+dsn)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
}

// count returns how many sessions there are.
func count(t *testing.T, s *Store) (n int) {
	t.Helper()
	for _, err := range s.List(bg, session.Query{}) {
		must(t, err)
		n++
	}
	return n
}

// Tables of the first version are brought up to date by whoever may do so: ten
// processes at once, a process that has them open going on as before.
func TestOlderTables(t *testing.T) {
	dir := t.TempDir()
	dsn := dsnOf(dir)
	sql(t, dir, createTables)
	sql(t, dir, "WITH s AS (INSERT INTO goclaw_sessions ("+strings.Join(allColumns(), ", ")+") SELECT '"+
		strings.Join(allTexts(session.Info{ID: "old", Records: 1, Last: 1}), "', '")+"' RETURNING n) "+
		`INSERT INTO goclaw_records SELECT n, 1, 1, 0, '', '', 'session', '{"type":"session","version":3,"id":"old"}' FROM s`)
	r := at(t, dir, Options{ReadOnly: true}) // changes nothing
	if n := count(t, r); n != 1 {
		t.Errorf("read only, there are %d sessions of 1", n)
	}
	name := r.db.pool.config.RuntimeParams["search_path"]
	for _, text := range []string{"CREATE ROLE reader LOGIN PASSWORD 'p'", "GRANT USAGE ON SCHEMA " + name + " TO reader",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name + " TO reader", "GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + name + " TO reader"} {
		sql(t, dir, text)
	}
	reader := fmt.Sprintf("postgres://reader:p@127.0.0.1:%d/postgres?sslmode=disable&search_path=%s", server.Port, name)
	_, err := Open(bg, reader, Options{})
	want := "its tables have schema 1, this version needs 2, and this user may not change them: start goclaw once as the user who owns them"
	if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a user without rights: %v, want one line that ends with %q", err, want)
	}
	begin(t, dsn, 10)
	s := at(t, dir, Options{})
	if n := count(t, s); n != 11 {
		t.Errorf("%d sessions of 11", n)
	}
	must(t, s.Append(bg, "old", session.Record{Seq: 2, ID: "e1", Body: session.Title{Title: "new"}}))
	if n := count(t, r); n != 11 {
		t.Errorf("opened before, it has %d sessions of 11", n)
	}
	p, err := Open(bg, reader, Options{})
	must(t, err)
	defer p.Close()
	must(t, p.Append(bg, "old", session.Record{Seq: 3, ID: "e2", Parent: "e1", Body: session.Title{Title: "newer"}}))
}

// Every refusal is one line that says what to do and shows no password.
func TestRefuses(t *testing.T) {
	if server == nil {
		t.Fatal("the server of the tests belongs to another process")
	}
	admin, err := pgx.Connect(bg, server.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	for _, text := range []string{"CREATE ROLE poor LOGIN PASSWORD 'poor-secret'", "CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0", "CREATE SCHEMA newer"} {
		_, err = admin.Exec(bg, text)
		must(t, err)
	}
	newer := server.DSN("postgres") + "&search_path=newer"
	s, err := Open(bg, newer, Options{})
	must(t, err)
	must(t, s.Close())
	_, err = admin.Exec(bg, "UPDATE newer.goclaw_schema SET version = 7")
	must(t, err)
	tcp := server.TCP("postgres")
	secret := url.QueryEscape(pgtest.Password)
	for _, c := range []struct {
		name, dsn, want string
		opts            Options
	}{
		{"not a DSN", "postgres://me:" + secret + "@host:port/db", "not a DSN", Options{}},
		{"a password with a slash", "postgres://me:" + pgtest.Password + "@host/db", "not a DSN", Options{}},
		{"words", "host=x password=" + pgtest.Password + " port=what", "not a DSN", Options{}},
		{"a parameter", tcp + "&goclaw_lease=never", `goclaw_lease is "never"`, Options{}},
		{"no server", "postgres://me:" + secret + "@127.0.0.1:1/db?sslmode=disable", "cannot connect: connect: connection refused", Options{}},
		{"no socket", "postgres://me:" + secret + "@/db?host=/nowhere", "cannot connect: connect: no such file", Options{}},
		{"no host", "postgres://me:" + secret + "@nowhere.invalid/db", "nowhere.invalid", Options{}},
		{"a wrong password", strings.Replace(tcp, "s3cret", "wrong-one", 1), "the password is wrong", Options{}},
		{"no database", server.TCP("nothing"), "there is no such database", Options{}},
		{"no rights", fmt.Sprintf("postgres://poor:poor-secret@127.0.0.1:%d/postgres?sslmode=disable", server.Port), "permission denied for schema public: the user needs", Options{}},
		{"another encoding", server.DSN("ascii"), "the encoding of the database is SQL_ASCII", Options{}},
		{"newer", newer, "has schema 7, this version knows up to 2: a newer goclaw wrote it", Options{}},
		{"nothing, to be read", server.DSN("template1"), "it has no sessions of goclaw", Options{ReadOnly: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(bg, c.dsn, c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error is %v, want one line with %q", err, c.want)
			}
			for _, pw := range []string{pgtest.Password, secret, "s3cret", "wrong-one", "poor-secret"} {
				if err != nil && strings.Contains(err.Error(), pw) {
					t.Errorf("the password is shown: %v", err)
				}
			}
		})
	}
}

// While one host is lost, another that does not know the database or the user may be a
// standby that has not created them yet: calls go on trying. With a host that answers
// first, and for a process that starts with a wrong password, it is final.
func TestBehind(t *testing.T) {
	admin, err := pgx.Connect(bg, server.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	run := func(sql string) {
		t.Helper()
		_, err := admin.Exec(bg, sql)
		must(t, err)
	}
	hosts := func(user string, ports ...any) string {
		return fmt.Sprintf("postgres://%s:p@127.0.0.1:%d,127.0.0.1:%d/behind?sslmode=disable", append([]any{user}, ports...)...)
	}
	run("CREATE ROLE behind LOGIN PASSWORD 'p'")
	lostFirst := hosts("behind", 1, server.Port)
	opened := make(chan error, 1)
	var s *Store
	go func() {
		var err error
		s, err = Open(bg, lostFirst, Options{})
		opened <- err
	}()
	time.Sleep(200 * time.Millisecond) // it has been refused by then; if not, the test shows less
	run("CREATE DATABASE behind OWNER behind")
	must(t, <-opened)
	defer s.Close()
	recs := talk(t, s, "s1", 0)
	for i, c := range []struct{ gone, back string }{
		{"ALTER DATABASE behind RENAME TO ahead", "ALTER DATABASE ahead RENAME TO behind"},
		{"ALTER ROLE behind NOLOGIN", "ALTER ROLE behind LOGIN"},
		{"ALTER ROLE behind PASSWORD 'q'", "ALTER ROLE behind PASSWORD 'p'"},
	} {
		s.db.pool.reset()
		for range 100 { // until no connection is left
			if _, err = admin.Exec(bg, c.gone); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
			s.db.pool.reset()
		}
		must(t, err)
		done := make(chan error, 1)
		go func() {
			done <- s.Append(bg, "s1", session.Record{Seq: session.Seq(i + 2), ID: fmt.Sprint("e", i), Parent: recs[0].ID, Time: sessiontest.Start, Body: sessiontest.User("x")})
		}()
		time.Sleep(200 * time.Millisecond)
		run(c.back)
		if err := <-done; err != nil {
			t.Errorf("%s: %v", c.gone, err)
		}
		recs[0].ID = fmt.Sprint("e", i)
	}
	for dsn, want := range map[string]string{
		strings.Replace(hosts("behind", server.Port, 1), "/behind?", "/nothing?", 1): "there is no such database",
		strings.Replace(lostFirst, ":p@", ":wrong@", 1):                              "the password is wrong",
	} {
		_, err := Open(bg, dsn, Options{Patience: time.Hour})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A user who owns nothing can work in tables that another made for it.
func TestPlainUser(t *testing.T) {
	admin, err := pgx.Connect(bg, server.DSN("postgres"))
	must(t, err)
	defer admin.Close(bg)
	dir := t.TempDir()
	s := at(t, dir, Options{})
	recs := talk(t, s, "s1", 3)
	name := s.db.pool.config.RuntimeParams["search_path"]
	for _, text := range []string{"CREATE ROLE plain LOGIN PASSWORD 'p'", "GRANT USAGE ON SCHEMA " + name + " TO plain",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name + " TO plain", "GRANT USAGE ON ALL SEQUENCES IN SCHEMA " + name + " TO plain"} {
		_, err := admin.Exec(bg, text)
		must(t, err)
	}
	p, err := Open(bg, fmt.Sprintf("postgres://plain:p@127.0.0.1:%d/postgres?sslmode=disable&search_path=%s", server.Port, name), Options{})
	must(t, err)
	defer p.Close()
	talk(t, p, "s2", 2)
	release, err := p.Lock(bg, "s1", "plain")
	must(t, err)
	must(t, p.Append(bg, "s1", session.Record{Seq: 5, ID: "x", Parent: recs[3].ID, Body: recs[1].Body}))
	release()
	must(t, p.Delete(bg, "s2"))
	must(t, p.Purge(bg, "s2"))
}

// A lost connection is made again; what was being appended is there once.
func TestLostConnections(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	recs := talk(t, s, "s1", 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		c, err := pgx.Connect(bg, server.DSN("postgres"))
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close(bg)
		name := s.db.pool.config.RuntimeParams["application_name"]
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			if _, err := c.Exec(bg, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", name); err != nil {
				t.Error(err)
				return
			}
		}
	})
	last, leaf := recs[1].Seq, recs[1].ID
	for i := range 60 {
		r := session.Record{Seq: last + 1, ID: fmt.Sprintf("m%03d", i), Parent: leaf, Time: recs[1].Time, Body: recs[1].Body}
		if err := s.Append(bg, "s1", r); err != nil {
			t.Fatalf("append %d: %v", i, err)
		}
		last, leaf = r.Seq, r.ID
	}
	close(stop)
	wg.Wait()
	n := 0
	for r, err := range s.Read(bg, "s1", 2) {
		must(t, err)
		if r.ID != fmt.Sprintf("m%03d", n) {
			t.Fatalf("record %d is %s", r.Seq, r.ID)
		}
		n++
	}
	if n != 60 {
		t.Errorf("%d records of 60", n)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	talk(t, at(t, dir, Options{}), "s1", 3)
	r := at(t, dir, Options{ReadOnly: true})
	if in, err := session.Stat(bg, r, "s1"); err != nil || in.Last != 4 {
		t.Errorf("read: %+v, %v", in, err)
	}
	_, rebuild := r.Rebuild(bg)
	_, locked := r.Lock(bg, "s1", "x")
	for what, err := range map[string]error{"append": r.Append(bg, "s1"), "delete": r.Delete(bg, "s1"), "restore": r.Restore(bg, "s1"), "purge": r.Purge(bg, "s1"), "rebuild": rebuild, "lock": locked} {
		if err == nil || !strings.Contains(err.Error(), "reading only") {
			t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
	// A server that takes no writes says so.
	s, err := Open(bg, dsnOf(dir)+"&default_transaction_read_only=on", Options{Patience: time.Millisecond})
	must(t, err)
	defer s.Close()
	if err := s.Append(bg, "s2", session.Record{Seq: 1, Body: session.Header{ID: "s2"}}); err == nil || !strings.Contains(err.Error(), "the server is read-only (a standby?): nothing was written") {
		t.Errorf("append to a standby: %v", err)
	}
}

func TestCheckAndRebuild(t *testing.T) {
	dir := t.TempDir()
	s := at(t, dir, Options{})
	for _, id := range []session.ID{"s1", "s2", "s3"} {
		talk(t, s, id, 5)
	}
	must(t, s.Delete(bg, "s2"))
	reports := func() map[session.ID]string {
		got := map[session.ID]string{}
		must(t, s.Check(bg, func(id session.ID, err error) { got[id] += err.Error() + "\n" }))
		return got
	}
	if got := reports(); len(got) != 0 {
		t.Fatalf("check of a good store: %q", got)
	}
	sql(t, dir, "UPDATE goclaw_sessions SET title = 'x', turns = 99, last = 2 WHERE id = 's1'")
	sql(t, dir, "UPDATE goclaw_records SET data = '{\"' WHERE seq = 4 AND session = (SELECT n FROM goclaw_sessions WHERE id = 's3')")
	sql(t, dir, "DELETE FROM goclaw_records WHERE seq = 2 AND session = (SELECT n FROM goclaw_sessions WHERE id = 's3')")
	got := reports()
	if len(got) != 2 || !strings.Contains(got["s1"], "turns is 99, should be 5") || !strings.Contains(got["s3"], "record 4") || !strings.Contains(got["s3"], "record 2 is missing") {
		t.Errorf("check reports %q", got)
	}
	// A row that lies cannot make the log be overwritten.
	if err := s.Append(bg, "s1", session.Record{Seq: 3, ID: "over", Parent: "e001", Body: session.Title{Title: "x"}}); !errors.Is(err, session.ErrStale) {
		t.Errorf("append over a record: %v, want %v", err, session.ErrStale)
	}
	if _, err := s.Rebuild(bg); err != nil {
		t.Fatal(err)
	}
	if got := reports(); got["s1"] != "" {
		t.Errorf("rebuilt, check reports %q", got)
	}
}
