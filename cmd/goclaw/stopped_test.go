//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// hanging is a server that begins to answer as Anthropic does, and does not
// end.
func hanging(t *testing.T) (url string) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, ev := range []string{
			`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1000,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"So far, so good."}}`,
		} {
			fmt.Fprintf(w, "event: x\ndata: %s\n\n", ev)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestStoppedAsk: Ctrl-C ends ask with 130, and what was said and used so far
// is kept, with what it cost.
func TestStoppedAsk(t *testing.T) {
	for _, args := range [][]string{{"ask", "go"}, {"ask", "--json", "go"}} {
		home := t.TempDir()
		cmd, _, errOut := child(t, home, args...)
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+hanging(t))
		cmd.Stdout = nil
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for said, buf := "", make([]byte, 4096); !strings.Contains(said, "so good."); {
			n, err := out.Read(buf)
			if said += string(buf[:n]); err != nil {
				t.Fatalf("%v after %q\n%s", err, said, errOut)
			}
		}
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("%v: exit code %d, want 130\n%s", args, code, errOut)
		}
		log := spawn(t, home, "sessions", "export", "main:cli:user")
		for _, want := range []string{
			`"text":"So far, so good."`, `"stopReason":"aborted"`, `"usage":{"input":1000,"output":`, `"cost":{"input":0.003,"output":0.000`, `"estimated":true`,
		} {
			if !strings.Contains(log, want) {
				t.Errorf("%v: the log has no %s:\n%s", args, want, log)
			}
		}
	}
}
