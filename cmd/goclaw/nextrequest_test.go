//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/sqlite"
)

// spy is a server that speaks an API's wire format and remembers what it was
// sent.
type spy struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
}

func newSpy(t *testing.T, answer func(io.Writer, string, bool)) *spy {
	s := &spy{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, raw)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		text, results := lastWords(raw)
		answer(w, text, results)
	}))
	t.Cleanup(s.Close)
	return s
}

// take returns what was sent since the last time.
func (s *spy) take() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.bodies
	s.bodies = nil
	return out
}

// The next words, and what may stand around them: the end of the message that
// they are in, a cache mark, and the tail.
var nextWords = regexp.MustCompile(`^(?:,?\{"role":"user","content":)?[\[,]?(?:\{"type":"text","text":)?"?(?:\\n)?the next words` +
	`(?:"(?:,"cache_control":\{"type":"ephemeral"\})?\},\{"type":"text","text":"|(?:\\n)+)?(?:\[Context: [^"]*)?"(?:,"cache_control":\{"type":"ephemeral"\})?[\]}]+$`)

// sameRequest holds what context printed against the request that came then.
func sameRequest(t *testing.T, shown string, body []byte) {
	t.Helper()
	var ctx, sent struct{ System, Messages, Tools json.RawMessage }
	if err := json.Unmarshal([]byte(shown), &ctx); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	if got, want := string(ctx.System), string(sent.System); got != want {
		t.Errorf("system\n%s\nwas sent as\n%s", got, want)
	}
	if got, want := string(ctx.Tools), string(sent.Tools); got != want || len(want) < 1000 {
		t.Errorf("tools\n%.600s\nwere sent as\n%.600s", got, want)
	}
	got, want := string(ctx.Messages), string(sent.Messages)
	for _, open := range []string{"]", "]}]", `"}]`, `"}]}]`} { // what the new words may stand before
		begin, ok := strings.CutSuffix(got, open)
		if rest, begins := strings.CutPrefix(want, begin); ok && begins && nextWords.MatchString(rest) {
			return
		}
	}
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	t.Errorf("messages: after %d equal bytes\n...%.600s\nwas sent as\n...%.600s", n, got[max(0, n-40):], want[max(0, n-40):])
}

// kindsOfSessions are logs of every kind that there is.
func kindsOfSessions() map[string][]session.Body {
	u, answer, call, result := sessiontest.User, sessiontest.Answer, sessiontest.Call, sessiontest.Result
	pixel := llm.Image{MIME: "image/png", Data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}
	talk := []session.Body{u("one <b>&\u2028 é"), answer("two"), u("three"), answer("four"), u("five"), answer("six")}
	with := func(more ...session.Body) []session.Body { return append(talk[:len(talk):len(talk)], more...) }
	thought := func(provider, model string) session.Message {
		m := sessiontest.By(provider, model, answer("said"))
		m.Blocks = append([]llm.Block{llm.Thinking{Text: "hm", Signature: "c2ln"}}, m.Blocks...)
		return m
	}
	return map[string][]session.Body{
		"fresh":                   nil,
		"talk":                    talk,
		"tool calls":              with(u("list"), call("c1", "list_directory", `{"path": "."}`), result("c1", "a\nb"), answer("two files")),
		"a failed call":           with(u("list"), call("c1", "list_directory", `{"path":"x"}`), sessiontest.Failed("c1", ""), answer("no such folder")),
		"interrupted calls":       with(u("list"), sessiontest.Calls(llm.ToolCall{ID: "c1", Name: "list_directory"}, llm.ToolCall{ID: "c2", Name: "bash", Args: []byte(`{"command":"ls"}`)}), result("c1", "a")),
		"a stopped answer":        with(u("tell"), sessiontest.Stopped(llm.StopAborted, answer("once upon a "))),
		"a failed answer":         with(u("tell"), sessiontest.Stopped(llm.StopError, answer("once"))),
		"a question":              with(u("and?")),
		"thinking":                with(u("think"), thought("anthropic", "claude-sonnet-4-5"), u("again"), thought("other", "model")),
		"compacted":               with(sessiontest.Compaction("the past", "r3"), u("seven"), answer("eight")),
		"compacted in a turn":     with(u("list"), call("c1", "list_directory"), result("c1", "a"), call("c2", "list_directory"), result("c2", "b"), session.Compaction{Summary: "the past", FirstKept: "r7", Resume: "r10"}),
		"undone":                  with(sessiontest.Compaction("the past", "r3"), u("seven"), answer("eight"), sessiontest.Undo("r7")),
		"a notice for the system": with(session.Notice{Percent: 1, Text: "save now", As: "system"}),
		"a notice as a message":   with(session.Notice{Percent: 90, Text: "save now", As: "marked"}, answer("NO_REPLY")),
		"an unanswered notice":    with(session.Notice{Percent: 90, Text: "save now", As: "user"}),
		"images":                  with(session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: "look"}, pixel}}}, answer("a dot"), u("read it"), call("c1", "read_file", `{"path":"a.png"}`), session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: "c1", Name: "read_file", Blocks: []llm.Block{pixel}}}}}, answer("a dot again"), session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{pixel}}}),
		"rewound":                 with(session.Leaf{Target: "r2"}, u("another way"), answer("fine")),
		"branch summary":          with(session.BranchSummary{From: "r6", Summary: "we tried that"}, u("back"), answer("ok")),
		"a shell command":         with(session.Shell{Command: "ls", Output: "a\n"}),
		"an edit":                 with(session.Edit{Target: "r1", Blocks: []llm.Block{llm.Text{Text: "redacted"}}}),
		"a reset":                 with(session.Reset{Reason: "daily"}, u("new day"), answer("good morning")),
		"pins and titles":         with(sessiontest.Pin("r1"), session.Title{Title: "talk"}, session.Checkpoint{Summary: "so far", Covers: "r4"}),
	}
}

