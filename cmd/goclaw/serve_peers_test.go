//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// awaited reads events until one of the type kind, and returns it.
func awaited(t *testing.T, next func() (happened, bool), kind string) happened {
	t.Helper()
	for {
		ev, ok := next()
		if !ok {
			t.Fatalf("the stream ended without %s", kind)
		}
		if ev.Type == kind {
			return ev
		}
		if ev.Type == "error" || ev.Type == "done" {
			t.Fatalf("the turn ended without %s: %v", kind, ev.Data)
		}
	}
}

// heard reads events until the deltas say text, and returns the id of the last.
func heard(t *testing.T, next func() (happened, bool), text string) (id string) {
	t.Helper()
	for said := ""; said != text; {
		ev := awaited(t, next, "delta")
		said, id = said+ev.Data["text"].(string), ev.ID
		if !strings.HasPrefix(text, said) {
			t.Fatalf("heard %q, want %q", said, text)
		}
	}
	return id
}

// questioned returns how often the log of a session has a message of the user with
// text, and how many messages there are.
func questioned(s *server, at, text string) (n, messages int) {
	s.t.Helper()
	var page struct{ Records []json.RawMessage }
	s.get(200, "GET", at+"/records?after=0&limit=1000", "", &page)
	for _, rec := range page.Records {
		if strings.Contains(string(rec), `"message"`) {
			messages++
			if strings.Contains(string(rec), text) && strings.Contains(string(rec), `"role":"user"`) {
				n++
			}
		}
	}
	return n, messages
}

