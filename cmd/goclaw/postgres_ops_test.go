//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
	"goclaw/store/sqlite"
)

// contents returns the lines of all logs of a store, by session.
func contents(t *testing.T, st session.Store) map[session.ID]string {
	t.Helper()
	out := map[session.ID]string{}
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(t.Context(), session.Query{Trash: trash}) {
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			fmt.Fprintf(&b, "trash: %v\n", trash)
			for r, err := range st.Read(t.Context(), in.ID, 0) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "%d %s\n", r.Seq, r.Raw)
			}
			out[in.ID] = b.String()
		}
	}
	return out
}

// sameContents reports what of want is not in got.
func sameContents(t *testing.T, got, want map[session.ID]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d sessions, want %d", len(got), len(want))
	}
	for id, text := range want {
		if got[id] != text {
			t.Errorf("%s has %d lines, want %d, or others", id, strings.Count(got[id], "\n"), strings.Count(text, "\n"))
		}
	}
}

// A copy to PostgreSQL and one back, each killed several times in its middle while
// the source is written, and run again: nothing is lost or doubled.
func TestPostgresCopyKilled(t *testing.T) {
	server := pgServer(t)
	home := t.TempDir()
	from := filepath.Join(home, "home", "sessions.db")
	if err := os.MkdirAll(filepath.Dir(from), 0o700); err != nil {
		t.Fatal(err)
	}
	src, err := sqlite.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for i := range 60 {
		id := session.ID(fmt.Sprintf("s%02d", i))
		bodies := []session.Body{session.Header{Version: session.Version, ID: id, Key: session.Key("t:cli:" + id)}}
		n := 20
		if i == 30 {
			n = 4000 // more than one piece
		}
		for j := range n {
			bodies = append(bodies, sessiontest.User(fmt.Sprintf("%s says %d: %s", id, j, strings.Repeat("x", j%500))))
		}
		if err := src.Append(t.Context(), id, sessiontest.Log(bodies...)...); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []session.ID{"s03", "s40"} {
		if err := src.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	dst, err := postgres.Open(t.Context(), server.dsn(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	copyKilled(t, home, []string{"--to", "postgres", server.dsn()}, nil, src, dst, true)
	sameContents(t, contents(t, dst), contents(t, src))

	back, err := sqlite.Open(filepath.Join(home, "back", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	copyKilled(t, home, []string{"--to", "sqlite", "back"}, []string{"GOCLAW_SESSION_PATH=" + server.dsn()}, dst, back, false)
	sameContents(t, contents(t, back), contents(t, src))

	// The same id with other records.
	if err := back.Append(t.Context(), "s00", session.Record{Seq: 22, ID: "zz", Parent: "e20", Time: sessiontest.Start, Body: sessiontest.User("mine")}); err != nil {
		t.Fatal(err)
	}
	if err := dst.Append(t.Context(), "s00", session.Record{Seq: 22, ID: "yy", Parent: "e20", Time: sessiontest.Start, Body: sessiontest.User("theirs")}); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dst)
	cmd, _, errOut := child(t, home, "sessions", "copy", "--to", "postgres", server.dsn())
	cmd.Env = append(cmd.Env, "GOCLAW_SESSION_PATH="+filepath.Join(home, "back", "sessions.db"))
	var exit interface{ ExitCode() int }
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || strings.Count(errOut.String(), "\n") != 1 || !strings.Contains(errOut.String(), "t:cli:s00 (s00): the target has other records under this id, and they were left as they are") {
		t.Errorf("%v: %s", err, errOut)
	}
	sameContents(t, contents(t, dst), before)
}

// copyKilled copies until it is done, and kills all but the last copies in their
// middle. If grows, a session of src grows meanwhile.
func copyKilled(t *testing.T, home string, args, env []string, src, dst session.Store, grows bool) {
	t.Helper()
	count := func(st session.Store) (n int) {
		for _, trash := range []bool{false, true} {
			for in, err := range st.List(context.Background(), session.Query{Trash: trash}) {
				if err != nil {
					t.Fatal(err)
				}
				n += in.Records
			}
		}
		return n
	}
	run := func() (wait func() (string, error), kill func()) {
		cmd, out, errOut := child(t, home, append([]string{"sessions", "copy"}, args...)...)
		cmd.Env = append(cmd.Env, env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return func() (string, error) { err := cmd.Wait(); return out.String() + errOut.String(), err }, func() { cmd.Process.Kill() }
	}
	total, kills := count(src), 0
	for share := 5; share < 100; share += 25 {
		wait, kill := run()
		for begin := time.Now(); count(dst)*100 < total*share && time.Since(begin) < testPatience; time.Sleep(time.Millisecond) {
		}
		kill()
		if _, err := wait(); err != nil {
			kills++
		}
		t.Logf("killed with %d of %d records", count(dst), total)
	}
	if kills < 2 {
		t.Errorf("only %d copies were killed before their end", kills)
	}
	stop, grown := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; grows; i++ {
			in, err := session.Stat(context.Background(), src, "s01")
			if err == nil {
				err = src.Append(context.Background(), "s01", session.Record{Seq: in.Last + 1, ID: fmt.Sprint("g", i), Parent: in.Leaf, Time: sessiontest.Start, Body: sessiontest.User("more")})
			}
			select {
			case <-stop:
				grown <- err
				return
			default:
				if err != nil {
					grown <- err
					return
				}
			}
		}
		grown <- nil
	}()
	for _, last := range []bool{false, true} { // the last time nobody writes
		wait, _ := run()
		if out, err := wait(); err != nil || !strings.Contains(out, "copied and compared 60 sessions") {
			t.Errorf("%v: %s", err, out)
		}
		if !last {
			close(stop)
			if err := <-grown; err != nil {
				t.Error(err)
			}
		}
	}
}

// Every refusal is one line, exit code 1, and shows no password, wherever it comes
// from.
func TestPostgresPasswords(t *testing.T) {
	server := pgServer(t)
	pgExec(t, server, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
	pgExec(t, server, "CREATE ROLE busy LOGIN PASSWORD 's3cret-busy' CONNECTION LIMIT 0")
	home := t.TempDir()
	put(t, home, "pass", "127.0.0.1:*:*:"+pgtest.User+":"+strings.ReplaceAll(pgtest.Password, ":", `\:`)+"\n")
	put(t, home, "bad", "*:*:*:*:s3cret-not\n")
	for _, f := range []string{"pass", "bad"} {
		if err := os.Chmod(filepath.Join(home, f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	port := fmt.Sprint(server.Port)
	words := func(pw string) string {
		return fmt.Sprintf("host=127.0.0.1 port=%s user=%s dbname=%s sslmode=disable password='%s'", port, pgtest.User, server.name, pw)
	}
	bare := strings.Replace(server.tcp(), ":"+url.QueryEscape(pgtest.Password), "", 1)
	for _, c := range []struct {
		name, dsn, env, want string // want "": it works
	}{
		{"words", words(pgtest.Password), "", ""},
		{"words, wrong", words("s3cret-not"), "", "the password is wrong"},
		{"words, not a DSN", words("s3cret-not") + " port=what", "", "not a DSN"},
		{"variable", bare, "PGPASSWORD=" + pgtest.Password, ""},
		{"variable, wrong", bare, "PGPASSWORD=s3cret-not", "the password is wrong"},
		{"file", bare, "PGPASSFILE=" + filepath.Join(home, "pass"), ""},
		{"file, wrong", bare, "PGPASSFILE=" + filepath.Join(home, "bad"), "the password is wrong"},
		{"parameter", bare + "&passfile=" + filepath.Join(home, "pass"), "", ""},
		{"parameter, wrong", bare + "&password=s3cret-not", "", "the password is wrong"},
		{"no server", strings.Replace(server.tcp(), ":"+port, ":1", 1), "", "cannot connect: connect: connection refused"},
		{"no host", strings.Replace(server.tcp(), "127.0.0.1", "nowhere.invalid", 1), "", "nowhere.invalid"},
		{"no database", server.TCP("nothing"), "", "there is no such database"},
		{"encoding", server.TCP("latin"), "", "the encoding of the database is LATIN1: goclaw needs UTF8"},
		{"no connection", fmt.Sprintf("postgres://busy:s3cret-busy@127.0.0.1:%s/%s?sslmode=disable", port, server.name), "", "the server has no free connection"},
		{"no TLS", strings.Replace(server.tcp(), "sslmode=disable", "sslmode=require", 1), "", "the server does not speak TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, args := range [][]string{{"sessions"}, {"config"}} {
				cmd, out, errOut := child(t, home, args...)
				cmd.Env = append(cmd.Env, "GOCLAW_SESSION_STORE=postgres", "GOCLAW_SESSION_PATH="+c.dsn, c.env)
				cmd.Run()
				if all := out.String() + errOut.String(); strings.Contains(all, "s3cret") {
					t.Errorf("%v shows the password: %s", args, all)
				}
				want, lines := c.want, 1
				if want == "" || args[0] == "config" {
					want, lines = "", 0
				}
				if code := cmd.ProcessState.ExitCode(); code != lines || !strings.Contains(errOut.String(), want) || strings.Count(errOut.String(), "\n") != lines {
					t.Errorf("%v exits %d and says %q, want %d and %q", args, code, errOut, lines, want)
				}
			}
		})
	}
}

// doctor says what is wrong with a server.
func TestPostgresDoctor(t *testing.T) {
	server := pgServer(t)
	home := t.TempDir()
	doctor := func(dsn string, args ...string) (int, string) {
		cmd, out, errOut := child(t, home, append([]string{"doctor"}, args...)...)
		cmd.Env = append(cmd.Env, "GOCLAW_SESSION_PATH="+dsn)
		cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String() + errOut.String()
	}
	st, err := postgres.Open(t.Context(), server.dsn(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, name := range []string{"held", "lost"} {
		if _, err := st.Lock(t.Context(), name, "me"); err != nil {
			t.Fatal(err)
		}
	}
	pgExecIn(t, server, "UPDATE goclaw_locks SET expires = now() - interval '1 hour' WHERE name = 'lost'")
	code, out := doctor(server.tcp())
	if code != 0 || !strings.Contains(out, "PostgreSQL 1") || !strings.Contains(out, "1 lock held, 1 expired") || !strings.Contains(out, "all is well") {
		t.Errorf("doctor exits %d: %s", code, out)
	}
	for dsn, want := range map[string]string{
		server.tcp() + "&synchronous_commit=off":           "server: synchronous_commit is off",
		server.tcp() + "&default_transaction_read_only=on": "server: default_transaction_read_only is on",
	} {
		if code, out := doctor(dsn); code != 1 || !strings.Contains(out, want) || !strings.Contains(out, "1 problem\n") {
			t.Errorf("doctor exits %d, want %q: %s", code, want, out)
		}
	}
}

// Through pgbouncer a follower, which polls, sees an answer of another process soon.
func TestPostgresFollowPooled(t *testing.T) {
	server := pgServer(t)
	b, err := server.Bouncer("default_pool_size = 3")
	if errors.Is(err, pgtest.ErrNoBouncer) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	followed(t, b.TCP(server.name))
}

// pgExecIn runs a statement in a database.
func pgExecIn(t *testing.T, d database, sql string) {
	t.Helper()
	st := pgConnect(t, d.dsn())
	defer st.Close(context.Background())
	if _, err := st.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