// What context shows is the next request, byte for byte, in every kind of
// session: what the user says then and the tail are all that is added.
func TestContextIsTheNextRequest(t *testing.T) {
	t.Parallel()
	for _, api := range []struct {
		model  string
		answer func(io.Writer, string, bool)
		flags  []string
	}{
		{"anthropic/claude-sonnet-4-5", anthropicAnswer, []string{"--json"}},
		{"openai/gpt-5", openaiAnswer, []string{"--json", "--wire"}},
		{"ollama/llama3.2", openaiAnswer, []string{"--wire"}},
	} {
		t.Run(api.model, func(t *testing.T) {
			srv := newSpy(t, api.answer)
			home := t.TempDir()
			provider, _, _ := strings.Cut(api.model, "/")
			put(t, home, "goclaw/config.json", fmt.Sprintf(`{"model": %q, "contextWindow": 200000, "providers": {%q: {"baseUrl": %q, "apiKey": "sk-test"}}, "session": {"checkpoint": {"enabled": false}}}`, api.model, provider, srv.URL))
			put(t, home, piFolder+"old.jsonl", oldOfPi)
			typed(t, home, "import")
			keys := map[string]string{"imported": "pi:w:old"}
			st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
			if err != nil {
				t.Fatal(err)
			}
			for kind, log := range kindsOfSessions() {
				keys[kind] = "main:cli:" + strings.ReplaceAll(kind, " ", "-")
				keep(t, st, session.Key(keys[kind]), log)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			for kind, key := range keys {
				t.Run(kind, func(t *testing.T) {
					shown := typed(t, home, append([]string{"context", key}, api.flags...)...)
					srv.take()
					typed(t, home, "ask", "-s", key, "the next words")
					sent := srv.take()
					if len(sent) == 0 {
						t.Fatal("nothing was sent")
					}
					sameRequest(t, shown, sent[0])
					// And in the turn after it.
					if key == "pi:w:old" {
						key = "goclaw:pi:w:old"
					}
					shown = typed(t, home, append([]string{"context", key}, api.flags...)...)
					typed(t, home, "ask", "-s", key, "the next words")
					sameRequest(t, shown, srv.take()[0])
				})
			}
		})
	}
}

// A notice that is due changes the tail alone, in this turn and in those after
// it.
func TestContextWhenANoticeIsDue(t *testing.T) {
	t.Parallel()
	srv := newSpy(t, func(w io.Writer, text string, results bool) {
		var b bytes.Buffer
		anthropicAnswer(&b, text, results)
		io.WriteString(w, strings.Replace(b.String(), `"input_tokens":100`, `"input_tokens":5200`, 1))
	})
	home := t.TempDir()
	put(t, home, "goclaw/config.json", fmt.Sprintf(`{"model": "anthropic/claude-sonnet-4-5", "contextWindow": 10000, "providers": {"anthropic": {"baseUrl": %q, "apiKey": "sk-test"}}, "session": {"checkpoint": {"enabled": false}}}`, srv.URL))
	st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	keep(t, st, "main:cli:full", []session.Body{sessiontest.User(strings.Repeat("so many words ", 900)), sessiontest.By("anthropic", "claude-sonnet-4-5", sessiontest.Used(5100, sessiontest.Answer("indeed")))})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		shown := typed(t, home, "context", "main:cli:full", "--json")
		typed(t, home, "ask", "-s", "main:cli:full", "the next words")
		sent := srv.take()[0]
		sameRequest(t, shown, sent)
		if !bytes.Contains(sent, []byte("Context at 50%")) {
			t.Errorf("no notice in ...%s", sent[len(sent)-300:])
		}
	}
}