// Two servers with one database act as one behind a plain balancer.
func TestServersAsOne(t *testing.T) {
	t.Parallel()
	db := pgServer(t)
	model, goOn := slowly(t)
	folder := t.TempDir()
	token := strings.Repeat("0123456789abcdef", 4)
	var two [2]*server
	for i := range two {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "serve-token"), []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		two[i] = servingIn(t, []string{"GOCLAW_SESSION_STORE=postgres", "GOCLAW_SESSION_PATH=" + db.dsn()}, home, folder, model)
	}
	a, b := two[0], two[1]
	var n atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		to, _ := url.Parse(two[n.Add(1)%2].url)
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}})
	t.Cleanup(balancer.Close)
	both := &server{t: t, url: balancer.URL, token: token}

	var made struct{ ID string }
	both.get(201, "POST", "/v1/sessions", `{"title":"Shared"}`, &made)
	at := "/v1/sessions/" + made.ID
	both.get(200, "GET", at, "", nil)
	both.get(200, "GET", at, "", nil)

	// What a says arrives at b while a says it, and b can go on in the middle.
	watch := events(t, b.ask("GET", at+"/events", "").Body)
	first := events(t, a.ask("POST", at+"/turns", `{"text":"be slow"}`).Body)
	goOn <- "one "
	last := heard(t, watch, "one ")
	heard(t, first, "one ")
	b.get(409, "POST", at+"/turns", `{"text":"another"}`, nil)
	goOn <- "two "
	heard(t, events(t, b.ask("GET", at+"/turns/current", "", "Last-Event-ID", last).Body), "two ")
	heard(t, watch, "two ")
	// Who begins to follow in the middle hears the answer from there on.
	late := events(t, b.ask("GET", at+"/events", "", "Last-Event-ID", last).Body)
	heard(t, late, "two ")
	goOn <- "three"
	goOn <- ""
	heard(t, watch, "three")
	awaited(t, watch, "done")
	awaited(t, first, "done")
	heard(t, late, "three")
	awaited(t, late, "done")

	// A question of a's turn, seen and answered at b.
	a.get(202, "POST", at+"/turns", `{"text":"call write_file {\"path\":\"a.txt\",\"content\":\"hello\"}"}`, nil, "Prefer", "respond-async")
	q := awaited(t, watch, "question")
	var open struct{ Questions []map[string]any }
	b.get(200, "GET", at+"/questions", "", &open)
	if len(open.Questions) != 1 || open.Questions[0]["id"] != q.Data["id"] {
		t.Errorf("the open questions are %v, want %v", open, q.Data)
	}
	b.get(204, "POST", at+"/questions/"+q.Data["id"].(string), `{"answer":"once"}`, nil)
	awaited(t, watch, "done")
	if data, _ := os.ReadFile(filepath.Join(folder, "a.txt")); string(data) != "hello" {
		t.Errorf("the file is %q", data)
	}

	// A turn of a that is stopped at b.
	first = events(t, a.ask("POST", at+"/turns", `{"text":"be slow again"}`).Body)
	goOn <- "half "
	heard(t, first, "half ")
	b.get(204, "DELETE", at+"/turns/current", "", nil)
	if ev := awaited(t, first, "error"); ev.Data["message"] != "stopped: the answer so far is kept" {
		t.Errorf("the turn ended with %v", ev.Data)
	}
	awaited(t, watch, "error")

	// A request that is sent to both, while its turn runs and after it.
	const retried = `{"text":"slow and once"}`
	first = events(t, a.ask("POST", at+"/turns", retried, "Idempotency-Key", "k7").Body)
	goOn <- "just "
	heard(t, first, "just ")
	second := events(t, b.ask("POST", at+"/turns", retried, "Idempotency-Key", "k7").Body)
	heard(t, second, "just ")
	goOn <- "once"
	goOn <- ""
	for _, next := range []func() (happened, bool){first, second} {
		heard(t, next, "once")
		awaited(t, next, "done")
	}
	for _, s := range two {
		next := events(t, s.ask("POST", at+"/turns", retried, "Idempotency-Key", "k7").Body)
		heard(t, next, "just once")
		awaited(t, next, "done")
	}
	if n, _ := questioned(both, at, "slow and once"); n != 1 {
		t.Errorf("the request ran %d times", n)
	}

	heard(t, watch, "just once")
	awaited(t, watch, "done")

	// A completion that is sent to both.
	answers := make(chan string)
	complete := func(s *server) {
		resp := s.ask("POST", "/v1/chat/completions", `{"model":"goclaw","user":"ana","messages":[{"role":"user","content":"slow for both"}]}`, "Idempotency-Key", "k8")
		text, _ := io.ReadAll(resp.Body)
		answers <- string(text)
	}
	go complete(a)
	goOn <- "to each "
	go complete(b)
	if resp := b.ask("POST", "/v1/chat/completions", `{"model":"goclaw","user":"ana","messages":[{"role":"user","content":"another"}]}`); resp.StatusCode != 409 {
		t.Errorf("another completion meanwhile: %d", resp.StatusCode)
	}
	goOn <- "the same"
	goOn <- ""
	for range two {
		if text := <-answers; !strings.Contains(text, `"content":"to each the same"`) {
			t.Errorf("the answer is %s", text)
		}
	}
	if n, messages := questioned(both, "/v1/sessions/main:api:ana", "slow for both"); n != 1 || messages != 2 {
		t.Errorf("the request is in the log %d times, with %d messages", n, messages)
	}

	// Who lost a right before the end of a turn learns it from b, which heard nothing of it.
	both.get(201, "POST", "/v1/sessions", `{"title":"Another"}`, &made)
	alone := events(t, a.ask("POST", "/v1/sessions/"+made.ID+"/turns", `{"text":"hello"}`).Body)
	before, ended := happened{}, false
	for ev, ok := alone(); ok && !ended; ev, ok = alone() {
		if ended = ev.Type == "done"; !ended {
			before = ev
		}
	}
	if !ended || before.ID == "" {
		t.Fatalf("a's turn ended: %v, after %v", ended, before)
	}
	awaited(t, events(t, b.ask("GET", "/v1/sessions/"+made.ID+"/events", "", "Last-Event-ID", before.ID).Body), "done")

	// a is killed in the middle: b says so, and continues.
	watch = events(t, b.ask("GET", at+"/events", "").Body)
	a.ask("POST", at+"/turns", `{"text":"slow to the end"}`)
	words := strings.Repeat("many words ", 500)
	goOn <- words
	last = heard(t, watch, words)
	a.cmd.Process.Kill()
	a.cmd.Wait()
	if ev := awaited(t, watch, "error"); !strings.Contains(fmt.Sprint(ev.Data["message"]), "interrupted") {
		t.Errorf("followers are told %v", ev.Data)
	}
	if ev := awaited(t, events(t, b.ask("GET", at+"/turns/current", "", "Last-Event-ID", last).Body), "error"); !strings.Contains(fmt.Sprint(ev.Data["message"]), "interrupted") {
		t.Errorf("who comes back is told %v", ev.Data)
	}
	next := events(t, b.ask("POST", at+"/turns", `{"continue":true}`).Body)
	awaited(t, next, "done")
	if n, _ := questioned(b, at, "slow to the end"); n != 1 {
		t.Errorf("the message is in the log %d times", n)
	}
	var sent struct{ Messages []json.RawMessage }
	b.get(200, "GET", at+"/context", "", &sent)
	if all := fmt.Sprintf("%s", sent.Messages); !strings.Contains(all, "many words many words") {
		t.Errorf("after the death of a server the conversation is %.2000s", all)
	}
	if resp, err := http.Get(b.url + "/healthz"); err != nil || resp.StatusCode != 200 {
		t.Errorf("health: %v %v", resp, err)
	}
}

