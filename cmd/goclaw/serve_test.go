//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// server is goclaw serve, as its clients see it.
type server struct {
	t          *testing.T
	cmd        *exec.Cmd
	url, token string
	login      string
}

// serving starts goclaw serve in a home, with a model that speaks Anthropic's
// API at model.
func serving(t *testing.T, home, folder, model string, args ...string) *server {
	t.Helper()
	return servingIn(t, nil, home, folder, model, args...)
}

// servingIn is serving with more in the environment.
func servingIn(t *testing.T, env []string, home, folder, model string, args ...string) *server {
	t.Helper()
	cmd := exec.Command("goclaw", append([]string{"serve", "--addr", "127.0.0.1:0", "--json"}, args...)...)
	cmd.Env = append([]string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=sk-test-0123456789"}, env...)
	cmd.Dir = folder
	cmd.Stderr = os.Stderr
	withTest(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	var first struct{ URL, TokenFile, LoginURL string }
	if err == nil {
		err = json.Unmarshal([]byte(line), &first)
	}
	if err != nil {
		t.Fatalf("the first line is %q: %v", line, err)
	}
	token, err := os.ReadFile(first.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if fi, _ := os.Stat(first.TokenFile); fi.Mode().Perm() != 0o600 {
		t.Errorf("others can read the token: %v", fi.Mode())
	}
	return &server{t, cmd, first.URL, strings.TrimSpace(string(token)), first.LoginURL}
}

// ask sends a request and returns the answer, which the caller closes.
func (s *server) ask(method, path, body string, header ...string) *http.Response {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// get sends a request, checks the status and reads the answer into v.
func (s *server) get(status int, method, path, body string, v any, header ...string) {
	s.t.Helper()
	resp := s.ask(method, path, body, header...)
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != status {
		s.t.Fatalf("%s %s: %d, want %d: %s", method, path, resp.StatusCode, status, data)
	}
	if status >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		s.t.Errorf("%s %s: the error has the type %q", method, path, resp.Header.Get("Content-Type"))
	}
	documented(s.t, resp, data)
	if v != nil {
		if err := json.Unmarshal(data, v); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
}

// api is the document of the API, and finds what it says about a request.
var api = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../internal/serve/openapi.json")
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

// documented checks that an answer is one of those that the document of the API
// describes.
func documented(t *testing.T, resp *http.Response, body []byte) {
	t.Helper()
	router, err := api()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := router.FindRoute(resp.Request)
	if err != nil {
		if resp.StatusCode != 404 {
			t.Errorf("%s %s is not in the document: %v", resp.Request.Method, resp.Request.URL.Path, err)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: resp.Request, PathParams: params, Route: route}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode, Header: resp.Header, Body: io.NopCloser(bytes.NewReader(body))}
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s %s does not answer as documented: %v", resp.Request.Method, resp.Request.URL.Path, err)
	}
}

// happened is an event that a server sent.
type happened struct {
	ID, Type string
	Data     map[string]any
}

// events returns what reads the events of a stream one by one; ok is false at
// its end.
func events(t *testing.T, body io.Reader) func() (ev happened, ok bool) {
	in := bufio.NewReader(body)
	return func() (ev happened, ok bool) {
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return ev, false
			}
			switch line = strings.TrimSpace(line); {
			case line == "" && ev.Type != "":
				return ev, true
			case strings.HasPrefix(line, "event: "):
				ev.Type = line[len("event: "):]
			case strings.HasPrefix(line, "id: "):
				ev.ID = line[len("id: "):]
			case strings.HasPrefix(line, "data: "):
				if err := json.Unmarshal([]byte(line[len("data: "):]), &ev.Data); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
	}
}

// slowly is a model that answers "slow" a word at a time, when it is told to
// go on, and everything else as anthropicAnswer does.
func slowly(t *testing.T) (url string, goOn chan string) {
	goOn = make(chan string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		if !strings.Contains(text, "slow") {
			anthropicAnswer(w, text, results)
			return
		}
		ev := func(name, data string) {
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
			w.(http.Flusher).Flush()
		}
		ev("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"output_tokens":1}}}`)
		ev("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for {
			select {
			case word := <-goOn:
				if word == "" {
					ev("content_block_stop", `{"type":"content_block_stop","index":0}`)
					ev("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":7}}`)
					ev("message_stop", `{"type":"message_stop"}`)
					return
				}
				piece, _ := json.Marshal(word)
				ev("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":`+string(piece)+`}}`)
			case <-r.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, goOn
}

func TestServe(t *testing.T)      { t.Parallel(); served(t) }
func TestServeJSONL(t *testing.T) { t.Parallel(); served(t, "GOCLAW_SESSION_STORE=jsonl") }
func TestServePostgres(t *testing.T) {
	t.Parallel()
	served(t, "GOCLAW_SESSION_STORE=postgres", "GOCLAW_SESSION_PATH="+pgServer(t).dsn())
}

// served is a program's day: sessions, turns, a question, a connection that
// breaks, a stop, and the end of the server. It is the same on every store.
func served(t *testing.T, env ...string) {
	model, goOn := slowly(t)
	home, folder := t.TempDir(), t.TempDir()
	s := servingIn(t, env, home, folder, model)

	var made struct{ ID, Key, Title, Folder string }
	s.get(201, "POST", "/v1/sessions", `{"title":"Trip"}`, &made, "Idempotency-Key", "k1")
	first := made.ID
	s.get(201, "POST", "/v1/sessions", `{"title":"Trip"}`, &made, "Idempotency-Key", "k1")
	if made.ID != first || made.Title != "Trip" || made.Folder != folder {
		t.Errorf("the same request again gives %+v, want %s", made, first)
	}
	var list struct {
		Sessions []struct{ ID, Title string }
		Next     string
	}
	s.get(200, "GET", "/v1/sessions", "", &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Title != "Trip" {
		t.Errorf("the list is %+v", list)
	}
	at := "/v1/sessions/" + made.ID

	// A turn whose connection breaks twice in the middle of a word.
	resp := s.ask("POST", at+"/turns", `{"text":"be slow"}`)
	next := events(t, resp.Body)
	text, last := "", ""
	var recorded []float64
	until := func(want string) {
		t.Helper()
		for text != want {
			ev, ok := next()
			if !ok {
				t.Fatalf("the stream ended with %q", text)
			}
			if ev.ID != "" {
				last = ev.ID
			}
			switch ev.Type {
			case "delta":
				text += ev.Data["text"].(string)
			case "recorded":
				recorded = append(recorded, ev.Data["record"].(map[string]any)["seq"].(float64))
			}
		}
	}
	goOn <- "one "
	goOn <- "two "
	until("one two ")
	resp.Body.Close()
	goOn <- "three "
	resp = s.ask("GET", at+"/turns/current", "", "Last-Event-ID", last)
	next = events(t, resp.Body)
	until("one two three ")
	resp.Body.Close()
	s.get(409, "POST", at+"/turns", `{"text":"another"}`, nil)
	goOn <- "four"
	goOn <- ""
	resp = s.ask("GET", at+"/turns/current", "", "Last-Event-ID", last)
	next = events(t, resp.Body)
	until("one two three four")
	for {
		ev, ok := next()
		if !ok {
			t.Fatal("the stream ended before the turn")
		}
		if ev.Type == "recorded" {
			recorded = append(recorded, ev.Data["record"].(map[string]any)["seq"].(float64))
		}
		if ev.Type == "delta" {
			t.Errorf("%v comes twice", ev.Data)
		}
		if ev.Type == "done" {
			last = ev.ID
			break
		}
	}
	s.get(204, "GET", at+"/turns/current", "", nil, "Last-Event-ID", last) // it was read to its end
	for i := 1; i < len(recorded); i++ {
		if recorded[i] <= recorded[i-1] {
			t.Errorf("the records came as %v", recorded)
		}
	}

	// A question, seen by one client and answered by another.
	file := filepath.Join(folder, "a.txt")
	watch := events(t, s.ask("GET", at+"/events", "").Body)
	s.get(202, "POST", at+"/turns", `{"text":"call write_file {\"path\":\"a.txt\",\"content\":\"hello\"}"}`, nil, "Prefer", "respond-async")
	var q map[string]any
	for q == nil {
		ev, ok := watch()
		if !ok {
			t.Fatal("the events ended")
		}
		if ev.Type == "question" {
			q = ev.Data
		}
	}
	if q["path"] != "a.txt" || !strings.Contains(fmt.Sprint(q["diff"]), "+hello") {
		t.Errorf("the question is %v", q)
	}
	var open struct{ Questions []map[string]any }
	s.get(200, "GET", at+"/questions", "", &open)
	if len(open.Questions) != 1 || open.Questions[0]["id"] != q["id"] {
		t.Errorf("the open questions are %v", open)
	}
	s.get(400, "POST", at+"/questions/"+q["id"].(string), `{"answer":"perhaps"}`, nil)
	if _, err := os.Stat(file); err == nil {
		t.Error("the file was written before the answer")
	}
	s.get(204, "POST", at+"/questions/"+q["id"].(string), `{"answer":"once"}`, nil)
	s.get(404, "POST", at+"/questions/"+q["id"].(string), `{"answer":"once"}`, nil)
	for {
		ev, ok := watch()
		if !ok {
			t.Fatal("the events ended")
		}
		if ev.Type == "done" {
			break
		}
	}
	if data, _ := os.ReadFile(file); string(data) != "hello" {
		t.Errorf("the file is %q", data)
	}

	// Stopped by a client: what was said is kept.
	resp = s.ask("POST", at+"/turns", `{"text":"be slow again"}`)
	next, text = events(t, resp.Body), ""
	goOn <- "half an "
	until("half an ")
	s.get(204, "DELETE", at+"/turns/current", "", nil)
	for {
		ev, ok := next()
		if !ok {
			t.Fatal("the stream ended without an error")
		}
		if ev.Type == "error" {
			if msg := ev.Data["message"]; msg != "stopped: the answer so far is kept" {
				t.Errorf("the turn ended with %v", msg)
			}
			break
		}
	}
	var page struct {
		Records          []json.RawMessage
		First, Last, End float64
	}
	s.get(200, "GET", at+"/records?limit=2", "", &page)
	if !strings.Contains(fmt.Sprintf("%s", page.Records), "half an ") || page.Last != page.End {
		t.Errorf("the last records are %s", page.Records)
	}
	s.get(200, "GET", at+"/records?after=0&limit=3", "", &page)
	if len(page.Records) != 3 || page.First != 1 || page.Last != 3 {
		t.Errorf("the first page has %d records, %v to %v", len(page.Records), page.First, page.Last)
	}
	s.get(200, "GET", at+"/records?before=3&limit=5", "", &page)
	if len(page.Records) != 2 || page.First != 1 || page.Last != 2 {
		t.Errorf("before record 3 there are %d records, %v to %v", len(page.Records), page.First, page.Last)
	}

	// The rest of the API.
	var named struct{ Title string }
	s.get(200, "PATCH", at, `{"title":"Journey"}`, &named)
	if named.Title != "Journey" {
		t.Errorf("the title is %q", named.Title)
	}
	var forked struct{ ID string }
	s.get(201, "POST", at+"/fork", `{"at":4}`, &forked)
	var ctx struct {
		Messages []json.RawMessage
		Budget   struct{ Window int }
	}
	s.get(200, "GET", "/v1/sessions/"+forked.ID+"/context", "", &ctx)
	if len(ctx.Messages) == 0 || ctx.Budget.Window == 0 {
		t.Errorf("the context is %+v", ctx)
	}
	var found struct{ Hits []struct{ Session string } }
	s.get(200, "GET", "/v1/search?q=half+an", "", &found)
	if len(found.Hits) == 0 || found.Hits[0].Session != made.ID {
		t.Errorf("found is %+v", found)
	}
	s.get(400, "GET", "/v1/search?q=x&colour=red", "", nil)
	s.get(409, "POST", at+"/compact", `{"dryRun":true}`, nil)
	s.get(204, "DELETE", at, "", nil)
	s.get(404, "GET", at, "", nil)
	s.get(200, "POST", at+"/restore", "", nil)
	s.get(404, "GET", "/v1/sessions/none", "", nil)
	s.get(404, "GET", "/v1/none", "", nil)
	for _, path := range []string{"/v1/openapi.json", "/v1/usage", "/v1/usage?by=model&since=7d", "/v1/models", "/healthz", "/metrics", at + "/checkpoints", "/v1/search?q=half&group=true", "/v1/sessions?limit=1&source=goclaw"} {
		s.get(200, "GET", path, "", nil)
	}
	s.get(201, "POST", "/v1/login-links", "", nil)
	var spent struct {
		Steps []struct{ Tokens int }
		Usage struct{ Calls int }
	}
	s.get(200, "GET", at+"/usage", "", &spent)
	if len(spent.Steps) == 0 || spent.Usage.Calls != len(spent.Steps) || spent.Steps[0].Tokens == 0 {
		t.Errorf("the usage is %+v", spent)
	}

	// SIGTERM lets a turn finish.
	resp = s.ask("POST", at+"/turns", `{"text":"slow to the end"}`)
	next, text = events(t, resp.Body), ""
	goOn <- "the "
	until("the ")
	s.cmd.Process.Signal(syscall.SIGTERM)
	goOn <- "end"
	goOn <- ""
	until("the end")
	if code := exits(t, s.cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Requests that must not be answered are not, and cost little.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := serving(t, home, t.TempDir(), "http://127.0.0.1:9")
	for name, header := range map[string][]string{
		"without a token":        {"Authorization", ""},
		"with a wrong token":     {"Authorization", "Bearer " + s.token + "x"},
		"with a made-up cookie":  {"Authorization", "", "Cookie", "goclaw=99999999999.00"},
		"with an expired cookie": {"Authorization", "", "Cookie", "goclaw=1.00"},
	} {
		for _, path := range []string{"/v1/sessions", "/metrics", "/v1/openapi.json", "/v1/search?q=x", "/v1/sessions/x/events"} {
			t.Log(name)
			s.get(401, "GET", path, "", nil, header...)
		}
	}
	for name, header := range map[string][]string{
		"foreign host":           {"Host", "evil.example"},
		"foreign host with port": {"Host", "evil.example:7331"},
		"host that begins alike": {"Host", "127.0.0.1.evil.example"},
		"foreign origin":         {"Origin", "https://evil.example"},
		"no origin":              {"Origin", "null"},
		"other port":             {"Origin", "http://127.0.0.1:1"},
		"another site":           {"Sec-Fetch-Site", "cross-site"},
	} {
		t.Log(name)
		s.get(403, "GET", "/v1/sessions", "", nil, header...)
		s.get(403, "GET", "/healthz", "", nil, header...)
	}
	if resp := s.ask("GET", "/healthz", "", "Authorization", ""); resp.StatusCode != 200 {
		t.Errorf("health without a token: %d", resp.StatusCode)
	}
	if resp := s.ask("GET", "/v1/sessions", "", "Origin", s.url); resp.StatusCode != 200 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a page of ours: %d, %v", resp.StatusCode, resp.Header)
	}

	// 1 GB of body, announced and not.
	req, _ := http.NewRequest("POST", s.url+"/v1/sessions", io.LimitReader(endless{}, 1<<30))
	req.ContentLength = 1 << 30
	req.Header.Set("Authorization", "Bearer "+s.token)
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil && resp.StatusCode != 413 { // or the connection is closed
		t.Errorf("1 GB announced: %d", resp.StatusCode)
	}
	req, _ = http.NewRequest("POST", s.url+"/v1/sessions", io.LimitReader(endless{}, 1<<30))
	req.Header.Set("Authorization", "Bearer "+s.token)
	if resp, err := http.DefaultTransport.RoundTrip(req); err == nil && resp.StatusCode != 413 && resp.StatusCode != 400 {
		t.Errorf("1 GB: %d", resp.StatusCode)
	}

	// A login link works once, and its cookie is enough.
	jar := func(resp *http.Response) string {
		for _, c := range resp.Cookies() {
			if c.Name == "goclaw" && c.HttpOnly && c.SameSite == http.SameSiteStrictMode {
				return c.Name + "=" + c.Value
			}
		}
		return ""
	}
	path := strings.TrimPrefix(s.login, s.url)
	resp := s.ask("GET", path, "", "Authorization", "")
	cookie := jar(resp)
	if resp.StatusCode != 303 || cookie == "" {
		t.Fatalf("login: %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
	if resp := s.ask("GET", "/v1/sessions", "", "Authorization", "", "Cookie", cookie); resp.StatusCode != 200 {
		t.Errorf("with the cookie: %d", resp.StatusCode)
	}
	if resp := s.ask("GET", path, "", "Authorization", ""); resp.StatusCode != 403 {
		t.Errorf("the link works twice: %d", resp.StatusCode)
	}

	for _, args := range [][]string{{"--addr", "0.0.0.0:0"}, {"--addr", "7331"}, {"--addr", ":0"}} {
		out, err := exec.Command("goclaw", append([]string{"serve"}, args...)...).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 {
			t.Errorf("serve %v: %v: %s", args, err, out)
		}
	}
}

// endless is white space without an end: JSON that never begins.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Going back to before a message keeps what came after as a branch.
func TestServeBranches(t *testing.T) {
	t.Parallel()
	model, _ := slowly(t)
	s := serving(t, t.TempDir(), t.TempDir(), model)
	var made struct{ ID string }
	s.get(201, "POST", "/v1/sessions", "", &made)
	at := "/v1/sessions/" + made.ID
	say := func(text string) {
		t.Helper()
		next := events(t, s.ask("POST", at+"/turns", `{"text":"`+text+`"}`).Body)
		for {
			ev, ok := next()
			if !ok || ev.Type == "error" {
				t.Fatalf("the turn ended with %v", ev)
			}
			if ev.Type == "done" {
				return
			}
		}
	}
	say("first")
	say("second")
	var view struct {
		Items []struct {
			Seq  int
			Kind string
			HTML string
			Dead bool
		}
	}
	s.get(200, "GET", at+"/transcript", "", &view)
	second := 0
	for _, it := range view.Items {
		if it.Kind == "user" {
			second = it.Seq
		}
	}
	var moved struct{ Text string }
	s.get(200, "POST", at+"/branches", fmt.Sprintf(`{"before":%d}`, second), &moved)
	if moved.Text != "second" {
		t.Errorf("the message gone back over is %q", moved.Text)
	}
	say("third")
	var tree struct {
		Branches []struct {
			ID, Text string
			Live     bool
		}
	}
	s.get(200, "GET", at+"/branches", "", &tree)
	if len(tree.Branches) != 2 || tree.Branches[0].Live || tree.Branches[0].Text != "second" || !tree.Branches[1].Live {
		t.Fatalf("the branches are %+v", tree)
	}
	view.Items = nil // fields that are left out keep their values
	s.get(200, "GET", at+"/transcript", "", &view)
	for _, it := range view.Items {
		if strings.Contains(it.HTML, "second") != it.Dead {
			t.Errorf("record %d is on the wrong branch: %+v", it.Seq, it)
		}
	}
	s.get(200, "POST", at+"/branches", `{"to":"`+tree.Branches[0].ID+`"}`, nil)
	view.Items = nil // fields that are left out keep their values
	s.get(200, "GET", at+"/transcript", "", &view)
	for _, it := range view.Items {
		if strings.Contains(it.HTML, "third") != it.Dead {
			t.Errorf("after the switch record %d is on the wrong branch: %+v", it.Seq, it)
		}
	}
	s.get(200, "POST", at+"/branches", `{"before":2}`, &moved)
	say("fourth")
	view.Items = nil // fields that are left out keep their values
	s.get(200, "GET", at+"/transcript", "", &view)
	for _, it := range view.Items {
		if it.Kind == "user" && strings.Contains(it.HTML, "fourth") == it.Dead {
			t.Errorf("after the first message was changed, record %d is on the wrong branch: %+v", it.Seq, it)
		}
	}
	// Two branches that share what the live one does not have are told apart.
	s.get(200, "GET", at+"/branches", "", &tree)
	if b := tree.Branches; len(b) != 3 || b[0].Text != "second" || b[1].Text != "third" || !b[2].Live || b[2].Text != "fourth" {
		t.Errorf("the branches are %+v", b)
	}
	s.get(400, "POST", at+"/branches", `{"before":1}`, nil)
	s.get(400, "POST", at+"/branches", `{"to":"none"}`, nil)
	s.get(400, "POST", at+"/branches", `{}`, nil)
}
