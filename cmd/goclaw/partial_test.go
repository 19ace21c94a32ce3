//go:build unix

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// talking is a server that answers as Anthropic does: the first time it says
// words, numbered, until n of them are said, and hangs; then it repeats what it
// was sent.
func talking(t *testing.T, n int) (url string, sent *[]string) {
	t.Helper()
	sent = &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		*sent = append(*sent, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		ev := func(data string) { fmt.Fprintf(w, "event: x\ndata: %s\n\n", data) }
		ev(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
		ev(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		if len(*sent) > 1 {
			ev(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}`)
			ev(`{"type":"content_block_stop","index":0}`)
			ev(`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":5}}`)
			ev(`{"type":"message_stop"}`)
			return
		}
		for i := range n {
			ev(fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"word%06d "}}`, i))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL, sent
}

// TestKilledInMidAnswer: of an answer that was shown when goclaw was killed, all
// but the last few kilobytes are there afterwards, for people, for search and
// for the model, marked as interrupted and once.
func TestKilledInMidAnswer(t *testing.T) {
	const words = 17_000 // of 11 bytes
	home := t.TempDir()
	url, sent := talking(t, words)
	cmd, _, errOut := child(t, home, "ask", "count")
	cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	cmd.Stdout = nil
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	last := fmt.Sprintf("word%06d", words-1)
	for said, buf := "", make([]byte, 64<<10); !strings.Contains(said, last); {
		n, err := out.Read(buf)
		if said = said[max(0, len(said)-20):] + string(buf[:n]); err != nil {
			t.Fatalf("%v\n%s", err, errOut)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	count := func(text string) int { return strings.Count(text, "word0") }
	shown := spawn(t, home, "sessions", "show", "main:cli:user")
	kept := count(shown)
	t.Logf("%d of %d words were kept", kept, words)
	if kept > words || (words-kept)*11 > 8<<10 {
		t.Errorf("%d of %d words were kept", kept, words)
	}
	if !strings.Contains(shown, "interrupted: goclaw ended before the answer did") {
		t.Errorf("show does not say that the answer was interrupted:\n%.300s ... %s", shown, shown[max(0, len(shown)-300):])
	}
	for _, args := range [][]string{{"sessions", "export", "main:cli:user"}, {"sessions", "export", "--format", "md", "main:cli:user"}} {
		if n := count(spawn(t, home, args...)); n != kept {
			t.Errorf("%v has %d words, want %d", args, n, kept)
		}
	}
	if got := spawn(t, home, "sessions", "tail", "main:cli:user"); !strings.Contains(got, "word000000") || strings.Count(got, "\n") > 4 {
		t.Errorf("tail shows\n%s", got)
	}
	if got := spawn(t, home, "search", "word000000"); strings.Count(got, "word000000 word000001") != 1 {
		t.Errorf("search finds\n%.2000s", got)
	}

	// The next request has what was said, and only once; so has the log when the
	// turn is over.
	cmd, _, errOut = child(t, home, "ask", "and then?")
	cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	if n := count((*sent)[1]); n != kept {
		t.Errorf("the next request has %d words, want %d", n, kept)
	}
	if n := count(spawn(t, home, "sessions", "show", "main:cli:user")); n != kept {
		t.Errorf("show has %d words afterwards, want %d", n, kept)
	}
	spawn(t, home, "doctor")
}

// TestWholeAnswerIsThereOnce: the parts of an answer that came to its end are
// not shown, not sent, not found and not counted.
func TestWholeAnswerIsThereOnce(t *testing.T) {
	home := t.TempDir()
	var sent []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3000 {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word%06d \"},\"finish_reason\":null}]}\n\n", i)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	run := func(args ...string) string {
		cmd, out, errOut := child(t, home, args...)
		cmd.Env = append(cmd.Env, "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+srv.URL+"/v1")
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, errOut)
		}
		return out.String()
	}
	if got := run("ask", "--model", "openai/gpt-4o", "count"); strings.Count(got, "\n") != 1 {
		t.Errorf("the answer is shown in %d lines", strings.Count(got, "\n"))
	}
	run("ask", "--model", "openai/gpt-4o", "again")
	if n := strings.Count(sent[1], "word0"); n != 3000 {
		t.Errorf("the second request has %d words, want 3000", n)
	}
	if !strings.Contains(run("sessions", "export", "main:cli:user"), "goclaw.partial") {
		t.Error("no part was recorded")
	}
	for args, want := range map[string]int{"sessions show main:cli:user": 6000, "sessions export --format md main:cli:user": 6000} {
		if n := strings.Count(run(strings.Fields(args)...), "word0"); n != want {
			t.Errorf("%s has %d words, want %d", args, n, want)
		}
	}
	if got := run("sessions", "tail", "-n", "100", "main:cli:user"); strings.Count(got, "word000000") != 2 {
		t.Errorf("tail shows\n%s", got)
	}
	if got := run("search", "word000000"); strings.Count(got, "word000000 word000001") != 1 || !strings.Contains(got, "and 1 more like it") {
		t.Errorf("search finds\n%.2000s", got)
	}
}