// SIGTERM interrupts what does not end in time: what was said is kept, streams
// and the program end, no lock is left, and another server continues.
func TestServeStops(t *testing.T) {
	t.Parallel()
	model, goOn := slowly(t)
	home, folder := t.TempDir(), t.TempDir()
	s := serving(t, home, folder, model, "--grace", "10ms")
	var made struct{ ID string }
	s.get(201, "POST", "/v1/sessions", "", &made, "Idempotency-Key", "new")
	at := "/v1/sessions/" + made.ID
	watch := events(t, s.ask("GET", at+"/events", "").Body)
	next := events(t, s.ask("POST", at+"/turns", `{"text":"be slow"}`, "Idempotency-Key", "k1").Body)
	goOn <- "half an "
	heard(t, next, "half an ")
	s.cmd.Process.Signal(syscall.SIGTERM)
	for _, next := range []func() (happened, bool){next, watch} {
		if ev := awaited(t, next, "error"); !strings.Contains(fmt.Sprint(ev.Data["message"]), "can be continued") {
			t.Errorf("the turn ended with %v", ev.Data)
		}
		for ok := true; ok; {
			_, ok = next()
		}
	}
	if code := exits(t, s.cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}

	// The same requests after the restart run nothing again.
	s = serving(t, home, folder, model)
	first := made.ID
	s.get(201, "POST", "/v1/sessions", "", &made, "Idempotency-Key", "new")
	if made.ID != first {
		t.Errorf("the session was begun twice: %s and %s", first, made.ID)
	}
	next = events(t, s.ask("POST", at+"/turns", `{"text":"be slow"}`, "Idempotency-Key", "k1").Body)
	heard(t, next, "half an ")
	awaited(t, next, "error")
	s.get(422, "POST", at+"/turns", `{"text":"something else"}`, nil, "Idempotency-Key", "k1")
	s.get(400, "POST", at+"/turns", `{"text":"be slow"}`, nil, "Idempotency-Key", strings.Repeat("k", 300))
	if n, _ := questioned(s, at, "be slow"); n != 1 {
		t.Errorf("the request ran %d times", n)
	}
	awaited(t, events(t, s.ask("POST", at+"/turns", `{"continue":true}`).Body), "done")
	// An earlier request is told to its own end, not to that of the turn after it.
	next = events(t, s.ask("POST", at+"/turns", `{"text":"another"}`).Body)
	heard(t, next, "echo: another")
	awaited(t, next, "done")
	next = events(t, s.ask("POST", at+"/turns", `{"text":"be slow"}`, "Idempotency-Key", "k1").Body)
	for ev, ok := next(); ok; ev, ok = next() {
		if strings.Contains(fmt.Sprint(ev.Data), "another") {
			t.Errorf("an old request is answered with %v", ev.Data)
		}
	}

	// Killed: a request that was recorded runs once, whether it has begun or not.
	next = events(t, s.ask("POST", at+"/turns", `{"text":"slow once more"}`, "Idempotency-Key", "k2").Body)
	goOn <- "some "
	heard(t, next, "some ")
	s.cmd.Process.Kill()
	s.cmd.Wait()
	s = serving(t, home, folder, model)
	awaited(t, events(t, s.ask("POST", at+"/turns", `{"text":"slow once more"}`, "Idempotency-Key", "k2").Body), "error")
	if n, _ := questioned(s, at, "slow once more"); n != 1 {
		t.Errorf("after a kill the request ran %d times", n)
	}

	st, err := sqlite.Open(filepath.Join(home, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log, err := session.Open(t.Context(), st, session.ID(made.ID))
	if err != nil {
		t.Fatal(err)
	}
	request := session.Custom{Type: "goclaw.request", Data: json.RawMessage(`{"key":"k3"}`)}
	if _, err := session.Keep(t.Context(), st, log, log.Next(request, session.System{}), session.System{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		awaited(t, events(t, s.ask("POST", at+"/turns", `{"text":"never begun"}`, "Idempotency-Key", "k3").Body), "done")
	}
	if n, _ := questioned(s, at, "never begun"); n != 1 {
		t.Errorf("a request that had not begun ran %d times", n)
	}

	// A second signal does not wait.
	next = events(t, s.ask("POST", at+"/turns", `{"text":"slow again"}`).Body)
	goOn <- "and "
	heard(t, next, "and ")
	s.cmd.Process.Signal(syscall.SIGTERM)
	for resp := 200; resp == 200; { // until it has understood the first
		r := s.ask("POST", "/v1/sessions/"+made.ID+"/turns", `{"text":"x"}`)
		r.Body.Close()
		if resp = r.StatusCode; resp == 409 {
			resp = 200
		}
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	if code := exits(t, s.cmd); code == 0 {
		t.Errorf("exit code %d", code)
	}
}
