//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"goclaw/internal/config"
	"goclaw/internal/permits"
	"goclaw/internal/pgtest"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/postgres"
)

// database is a new database on the PostgreSQL of all tests.
type database struct {
	*pgtest.Server
	name string
}

// dsn and tcp return its DSN: through the socket, and with a password.
func (d database) dsn() string { return d.DSN(d.name) }
func (d database) tcp() string { return d.TCP(d.name) }

// pgOnce starts the server.
var pgOnce = sync.OnceValues(func() (*pgtest.Server, error) {
	s, err := pgtest.Start("shared_buffers=16MB")
	if err == nil {
		atEnd = append(atEnd, s.Stop)
	}
	return s, err
})

// pgServer makes a database for a test.
func pgServer(t *testing.T) database {
	t.Helper()
	s, err := pgOnce()
	if errors.Is(err, pgtest.ErrNone) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := database{s, strings.ToLower(t.Name())}
	pgExec(t, d, "CREATE DATABASE "+d.name)
	return d
}

// pgExec runs a statement as the owner of the server.
func pgExec(t *testing.T, s database, sql string) {
	t.Helper()
	c := pgConnect(t, s.DSN("postgres"))
	defer c.Close(t.Context())
	if _, err := c.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func pgConnect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Every command works with a PostgreSQL store, and none shows the password.
func TestPostgresCommands(t *testing.T) {
	server := pgServer(t)
	pgExec(t, server, "CREATE DATABASE second")
	pgExec(t, server, "CREATE ROLE poor LOGIN PASSWORD 's3cret-poor'")
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1", "GOCLAW_PROVIDER": "offline",
		"GOCLAW_SESSION_STORE": "postgres", "GOCLAW_SESSION_PATH": server.tcp()}
	goclaw := func(want int, args ...string) (out, errOut string) {
		t.Helper()
		var o, e strings.Builder
		if got := run(args, strings.NewReader(""), &o, &e, func(k string) string { return env[k] }); got != want {
			t.Errorf("%v exits %d, want %d\n%s%s", args, got, want, &o, &e)
		}
		if all := o.String() + e.String(); strings.Contains(all, "s3cret") {
			t.Errorf("%v shows the password: %s", args, all)
		}
		return o.String(), e.String()
	}
	says := func(what, text, part string) {
		t.Helper()
		if !strings.Contains(text, part) {
			t.Errorf("%s: %q is not in %s", what, part, text)
		}
	}
	goclaw(0, "ask", "-s", "t:cli:one", "where are the pelicans?")
	goclaw(0, "ask", "-s", "t:cli:one", "and the cormorants?")
	out, _ := goclaw(0, "sessions")
	says("sessions", out, "t:cli:one")
	out, _ = goclaw(0, "sessions", "show", "t:cli:one")
	says("show", out, "cormorants")
	out, _ = goclaw(0, "search", "pelicans")
	says("search", out, "pelicans")
	out, _ = goclaw(0, "sessions", "export", "t:cli:one")
	says("export", out, "pelicans")
	pi := filepath.Join(t.TempDir(), "pi.jsonl")
	if err := os.WriteFile(pi, []byte(piFile), 0o600); err != nil {
		t.Fatal(err)
	}
	goclaw(0, "import", pi)
	goclaw(0, "import", pi)
	goclaw(0, "sessions", "verify")
	out, _ = goclaw(0, "doctor")
	says("doctor", out, "all is well")
	says("doctor", out, "PostgreSQL 1")
	out, _ = goclaw(0, "config")
	says("config", out, "postgres://goclaw@127.0.0.1")
	_, errOut := goclaw(1, "backup", filepath.Join(t.TempDir(), "b.tar"))
	says("backup", errOut, "pg_dump")
	goclaw(0, "sessions", "delete", "t:cli:one")
	goclaw(0, "sessions", "restore", "t:cli:one")

	// To a file and back, twice: the second time there is nothing new.
	dir := t.TempDir()
	out, _ = goclaw(0, "sessions", "copy", "--to", "sqlite", dir)
	says("copy", out, "copied and compared 2 sessions")
	env["GOCLAW_SESSION_STORE"], env["GOCLAW_SESSION_PATH"] = "sqlite", filepath.Join(dir, "sessions.db")
	for _, fresh := range []bool{true, false} {
		out, _ = goclaw(0, "sessions", "copy", "--to", "postgres", server.TCP("second"))
		says("copy", out, "copied and compared 2 sessions")
		if got := strings.Contains(out, " 0 records of them new"); got == fresh {
			t.Errorf("copied: %s", out)
		}
	}
	// An address is never the name of a folder, which would show the password.
	work := t.TempDir()
	t.Chdir(work)
	out, _ = goclaw(0, "sessions", "copy", server.TCP("second"))
	says("copy to an address", out, "copied and compared 2 sessions, 0 records of them new, to postgres://goclaw@127.0.0.1")
	_, errOut = goclaw(2, "sessions", "copy", "--to", "sqlite", server.TCP("second"))
	says("copy to a file with an address", errOut, `and --to is "sqlite"`)
	words := fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=second sslmode=disable password='%s'", server.Port, pgtest.User, pgtest.Password)
	for _, to := range []string{words, "mysql://me:s3cret@host/db", "Postgres://me:s3cret@host/db"} {
		_, errOut = goclaw(2, "sessions", "copy", to)
		says("copy to "+to[:8], errOut, "looks like the address of a database")
	}
	out, _ = goclaw(0, "sessions", "copy", "--to", "postgres", words)
	says("copy to words", out, "0 records of them new")
	if made, err := os.ReadDir(work); err != nil || len(made) > 0 {
		t.Errorf("a copy to an address made %v (%v)", made, err)
	}
	env["GOCLAW_SESSION_STORE"], env["GOCLAW_SESSION_PATH"] = "postgres", server.TCP("second")
	out, _ = goclaw(0, "sessions", "show", "t:cli:one")
	says("show of the copy", out, "cormorants")
	_, errOut = goclaw(2, "sessions", "copy", "--to", "postgres", server.TCP("second"))
	says("copy onto itself", errOut, "DSN must be another database")

	for _, c := range []struct{ dsn, want string }{
		{"postgres://me:s3cret@host:port/db", "is not a DSN"},
		{"postgres://me:s3cret@127.0.0.1:1/db?sslmode=disable", "cannot connect: connect: connection refused"},
		{strings.Replace(server.tcp(), "s3cret", "s3cret-not", 1), "the password is wrong"},
		{server.TCP("nothing"), "there is no such database"},
		{fmt.Sprintf("postgres://poor:s3cret-poor@127.0.0.1:%d/template1?sslmode=disable", server.Port), "permission denied for schema public"},
	} {
		env["GOCLAW_SESSION_PATH"] = c.dsn
		for _, args := range [][]string{{"sessions"}, {"ask", "hi"}, {"doctor"}, {"search", "x"}} {
			_, errOut := goclaw(1, args...)
			if !strings.Contains(errOut, c.want) || strings.Count(strings.TrimSpace(errOut), "\n") > 0 {
				t.Errorf("%v says %q, want one line with %q", args, errOut, c.want)
			}
		}
	}
}

