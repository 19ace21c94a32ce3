//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// On a terminal of 40 columns commands break their lines between words, and
// what may be copied is in one piece; elsewhere nothing is broken.
func TestCommandsOnANarrowTerminal(t *testing.T) {
	const question = "Could you establish which counterparties acknowledged the outstanding reconciliation statements?"
	home, dir := t.TempDir(), t.TempDir()
	path := filepath.Join(dir, "a-transcript-with-a-long-name.jsonl")
	lines := `{"type":"session","version":3,"id":"aaaa0001","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"` + question + `"}],"timestamp":1}}
`
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "GOCLAW_HOME": home, "GOCLAW_NO_LOCAL": "1", "TERM": "xterm", "NO_COLOR": "1"}
	getenv := func(name string) string { return env[name] }
	for _, c := range []struct {
		args string
		code int
		want string // as the program writes it, a line of the terminal each
	}{
		{"import --dry-run " + dir, 0, "\npi          pi:w:aaaa0001\n  " + path + "\n"},
		{"import " + dir, 0, "1 session: 1 new; 2 records imported in"},
		{"sessions show aaaa0001", 0, "Could you establish which counterparties\nacknowledged the outstanding\nreconciliation statements?\n"},
		{"sessions show there-is-none", 1, "goclaw: there is no session\n\"there-is-none\""},
		{"search reconciliation", 0, " 1. pi:w:aaaa…  user  record 2\n"},
	} {
		p := tuitest.New(t, 40, 24)
		if code := run(strings.Fields(c.args), p.TTY, p.TTY, p.TTY, getenv); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.args, code, c.code)
		}
		want := strings.ReplaceAll(c.want, "\n", "\r\n")
		p.Await(c.args+" to write "+want, func(string, int, int) bool { return strings.Contains(p.All(), want) })
	}
	var out, errs strings.Builder
	if code := run([]string{"sessions", "show", "aaaa0001"}, nil, &out, &errs, getenv); code != 0 || !strings.Contains(out.String(), "\n"+question+"\n") {
		t.Errorf("where there is no terminal the question is broken (exit code %d): %q %q", code, out.String(), errs.String())
	}
}

// An answer that arrives in pieces is broken between words, and its tables are
// drawn: by ask, in the chat, and when the session is shown again.
func TestAnswerOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	const answer = "The reconciliation statements were acknowledged by these counterparties:\n\n| Name | State |\n|---|--:|\n| Aurelia Shipping | acknowledged in full |\n| Borealis | open |\n\nNothing else."
	const want = "The reconciliation statements were\nacknowledged by these\ncounterparties:\n\nName             │             State\n─────────────────┼──────────────────\nAurelia Shipping │   acknowledged in\n                 │              full\nBorealis         │              open\n\nNothing else."
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		ev := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
		ev("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for rest := answer; rest != ""; {
			n := min(5, len(rest))
			piece, _ := json.Marshal(rest[:n])
			rest = rest[n:]
			ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(piece)+`}}`)
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
		ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
		ev("message_stop", `{"type":"message_stop"}`)
	}))
	t.Cleanup(srv.Close)
	home := t.TempDir()
	start := func(args ...string) (*tuitest.Person, *exec.Cmd) {
		p := tuitest.New(t, 36, 40)
		cmd := exec.Command("goclaw", args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = p.TTY, p.TTY, p.TTY
		cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=xterm", "NO_COLOR=1", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=sk-test-0123456789"}
		cmd.Dir = home
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		return p, cmd
	}
	p, cmd := start("ask", "--new", "-s", "main:cli:ask", "who acknowledged?")
	p.See(want)
	exits(t, cmd)
	p, cmd = start("sessions", "show", "main:cli:ask")
	p.See(want)
	exits(t, cmd)
	p, _ = start()
	p.Rests()
	p.Press("who acknowledged?\r")
	p.See("\nNothing else.")
}
