//go:build unix

package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/pgtest"
)

// A turn goes on when the primary is killed and the standby takes over: the
// question, the call, its result and the answer are there once, and the tool ran
// once. Commands that only read work on a standby; one that writes says in one line
// that it cannot.
func TestPostgresFailover(t *testing.T) {
	primary, err := pgtest.Start("fsync=off", "shared_buffers=16MB")
	if errors.Is(err, pgtest.ErrNone) && os.Getenv("GOCLAW_NO_SKIP") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	standby, err := primary.Standby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, "home"), 0o700); err != nil {
		t.Fatal(err)
	}
	goclaw := func(want int, dsn string, args ...string) string {
		t.Helper()
		env := map[string]string{"GOCLAW_HOME": filepath.Join(home, "home"), "HOME": home, "GOCLAW_NO_LOCAL": "1", "GOCLAW_PROVIDER": "offline", "GOCLAW_SESSION_INHERIT_ENABLED": "false", "GOCLAW_SESSION_PATH": dsn}
		var o, e strings.Builder
		if got := run(args, strings.NewReader(""), &o, &e, func(k string) string { return env[k] }); got != want {
			t.Errorf("%v exits %d, want %d\n%s%s", args, got, want, &o, &e)
		}
		return o.String() + e.String()
	}
	both := pgtest.Hosts("postgres", primary, standby)
	goclaw(0, both, "ask", "-s", "t:cli:one", "where are the pelicans?")
	if err := standby.CatchUp(primary); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sessions"}, {"sessions", "show", "t:cli:one"}, {"search", "pelicans"}} {
		if out := goclaw(0, standby.TCP("postgres"), args...); !strings.Contains(out, "pelicans") {
			t.Errorf("%v on the standby: %s", args, out)
		}
	}
	said := goclaw(1, standby.TCP("postgres")+"&goclaw_patience=1s", "ask", "-s", "t:cli:one", "and the cormorants?")
	if !strings.Contains(said, "the server is read-only (a standby?): nothing was written\n") || strings.Count(said, "goclaw:") != 1 {
		t.Errorf("ask on the standby says %q", said)
	}

	ran := filepath.Join(home, "ran")
	over := make(chan error, 1)
	m := newPgModel(t, func(w http.ResponseWriter, r *http.Request) {
		err := primary.Kill()
		go func() {
			if err == nil {
				err = standby.Promote()
			}
			over <- err
		}()
		event(w, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"bash","input":{}}}`)
		event(w, fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`, fmt.Sprintf(`{"command":"echo ran >> %s"}`, ran)))
		event(w, `{"type":"content_block_stop","index":0}`)
		event(w, `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":5}}`)
		event(w, `{"type":"message_stop"}`)
	})
	cmd, out, errOut := child(t, t.TempDir(), "ask", "-s", "t:cli:x", "run it")
	cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+m.URL, "GOCLAW_TOOLS_BASH=on", "PATH="+os.Getenv("PATH"), "GOCLAW_SESSION_PATH="+both)
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "Done.") {
		t.Errorf("a turn over a failover: %v: %s%s", err, out, errOut)
	}
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(ran); err != nil || string(b) != "ran\n" {
		t.Errorf("the tool ran: %q (%v)", b, err)
	}
	wantWords(t, database{standby, "postgres"}, "run it", "", "", "Done.")
}