// Search on one machine finds what another wrote.
func TestPostgresSearch(t *testing.T) {
	server := pgServer(t)
	homes := []string{t.TempDir(), t.TempDir()}
	goclaw := func(home string, args ...string) string {
		t.Helper()
		env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1", "GOCLAW_PROVIDER": "offline", "GOCLAW_SESSION_PATH": server.dsn()}
		var o, e strings.Builder
		if got := run(args, strings.NewReader(""), &o, &e, func(k string) string { return env[k] }); got != 0 {
			t.Errorf("%v exits %d\n%s%s", args, got, &o, &e)
		}
		return o.String()
	}
	goclaw(homes[1], "ask", "-s", "t:cli:a", "hello")
	goclaw(homes[1], "search", "hello") // has an index now
	for i, word := range []string{"platypus", "quokka"} {
		goclaw(homes[0], "ask", "-s", fmt.Sprint("t:cli:", i), "tell me about the "+word)
		if out := goclaw(homes[1], "search", word); !strings.Contains(out, word) {
			t.Errorf("the other machine does not find %s: %s", word, out)
		}
	}
	goclaw(homes[0], "sessions", "delete", "t:cli:0")
	if out := goclaw(homes[1], "search", "--json", "platypus"); strings.Contains(out, "tell me about") {
		t.Errorf("what another machine deleted is found: %s", out)
	}
}

