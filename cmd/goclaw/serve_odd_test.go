//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/acpd"
	"goclaw/internal/config"
)

// Odd requests get a clear answer, and cost nothing.
func TestServeOdd(t *testing.T) {
	t.Parallel()
	model, goOn := slowly(t)
	home := t.TempDir()
	s := serving(t, home, t.TempDir(), model)
	var made struct{ ID string }
	s.get(201, "POST", "/v1/sessions", "", &made)
	at := "/v1/sessions/" + made.ID

	// Numbers beyond every record.
	var page struct{ Records []json.RawMessage }
	for _, path := range []string{"/records", "/transcript"} {
		s.get(200, "GET", at+path+"?after=9223372036854775807", "", &page)
		if len(page.Records) != 0 {
			t.Errorf("%s beyond the end: %s", path, page.Records)
		}
	}
	for _, id := range []string{"9223372036854775807", "2", "2.a.0", "x"} { // the log has one record
		s.get(400, "GET", at+"/events", "", nil, "Last-Event-ID", id)
	}
	for _, place := range []string{"garbage", "_a_b_c", "again_2026-01-01T00:00:00Z", made.ID} {
		s.get(400, "GET", "/v1/sessions?after="+place, "", nil)
	}
	s.get(400, "POST", at+"/turns", `{"text":" \n"}`, nil)
	s.get(400, "PATCH", at, `{"title":"`+strings.Repeat("x", 2000)+`"}`, nil)
	var named struct{ Title string }
	if s.get(200, "PATCH", at, `{"title":" one\nline "}`, &named); named.Title != "one line" {
		t.Errorf("the title is %q", named.Title)
	}

	// Methods, and how a token can be sent.
	for path, want := range map[string]string{"/v1/sessions": "GET, POST", at: "GET, PATCH, DELETE", "/healthz": "GET", at + "/fork": "POST"} {
		resp := s.ask("PUT", path, "{}")
		if resp.StatusCode != 405 || resp.Header.Get("Allow") != want || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("PUT %s: %d, Allow %q", path, resp.StatusCode, resp.Header.Get("Allow"))
		}
	}
	s.get(200, "GET", at, "", nil, "Authorization", "bearer "+s.token)
	link := strings.TrimPrefix(s.login, s.url)
	s.ask("HEAD", link, "", "Authorization", "")
	if resp := s.ask("GET", link, "", "Authorization", ""); resp.StatusCode != 303 {
		t.Errorf("a login link that was looked at first: %d", resp.StatusCode)
	}

	// A session that is deleted while a turn runs keeps what was said.
	next := events(t, s.ask("POST", at+"/turns", `{"text":"be slow"}`).Body)
	goOn <- "half an answer"
	for ev, ok := next(); ev.Type != "delta"; ev, ok = next() {
		if !ok {
			t.Fatal("the stream ended")
		}
	}
	s.get(204, "DELETE", at, "", nil)
	var problem struct{ Detail string }
	s.get(404, "GET", at, "", &problem)
	if !strings.Contains(problem.Detail, "in the trash") {
		t.Errorf("a deleted session: %q", problem.Detail)
	}
	s.get(200, "POST", at+"/restore", "", nil)
	s.get(200, "GET", at+"/records", "", &page)
	if all := fmt.Sprintf("%s", page.Records); !strings.Contains(all, "half an answer") {
		t.Errorf("what was said is lost: %s", all)
	}

	// A token that others can read is one no more.
	if err := os.Chmod(filepath.Join(home, "serve-token"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("goclaw", "serve", "--addr", "127.0.0.1:0")
	cmd.Env = s.cmd.Env
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "others can read the token") {
		t.Errorf("%v: %s", err, out)
	}
}

// Programs that ask at the same time, with names that are no keys, for what
// nobody can allow.
func TestServeCompletionsOdd(t *testing.T) {
	t.Parallel()
	model, goOn := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	ask := func(user, text string) (int, string) {
		body, _ := json.Marshal(map[string]any{"model": "goclaw", "user": user, "messages": []map[string]string{{"role": "user", "content": text}}})
		resp := s.ask("POST", "/v1/chat/completions", string(body))
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(data)
	}
	codes := make(chan int)
	for range 4 {
		go func() {
			code, _ := ask("a b\n", "be slow")
			codes <- code
		}()
	}
	for range 3 {
		if code := <-codes; code != 409 {
			t.Errorf("while another runs: %d", code)
		}
	}
	goOn <- "word"
	goOn <- ""
	if code := <-codes; code != 200 {
		t.Errorf("the one that runs: %d", code)
	}
	var list struct{ Sessions []struct{ Key string } }
	s.get(200, "GET", "/v1/sessions", "", &list)
	if len(list.Sessions) != 1 || strings.ContainsAny(list.Sessions[0].Key, " \n") {
		t.Errorf("the sessions are %+v", list)
	}
	if code, text := ask("silent", "be silent"); code != 200 || strings.Contains(text, `"content":"NO_REPLY"`) {
		t.Errorf("a silent model: %d %s", code, text)
	}
}

