package serve

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"goclaw/llm"
	"goclaw/session"
)

// completionsAPI answers requests in the form of OpenAI's chat completions, so
// that any program that speaks it talks to a conversation that lasts.
//
// Such a program sends the whole conversation each time. What the log has
// already is not recorded again; where the program's conversation is another one
// from some message on, because something was edited or asked again, it goes on
// from there, and what the log had after that stays as a branch.
type completionsAPI struct{ *Server }

// completion is a request, as far as it matters here.
type completion struct {
	Model         string `json:"model"`
	Messages      []said `json:"messages"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User  string            `json:"user"`
	Tools []json.RawMessage `json:"tools"`
	N     int               `json:"n"`
}

// said is a message in a request.
type said struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// message returns what is said, as a message of a person or a model.
func (m said) message() (llm.Message, error) {
	out := llm.Message{Role: llm.User}
	if m.Role == "assistant" {
		out.Role = llm.Assistant
	}
	var text string
	if len(m.Content) == 0 || json.Unmarshal(m.Content, &text) == nil {
		if text != "" {
			out.Blocks = []llm.Block{llm.Text{Text: text}}
		}
		return out, nil
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return out, wrong(http.StatusBadRequest, "content must be a text or a list of parts")
	}
	for _, p := range parts {
		switch p.Type {
		case "text":
			out.Blocks = append(out.Blocks, llm.Text{Text: p.Text})
		case "image_url":
			kind, data, ok := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
			if _, err := base64.StdEncoding.DecodeString(data); !ok || err != nil {
				return out, wrong(http.StatusBadRequest, "an image must be in the request, as data:TYPE;base64,...")
			}
			out.Blocks = append(out.Blocks, llm.Image{MIME: kind, Data: data})
		default:
			return out, wrong(http.StatusBadRequest, "parts of the type %q are not understood", p.Type)
		}
	}
	return out, nil
}

// complete answers a request.
func (s completionsAPI) complete(w http.ResponseWriter, r *http.Request) error {
	err := s.try(w, r)
	if err == nil {
		return nil
	}
	p := problemOf(err)
	s.metrics.status(p.Status)
	kind := "invalid_request_error"
	if p.Status >= 500 {
		kind = "server_error"
	}
	return writeJSON(w, p.Status, map[string]any{"error": map[string]any{"message": p.Detail, "type": kind, "param": nil, "code": nil}})
}

func (s completionsAPI) try(w http.ResponseWriter, r *http.Request) error {
	var req completion
	body, err := io.ReadAll(r.Body)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return wrong(http.StatusBadRequest, "the body of the request cannot be read: %s", err)
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return wrong(http.StatusBadRequest, "the body of the request is wrong: %s", err)
	}
	switch {
	case len(req.Tools) > 0:
		return wrong(http.StatusBadRequest, "tools are goclaw's own here: leave out \"tools\"")
	case req.N > 1:
		return wrong(http.StatusBadRequest, "only one answer is made: leave out \"n\"")
	}
	patient(w)
	system, past, now, err := conversation(req.Messages)
	if err != nil {
		return err
	}
	in, err := s.sessionOf(r, req, past, now)
	if err != nil {
		return err
	}
	if !s.turns.runs(in.ID) {
		r.Body = io.NopCloser(bytes.NewReader(body))
		if s.peers.forward(w, r, in.ID) {
			return nil
		}
	}
	t, err := turnsAPI(s).begin(r, in, now, func(in session.Info) (session.Info, error) {
		return s.reconcile(r.Context(), in, req.Model, system, past)
	})
	if err != nil {
		return err
	}
	a := &completed{id: "chatcmpl-" + random()[:24], model: req.Model, created: time.Now().Unix()}
	if req.Stream {
		return s.streamCompletion(w, r, t, a, req.StreamOptions.IncludeUsage)
	}
	if err := s.follow(r.Context(), t, a.add); err != nil {
		t.cancel(errStopped)
		return err
	}
	return writeJSON(w, http.StatusOK, a.whole())
}

// conversation splits the messages of a request: what the program says of
// itself, what was said, and what is said now.
func conversation(messages []said) (system string, past []llm.Message, now llm.Message, err error) {
	for i, m := range messages {
		msg, err := m.message()
		if err != nil {
			return "", nil, now, err
		}
		switch {
		case m.Role == "system" || m.Role == "developer":
			system = strings.TrimSpace(system + "\n\n" + msg.Text())
		case m.Role != "user" && m.Role != "assistant":
			return "", nil, now, wrong(http.StatusBadRequest, "messages of %q are not understood: tools run in goclaw", m.Role)
		case i == len(messages)-1 && m.Role == "user" && len(msg.Blocks) > 0:
			now = msg
		case len(msg.Blocks) > 0:
			past = append(past, msg)
		}
	}
	if len(now.Blocks) == 0 {
		return "", nil, now, wrong(http.StatusBadRequest, "the last message must be the user's")
	}
	return system, past, now, nil
}

// sessionOf returns the session that a request goes on in: by its key, else by
// its user, else by how the conversation begins.
func (s completionsAPI) sessionOf(r *http.Request, req completion, past []llm.Message, now llm.Message) (session.Info, error) {
	name := r.Header.Get("x-openclaw-session-key")
	if name == "" {
		name = req.User
	}
	if name == "" {
		first := now
		if len(past) > 0 {
			first = past[0]
		}
		name = digest(squeezed(first.Text()))
	}
	key := session.Key(name)
	if !key.Complete() {
		key = session.Key("main:api:" + name)
	}
	if !key.Complete() { // white space, for example
		key = session.Key("main:api:" + digest(name))
	}
	// Of requests that come at the same time one begins the session.
	release, err := session.LockSoon(r.Context(), s.b.Store(), "request\x00"+string(key), Who(s.peers.own))
	if err != nil {
		return session.Info{}, err
	}
	defer release()
	in, err := session.Current(r.Context(), s.b.Store(), key)
	if errors.Is(err, session.ErrNotFound) {
		return s.b.Begin(r.Context(), session.Header{Key: key})
	}
	if err != nil {
		return in, err
	}
	return s.b.Continue(r.Context(), in)
}

// systemNote is the type of the message that holds what a program says of
// itself.
const systemNote = "api.system"

// reconcile brings the log and the program's conversation together.
func (s completionsAPI) reconcile(ctx context.Context, in session.Info, model, system string, past []llm.Message) (session.Info, error) {
	st := s.b.Store()
	// Nothing is written into a session in which a turn runs, here or elsewhere.
	const busy = "a turn is running in this session: wait until it ends"
	if s.turns.runs(in.ID) {
		return in, wrong(http.StatusConflict, busy)
	}
	release, err := session.LockSoon(ctx, st, string(in.ID), Who(s.peers.own))
	if err != nil {
		return in, err
	}
	defer release()
	if s.turns.runs(in.ID) { // since a moment ago
		return in, wrong(http.StatusConflict, busy)
	}
	if err := s.b.Choose(ctx, in, model); err != nil {
		return in, err
	}
	now, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	if err != nil {
		return in, err
	}
	var bodies []session.Body
	if len(past) > 0 {
		n, leaf := matched(now.Branch, past)
		if leaf != "" {
			bodies = append(bodies, session.Leaf{Target: leaf})
		}
		for _, m := range past[n:] {
			msg := session.Message{Message: m, At: time.Now()}
			if m.Role == llm.Assistant {
				msg.Stop = llm.StopEnd
			}
			bodies = append(bodies, msg)
		}
	}
	if system != "" && lastNote(now.Branch) != system {
		bodies = append(bodies, session.CustomMessage{Type: systemNote, Blocks: []llm.Block{llm.Text{Text: "[The program that you talk through says:]\n" + system}}, At: time.Now()})
	}
	for _, b := range bodies {
		if _, err := session.Keep(ctx, st, now, now.Next(b, session.System{}), session.System{}); err != nil {
			return in, err
		}
	}
	return now.Info, nil
}

// lastNote returns what the program said of itself last.
func lastNote(branch []session.Record) string {
	for i := len(branch) - 1; i >= 0; i-- {
		if c, ok := branch[i].Body.(session.CustomMessage); ok && c.Type == systemNote {
			_, text, _ := strings.Cut(llm.Message{Blocks: c.Blocks}.Text(), "\n")
			return text
		}
	}
	return ""
}

// exchange is a stretch of a log that a program sees as one message.
type exchange struct {
	role llm.Role
	text string
	last string // the record that it ends with
}

// matched returns how many messages of past the log has. leaf is the record that
// the conversation goes on from, "" for the end of the log. A program may have
// forgotten the beginning: the end of the log is looked for in past as well.
func matched(branch []session.Record, past []llm.Message) (n int, leaf string) {
	var log []exchange
	for _, rec := range branch {
		m, ok := rec.Body.(session.Message)
		if !ok {
			continue
		}
		switch {
		case session.IsTurn(m):
			log = append(log, exchange{llm.User, squeezed(m.Text()), rec.ID})
		case m.Role == llm.Assistant && len(log) > 0 && log[len(log)-1].role == llm.Assistant:
			last := &log[len(log)-1]
			last.text, last.last = last.text+squeezed(m.Text()), rec.ID
		case m.Role == llm.Assistant:
			log = append(log, exchange{llm.Assistant, squeezed(m.Text()), rec.ID})
		case len(log) > 0: // the result of a tool
			log[len(log)-1].last = rec.ID
		}
	}
	if len(log) == 0 {
		return 0, ""
	}
	same := func(e exchange, m llm.Message) bool { return e.role == m.Role && e.text == squeezed(m.Text()) }
	for n < len(past) && n < len(log) && same(log[n], past[n]) {
		n++
	}
	switch {
	case n == len(log): // and past may go on
		return n, ""
	case n > 0:
		return n, log[n-1].last
	}
	// The program sends only the latest part.
	for tail := min(len(past), len(log)); tail > 0; tail-- {
		all := true
		for i := range tail {
			all = all && same(log[len(log)-tail+i], past[len(past)-tail+i])
		}
		if all {
			return len(past), ""
		}
	}
	return 0, ""
}

// squeezed returns text without white space, by which texts are compared.
func squeezed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// completed is an answer in the form of OpenAI's.
type completed struct {
	id, model string
	created   int64
	text      strings.Builder
	gap       bool // tools ran since the last text
	stop      string
	usage     map[string]any
}

// add takes an event of the turn and returns the text that is new.
func (a *completed) add(data map[string]any) string {
	switch data["type"] {
	case "delta":
		text, _ := data["text"].(string)
		if a.gap && a.text.Len() > 0 {
			text = "\n\n" + text
		}
		a.gap = false
		a.text.WriteString(text)
		return text
	case "tool":
		a.gap = true
	case "done":
		a.stop = "stop"
		if data["cut"] == true {
			a.stop = "length"
		}
		if u, ok := data["usage"].(map[string]any); ok {
			in, out := count(u["input"])+count(u["cacheRead"])+count(u["cacheWrite"]), count(u["output"])
			a.usage = map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out, "prompt_tokens_details": map[string]any{"cached_tokens": count(u["cacheRead"])}}
		}
	}
	return ""
}

func count(v any) int {
	n, _ := v.(int)
	return n
}

func (a *completed) object(kind string, choices []any) map[string]any {
	return map[string]any{"id": a.id, "object": kind, "created": a.created, "model": a.model, "choices": choices}
}

func (a *completed) whole() map[string]any {
	out := a.object("chat.completion", []any{map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": a.text.String(), "refusal": nil}, "logprobs": nil, "finish_reason": a.stop}})
	if a.usage != nil {
		out["usage"] = a.usage
	}
	return out
}

func (a *completed) chunk(delta map[string]any, stop any) map[string]any {
	return a.object("chat.completion.chunk", []any{map[string]any{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": stop}})
}

// follow calls take with each event of a turn, until its end.
func (s completionsAPI) follow(ctx context.Context, t *turn, take func(map[string]any) string) error {
	// The program does not count as someone who reads: it cannot answer questions.
	rd := &reader{stream: t.stream, at: t.from, seen: t.passed, until: t.until}
	for {
		over := t.over()
		events, changed, err := rd.next(ctx)
		if err != nil {
			return err
		}
		for _, ev := range events {
			if ev.data["type"] != "done" && ev.data["type"] != "error" {
				take(ev.data)
			}
		}
		if over {
			if t.end["type"] == "error" {
				return fmt.Errorf("%s", t.end["message"])
			}
			take(t.end)
			return nil
		}
		select {
		case <-changed:
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// streamCompletion streams a turn as chunks. If the client leaves, the turn
// stops, as it does with OpenAI.
func (s completionsAPI) streamCompletion(w http.ResponseWriter, r *http.Request, t *turn, a *completed, usage bool) error {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var left error
	send := func(v any) {
		data, err := json.Marshal(v)
		if err == nil && left == nil {
			left = flush(out, w, "data: "+string(data)+"\n\n")
		}
		if left != nil {
			t.cancel(errStopped)
		}
	}
	send(a.chunk(map[string]any{"role": "assistant", "content": ""}, nil))
	err := s.follow(r.Context(), t, func(data map[string]any) string {
		text := a.add(data)
		if text != "" {
			send(a.chunk(map[string]any{"content": text}, nil))
		}
		return text
	})
	switch {
	case r.Context().Err() != nil || left != nil:
		t.cancel(errStopped)
		return nil
	case err != nil:
		send(map[string]any{"error": map[string]any{"message": err.Error(), "type": "server_error", "param": nil, "code": nil}})
		return nil
	}
	send(a.chunk(map[string]any{}, a.stop))
	if usage && a.usage != nil {
		last := a.object("chat.completion.chunk", []any{})
		last["usage"] = a.usage
		send(last)
	}
	if left == nil {
		flush(out, w, "data: [DONE]\n\n")
	}
	return nil
}