// Each store has an index of its own: those who search in two stores by turns make
// none of the vectors again. An index.db of a PostgreSQL alone, from before, goes.
func TestPostgresIndexes(t *testing.T) {
	server := pgServer(t)
	home := t.TempDir()
	env := map[string]string{"GOCLAW_HOME": home, "HOME": home, "GOCLAW_NO_LOCAL": "1", "GOCLAW_PROVIDER": "offline"}
	goclaw := func(path string, args ...string) string {
		t.Helper()
		env["GOCLAW_SESSION_PATH"] = path
		var o, e strings.Builder
		if got := run(args, strings.NewReader(""), &o, &e, func(k string) string { return env[k] }); got != 0 {
			t.Errorf("%v exits %d\n%s%s", args, got, &o, &e)
		}
		return o.String() + e.String()
	}
	old := filepath.Join(home, "index.db")
	put(t, home, "index.db", "from before")
	goclaw(server.dsn(), "ask", "-s", "t:cli:a", "tell me about the quokka")
	goclaw(server.dsn(), "search", "--index")
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the index from before is there (%v)", err)
	}
	goclaw("", "ask", "-s", "t:cli:a", "tell me about the platypus")
	goclaw("", "search", "--index")
	for range 2 {
		for path, word := range map[string]string{server.dsn(): "quokka", "": "platypus"} {
			if out := goclaw(path, "search", "--index"); !strings.Contains(out, "0 vectors new") {
				t.Errorf("in %q there was something to index: %s", path, out)
			}
			if out := goclaw(path, "search", word); !strings.Contains(out, word) {
				t.Errorf("%s is not found: %s", word, out)
			}
		}
	}
	own, _ := filepath.Glob(filepath.Join(home, "index-*.db"))
	if _, err := os.Stat(old); err != nil || len(own) != 1 {
		t.Fatalf("the indexes are %v (%v)", own, err)
	}
	c := &config.Loaded{Home: home}
	c.Session.Store, c.Session.Path = "postgres", server.dsn()
	for _, part := range []string{"", "-wal", "-shm"} {
		if !slices.Contains(permits.Fence(c).Private, own[0]+part) {
			t.Errorf("a model may read %s", own[0]+part)
		}
	}
}

// Followers in other processes see a turn as it runs: the parts of its answer
// while the model speaks, and the answer when it is recorded. The model waits
// until they have.
func TestPostgresFollow(t *testing.T) { followed(t, pgServer(t).dsn()) }

// followed tests that followers see a turn of another process as it runs.
func followed(t *testing.T, dsn string) {
	st, err := postgres.Open(t.Context(), dsn, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log := sessiontest.Log(session.Header{Version: session.Version, ID: "f", Key: "t:cli:x"})
	if err := st.Append(t.Context(), "f", log...); err != nil {
		t.Fatal(err)
	}
	seen, answer := make(chan struct{}), make(chan string, 1)
	go func() {
		part := sync.OnceFunc(func() { close(seen) })
		for r, err := range session.Follow(t.Context(), st, "f", 1) {
			switch b := r.Body.(type) {
			case session.Partial:
				part()
			case session.Message:
				if err == nil && b.Role == "assistant" {
					answer <- b.Text()
					return
				}
			}
		}
	}()
	const begins = "This takes a while. "
	m := newPgModel(t, func(w http.ResponseWriter, r *http.Request) {
		event(w, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		event(w, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, begins+strings.Repeat("and on ", 1000)))
		select {
		case <-seen:
		case <-r.Context().Done():
			return
		}
		event(w, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"to its end."}}`)
		event(w, `{"type":"content_block_stop","index":0}`)
		event(w, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`)
		event(w, `{"type":"message_stop"}`)
	})
	env := []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + m.URL, "GOCLAW_SESSION_PATH=" + dsn}
	tail, _, _ := child(t, t.TempDir(), "sessions", "tail", "-f", "--json", "t:cli:x")
	tail.Env = append(tail.Env, env...)
	tail.Stdout = nil
	out, err := tail.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { tail.Process.Kill(); tail.Wait() }()
	cmd, _, errOut := child(t, t.TempDir(), "ask", "-s", "t:cli:x", "hello")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, errOut)
	}
	if got := <-answer; !strings.HasPrefix(got, begins) || !strings.HasSuffix(got, "to its end.") {
		t.Errorf("the follower read %.50q", got)
	}
	for said, buf := "", make([]byte, 64<<10); !strings.Contains(said, begins) || !strings.Contains(said, "to its end."); {
		n, err := out.Read(buf)
		if said += string(buf[:n]); err != nil {
			t.Fatalf("%v after %q", err, said)
		}
	}
}

// pgModel is a model's server. The first request is answered by first, the others
// with "Done.".
type pgModel struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string // the bodies of the requests
}