// compactsFirst says whether the past is compacted before the next question,
// which is when less is free than the reserve.
func TestContextTellsThatThePastIsCompacted(t *testing.T) {
	t.Parallel()
	srv := newSpy(t, anthropicAnswer)
	home := t.TempDir()
	put(t, home, "goclaw/config.json", fmt.Sprintf(`{"model": "anthropic/claude-sonnet-4-5", "providers": {"anthropic": {"baseUrl": %q, "apiKey": "sk-test"}}, "session": {"checkpoint": {"enabled": false}}}`, srv.URL))
	st, err := sqlite.Open(filepath.Join(home, "goclaw", "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	used := []int{182_000, 186_000, 190_000, 194_000, 195_000}
	for _, n := range used {
		var log []session.Body
		for range 10 {
			log = append(log, sessiontest.User(strings.Repeat("so many words ", 4700)), sessiontest.By("anthropic", "claude-sonnet-4-5", sessiontest.Answer("indeed")))
		}
		log = append(log, sessiontest.User("and?"), sessiontest.By("anthropic", "claude-sonnet-4-5", sessiontest.Used(n, sessiontest.Answer("so far"))))
		keep(t, st, session.Key(fmt.Sprint("main:cli:", n)), log)
	}
	short := []session.Body{sessiontest.User("one question that is alone"), sessiontest.By("anthropic", "claude-sonnet-4-5", sessiontest.Used(195_000, sessiontest.Answer("so far")))}
	keep(t, st, "main:cli:short", short) // full, and nothing to compact
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	tells := func(key string) bool {
		var c struct{ CompactsFirst bool }
		if err := json.Unmarshal([]byte(typed(t, home, "context", key, "--json")), &c); err != nil {
			t.Fatal(err)
		}
		return c.CompactsFirst
	}
	for _, n := range used {
		key := fmt.Sprint("main:cli:", n)
		if told := tells(key); told != (n > 184_000) {
			t.Errorf("%d used: compactsFirst is %v", n, told)
		}
		srv.take()
		typed(t, home, "ask", "-s", key, "the next words")
		for i, sent := range srv.take() {
			var req struct {
				MaxTokens int `json:"max_tokens"`
			}
			if err := json.Unmarshal(sent, &req); err != nil {
				t.Fatal(err)
			}
			if summary := bytes.Contains(sent, []byte("You summarise")); !summary && req.MaxTokens < 16_000 {
				t.Errorf("%d used: request %d leaves %d tokens for the answer", n, i, req.MaxTokens)
			}
		}
	}
	if tells("main:cli:short") {
		t.Error("compactsFirst where there is nothing to compact")
	}
}

const oldOfPi = `{"type":"session","version":3,"id":"old","timestamp":"2026-11-15T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-15T00:00:01.000Z","message":{"role":"user","content":"read it","timestamp":1}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-11-15T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"c2ln"},{"type":"toolCall","id":"c|1","name":"read","arguments":{"path":"a.go"}}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-11-15T00:00:03.000Z","message":{"role":"toolResult","toolCallId":"c|1","toolName":"read","content":[{"type":"text","text":"package a"}],"isError":false,"timestamp":3}}
{"type":"message","id":"d","parentId":"c","timestamp":"2026-11-15T00:00:04.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"c|2","name":"read","arguments":{"path":"b.go"}}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":1,"cacheRead":0,"cacheWrite":0},"stopReason":"toolUse","timestamp":4}}
`

// keep appends log to a new session of key, its records named r1, r2 ...
func keep(t *testing.T, st session.Store, key session.Key, log []session.Body) {
	t.Helper()
	ctx := context.Background()
	s, err := session.Begin(ctx, st, session.Header{Key: key}, session.System{})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range log {
		r := s.Next(b, session.System{})
		r.ID = fmt.Sprint("r", i+1)
		if err := st.Append(ctx, s.ID, r); err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing is sent: context needs no key, and counts the tools of a turn.
func TestContextNeedsNoKey(t *testing.T) {
	home := t.TempDir()
	typed(t, home, "ask", "--model", "offline", "hello")
	for _, model := range []string{"anthropic/claude-sonnet-4-5", "openai/gpt-5", "openrouter/anthropic/claude-sonnet-4-5"} {
		var c struct {
			Model     string
			Tools     []json.RawMessage
			Breakdown struct {
				Parts []struct {
					Name   string
					Tokens int
				}
			}
		}
		if err := json.Unmarshal([]byte(typed(t, home, "context", "main:cli:user", "--json", "--model", model)), &c); err != nil {
			t.Fatal(err)
		}
		tools := 0
		for _, p := range c.Breakdown.Parts {
			if p.Name == "tools" {
				tools = p.Tokens
			}
		}
		if c.Model != model || len(c.Tools) < 8 || tools < 500 {
			t.Errorf("%s: shown for %s with %d tools of %d tokens", model, c.Model, len(c.Tools), tools)
		}
	}
}