// TestServeComesBack is a client whose connection breaks after every few events, at
// any place of a turn that thinks, speaks, calls tools and speaks again. It misses
// nothing and sees nothing twice.
func TestServeComesBack(t *testing.T) {
	t.Parallel()
	var goOn = make(chan struct{}) // a piece of the answer for each
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		step := strings.Count(string(raw), `"tool_result"`)
		w.Header().Set("Content-Type", "text/event-stream")
		ev := func(name, data string) {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
			w.(http.Flusher).Flush()
		}
		piece := func(index int, kind, field, text string) {
			quoted, _ := json.Marshal(text)
			<-goOn
			ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, kind, field, quoted))
		}
		ev("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}`)
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)
		for i := range 10 {
			piece(0, "thinking_delta", "thinking", fmt.Sprintf("hm %d.%d 漢 ", step, i))
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
		ev("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`)
		for i := range 40 {
			piece(1, "text_delta", "text", fmt.Sprintf("wörd %d.%d 🙂 ", step, i))
		}
		ev("content_block_stop", `{"type":"content_block_stop","index":1}`)
		stop := "end_turn"
		if step < 2 {
			stop = "tool_use"
			ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_%d","name":"glob","input":{}}}`, step))
			ev("content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"pattern\":\"*\"}"}}`)
			ev("content_block_stop", `{"type":"content_block_stop","index":2}`)
		}
		ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"`+stop+`","stop_sequence":null},"usage":{"output_tokens":7}}`)
		ev("message_stop", `{"type":"message_stop"}`)
	}))
	t.Cleanup(model.Close)
	s := serving(t, t.TempDir(), t.TempDir(), model.URL)
	var made struct{ ID string }
	s.get(201, "POST", "/v1/sessions", "", &made)
	at := "/v1/sessions/" + made.ID
	essence := func(list []string, ev happened) []string {
		text := fmt.Sprint(ev.Type, ":", ev.Data["text"])
		if ev.Type != "delta" && ev.Type != "thinking" {
			data, _ := json.Marshal(ev.Data)
			return append(list, string(data))
		}
		if n := len(list); n > 0 && strings.HasPrefix(list[n-1], ev.Type+":") {
			list[n-1] += text[len(ev.Type)+1:]
			return list
		}
		return append(list, text)
	}
	read := func(resp *http.Response, most int, take func(happened)) (over bool) {
		defer resp.Body.Close()
		next := events(t, resp.Body)
		for ; most > 0; most-- {
			ev, ok := next()
			if !ok {
				t.Fatal("the stream ended before the turn")
			}
			if ev.Type == "done" || ev.Type == "error" {
				return true
			}
			take(ev)
		}
		return false
	}
	random := rand.New(rand.NewSource(1))
	var seen []string
	last, breaks := "", 0
	take := func(ev happened) {
		if ev.ID != "" {
			last, seen = ev.ID, essence(seen, ev)
		}
	}
	for over := read(s.ask("POST", at+"/turns", `{"text":"go"}`), 1, take); !over; breaks++ {
		for range 1 + random.Intn(3) {
			go func() {
				select {
				case goOn <- struct{}{}:
				case <-t.Context().Done():
				}
			}()
		}
		over = read(s.ask("GET", at+"/turns/current", "", "Last-Event-ID", last), 1, take)
	}
	var want []string
	read(s.ask("GET", at+"/turns/current", "", "Last-Event-ID", "1"), 1<<20, func(ev happened) { want = essence(want, ev) })
	if a, b := strings.Join(seen, "\n"), strings.Join(want, "\n"); a != b || strings.Count(b, "wörd") != 240 { // in pieces, and in records
		t.Errorf("after %d breaks:\n%s\nwant\n%s", breaks, a, b)
	}
	if breaks < 50 {
		t.Errorf("only %d breaks", breaks)
	}
}

// What an editor says about a server is taken as it is.
func TestEditorServerLiterally(t *testing.T) {
	t.Setenv("HOME", "/elsewhere")
	s := serverOf(&config.Loaded{}, verbatim(acpd.Server{Command: "run", Args: []string{"a$HOME", "${HOME}$"}, Env: map[string]string{"WORD": "pa$$word"}, Headers: map[string]string{"Key": "$HOME"}}))
	if fmt.Sprint(s.Args) != "[a$HOME ${HOME}$]" || s.Env[len(s.Env)-1] != "WORD=pa$$word" || s.Headers["Key"] != "$HOME" {
		t.Errorf("the server is %q %q %q", s.Args, s.Env[len(s.Env)-1], s.Headers)
	}
}