// event writes an event of Anthropic's.
func event(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "event: x\ndata: %s\n\n", data)
	w.(http.Flusher).Flush()
}

func newPgModel(t *testing.T, first func(w http.ResponseWriter, r *http.Request)) *pgModel {
	m := &pgModel{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.asked = append(m.asked, string(body))
		n := len(m.asked)
		m.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
		if n == 1 {
			first(w, r)
			return
		}
		answerWith(w, "Done.")
	}))
	t.Cleanup(m.Close)
	return m
}

// answerWith ends an answer with a text.
func answerWith(w http.ResponseWriter, text string) {
	event(w, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	event(w, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, text))
	event(w, `{"type":"content_block_stop","index":0}`)
	event(w, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`)
	event(w, `{"type":"message_stop"}`)
}

// A process that is stopped in the middle of a turn loses the session to another.
// When it goes on, its answer is refused, and its turn ends with an error.
func TestPostgresStopped(t *testing.T) {
	server := pgServer(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	m := newPgModel(t, func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		answerWith(w, "Late.")
	})
	ask := func(home, text string) (start func() error, wait func() (int, string), signal func(os.Signal) error) {
		cmd, _, errOut := child(t, home, "ask", "-s", "t:cli:x", text)
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL, "GOCLAW_SESSION_PATH="+server.dsn()+"&goclaw_lease=1s")
		t.Cleanup(func() { cmd.Process.Kill() })
		return cmd.Start, func() (int, string) { cmd.Wait(); return cmd.ProcessState.ExitCode(), errOut.String() }, func(s os.Signal) error { return cmd.Process.Signal(s) }
	}
	start, wait, signal := ask(t.TempDir(), "take your time")
	if err := start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	other, otherEnd, _ := ask(t.TempDir(), "are you there?")
	if err := other(); err != nil {
		t.Fatal(err)
	}
	if code, said := otherEnd(); code != 0 {
		t.Fatalf("the other exits %d: %s", code, said)
	}
	close(answer)
	if err := signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, said := wait(); code != 1 || !strings.Contains(said, "the lock was lost") {
		t.Errorf("the one that was stopped exits %d: %s", code, said)
	}
	wantWords(t, server, "take your time", "are you there?", "Done.")
}

// A process that is killed while a tool runs: another takes over at once, the call
// is answered as interrupted, and the tool ran once.
func TestPostgresKilled(t *testing.T) {
	server := pgServer(t)
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	m := newPgModel(t, func(w http.ResponseWriter, r *http.Request) {
		event(w, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}`)
		event(w, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`, fmt.Sprintf(`{"command":"echo ran >> %s; sleep 5"}`, ran)))
		event(w, `{"type":"content_block_stop","index":0}`)
		event(w, `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}}`)
		event(w, `{"type":"message_stop"}`)
	})
	env := []string{"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + m.URL, "GOCLAW_TOOLS_BASH=on", "PATH=" + os.Getenv("PATH"), "GOCLAW_SESSION_PATH=" + server.dsn()}
	cmd, _, errOut := child(t, t.TempDir(), "ask", "-s", "t:cli:x", "run it")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ran); err == nil {
			break
		}
		if time.Since(begin) > testPatience {
			cmd.Process.Kill()
			cmd.Wait()
			t.Fatalf("the tool does not run: %s", errOut)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	other, _, errOut := child(t, t.TempDir(), "ask", "-s", "t:cli:x", "what happened?")
	other.Env = append(other.Env, env...)
	if err := other.Run(); err != nil {
		t.Fatalf("%v: %s", err, errOut)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := m.asked[len(m.asked)-1]; !strings.Contains(last, "nterrupted") || !strings.Contains(last, "toolu_1") {
		t.Errorf("the call is not answered as interrupted: %s", last)
	}
	if b, err := os.ReadFile(ran); err != nil || string(b) != "ran\n" {
		t.Errorf("the tool ran: %q (%v)", b, err)
	}
	wantWords(t, server, "run it", "", "what happened?", "Done.")
}

// wantWords reports a session whose messages are others.
func wantWords(t *testing.T, server database, want ...string) {
	t.Helper()
	st, err := postgres.Open(t.Context(), server.dsn(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	in, err := session.Current(t.Context(), st, "t:cli:x")
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Replay(in.ID, st.Read(t.Context(), in.ID, 0))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range s.Branch {
		if m, ok := r.Body.(session.Message); ok {
			got = append(got, m.Text())
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the messages are %q, want %q", got, want)
	}
}
