package acpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"strings"
	"sync"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
	"goclaw/tool"
)

// host has sessions in RAM; what runs their turns is scripted.
type host struct {
	st  session.Store
	run func(ctx context.Context, in session.Info, say llm.Message, ask tool.Approver, yield func(agent.Event, error) bool)

	mu     sync.Mutex
	seats  int // that are open
	folder string
}

func (h *host) Begin(ctx context.Context, folder string) (session.Info, error) {
	s, err := session.Begin(ctx, h.st, session.Header{Key: "main:editor:x", CWD: folder}, session.System{})
	if err != nil {
		return session.Info{}, err
	}
	return s.Info, nil
}

func (h *host) Find(ctx context.Context, id session.ID) (session.Info, error) {
	return session.Stat(ctx, h.st, id)
}

func (h *host) List(ctx context.Context, folder, after string) (out []session.Info, next string, err error) {
	for in, err := range h.st.List(ctx, session.Query{}) {
		if err != nil {
			return nil, "", err
		}
		out = append(out, in)
	}
	return out, "more of " + folder + after, nil
}

func (h *host) Continue(ctx context.Context, in session.Info) (session.Info, error) {
	return h.Begin(ctx, in.CWD)
}

func (h *host) Open(ctx context.Context, id session.ID) (*session.Session, error) {
	return session.Replay(id, h.st.Read(ctx, id, 0))
}

func (h *host) Window(context.Context, session.Info) (size, used int, usd float64, err error) {
	return 1000, 10, 0, nil
}

func (h *host) Seat(_ context.Context, in session.Info, folder string, _ []Server, ask tool.Approver) (Seat, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seats++
	h.folder = folder
	return &seat{host: h, in: in, ask: ask}, nil
}

type seat struct {
	host *host
	in   session.Info
	ask  tool.Approver
	mode tool.Mode
}

func (s *seat) Run(ctx context.Context, say llm.Message) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		s.host.run(ctx, s.in, say, s.ask, yield)
	}
}

func (s *seat) Mode() tool.Mode     { return s.mode }
func (s *seat) SetMode(m tool.Mode) { s.mode = m }

// taken returns how many seats are open.
func (h *host) taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seats
}

func (s *seat) Close() {
	s.host.mu.Lock()
	s.host.seats--
	s.host.mu.Unlock()
}

// client is an editor. It answers questions with choose.
type client struct {
	acp.Client
	choose func(acp.RequestPermissionRequest) acp.RequestPermissionOutcome

	mu   sync.Mutex
	told []string
}

func (c *client) SessionUpdate(_ context.Context, n acp.SessionNotification) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		c.told = append(c.told, "says "+u.AgentMessageChunk.Content.Text.Text)
	case u.UserMessageChunk != nil:
		c.told = append(c.told, "user "+u.UserMessageChunk.Content.Text.Text)
	case u.AgentThoughtChunk != nil:
		c.told = append(c.told, "thinks "+u.AgentThoughtChunk.Content.Text.Text)
	case u.ToolCall != nil:
		c.told = append(c.told, fmt.Sprintf("calls %s %s", u.ToolCall.ToolCallId, u.ToolCall.Kind))
	case u.ToolCallUpdate != nil:
		c.told = append(c.told, fmt.Sprintf("called %s %s", u.ToolCallUpdate.ToolCallId, *u.ToolCallUpdate.Status))
	case u.UsageUpdate != nil:
		c.told = append(c.told, fmt.Sprintf("used %d of %d", u.UsageUpdate.Used, u.UsageUpdate.Size))
	}
	return nil
}

func (c *client) RequestPermission(_ context.Context, r acp.RequestPermissionRequest) (acp.RequestPermissionResponse, error) {
	return acp.RequestPermissionResponse{Outcome: c.choose(r)}, nil
}

// heard returns what the editor was told since the last time.
func (c *client) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.told
	c.told = nil
	return out
}

// serve serves a host until the test ends.
func serve(t *testing.T, h *host) (in io.Writer, out io.Reader) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = Serve(context.Background(), h, "test", inR, outW)
	}()
	t.Cleanup(func() {
		inW.Close()
		<-over
		outW.Close()
		if n := h.taken(); n != 0 {
			t.Errorf("%d seats were not closed", n)
		}
	})
	return inW, outR
}

// connect connects an editor to a host until the test ends.
func connect(t *testing.T, h *host) (*acp.ClientSideConnection, *client) {
	t.Helper()
	in, out := serve(t, h)
	c := &client{}
	return acp.NewClientSideConnection(c, in, out), c
}

func says(text string) agent.Event { return agent.Said{Delta: llm.Delta{Text: text}} }

// A prompt that the editor cancels at once is cancelled, however soon; the next
// one runs.
func TestCancelRightBehind(t *testing.T) {
	h := &host{st: memory.New(), run: func(ctx context.Context, _ session.Info, say llm.Message, _ tool.Approver, yield func(agent.Event, error) bool) {
		if say.Text() == "wait" {
			<-ctx.Done()
			yield(nil, ctx.Err())
			return
		}
		yield(says("well"), nil)
	}}
	in, out := serve(t, h)
	s, err := h.Begin(t.Context(), "/w")
	if err != nil {
		t.Fatal(err)
	}
	answers := lines(out)
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":%q,"cwd":"/w","mcpServers":[]}}`+"\n", s.ID)
	<-answers
	for i := range 300 {
		prompt := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}` + "\n"
		wrong := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q}}` + "\n" // the library refuses it
		cancel := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}` + "\n"
		fmt.Fprintf(in, wrong+cancel, 3*i+10, s.ID, s.ID)
		if text := <-answers; !strings.Contains(text, `"error"`) {
			t.Fatalf("a wrong prompt: %s", text)
		}
		fmt.Fprintf(in, prompt+cancel, 3*i+11, s.ID, "wait", s.ID)
		if text := <-answers; !strings.Contains(text, `"stopReason":"cancelled"`) {
			t.Fatalf("round %d: %s", i, text)
		}
		fmt.Fprintf(in, prompt, 3*i+12, s.ID, "go on")
		if text := <-answers; !strings.Contains(text, `"stopReason":"end_turn"`) {
			t.Fatalf("round %d, the next: %s", i, text)
		}
	}
}

// lines yields the answers of an agent, without what it tells meanwhile.
func lines(r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		var rest string
		buf := make([]byte, 1<<16)
		for {
			n, err := r.Read(buf)
			rest += string(buf[:n])
			for {
				line, more, ok := strings.Cut(rest, "\n")
				if !ok {
					break
				}
				if rest = more; !strings.Contains(line, `"method"`) {
					out <- line
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// A session is loaded with all that was said, a turn is told as it happens, and
// what an imported session goes on in has the same id for the editor.
func TestSession(t *testing.T) {
	h := &host{st: memory.New()}
	h.run = func(_ context.Context, in session.Info, say llm.Message, _ tool.Approver, yield func(agent.Event, error) bool) {
		if in.Mirror() {
			yield(nil, errors.New("a turn runs in a mirror"))
			return
		}
		call := llm.ToolCall{ID: "c1", Name: "bash", Args: []byte(`{"command":"ls"}`)}
		for _, ev := range []agent.Event{says("I look"), agent.Calling{Call: call}, agent.Called{Call: call, Result: llm.ToolResult{CallID: "c1", IsError: true}}, agent.Done{Stop: llm.StopLength, Usage: llm.Usage{Input: 3, Output: 4}}} {
			if !yield(ev, nil) {
				return
			}
		}
	}
	mirror := session.Header{Version: session.Version, ID: "m", Key: "pi:w:1", CWD: "/w", Origin: session.Origin{Program: "pi", Path: "/x.jsonl", ID: "m"}}
	if err := h.st.Append(t.Context(), "m", sessiontest.Log(mirror, sessiontest.User("hello"), sessiontest.Answer("yes?"))...); err != nil {
		t.Fatal(err)
	}
	conn, c := connect(t, h)
	if _, err := conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: "m", Cwd: "/w/", McpServers: []acp.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if got, want := c.heard(), []string{"user hello", "says yes?", "used 10 of 1000"}; !reflect.DeepEqual(got, want) || h.folder != "/w" {
		t.Errorf("the past is told as %q in %s, want %q", got, h.folder, want)
	}
	resp, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: "m", Prompt: []acp.ContentBlock{acp.TextBlock("look")}})
	if err != nil || resp.StopReason != acp.StopReasonMaxTokens || resp.Usage == nil || resp.Usage.TotalTokens != 7 {
		t.Errorf("the turn ends with %+v (%v)", resp, err)
	}
	if got, want := c.heard(), []string{"says I look", "calls c1 execute", "called c1 failed", "used 10 of 1000"}; !reflect.DeepEqual(got, want) {
		t.Errorf("the turn is told as %q, want %q", got, want)
	}
	list, err := conn.ListSessions(t.Context(), acp.ListSessionsRequest{Cwd: acp.Ptr("/w"), Cursor: acp.Ptr("!")})
	if err != nil || len(list.Sessions) != 2 || list.NextCursor == nil || *list.NextCursor != "more of /w!" {
		t.Errorf("the list is %+v (%v)", list, err)
	}
	if _, err := conn.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: "m", ModeId: "plan"}); err != nil {
		t.Error(err)
	}
	if resumed, err := conn.LoadSession(t.Context(), acp.LoadSessionRequest{SessionId: "m", Cwd: "/w", McpServers: []acp.McpServer{}}); err != nil || h.taken() != 1 {
		t.Errorf("loaded again: %+v (%v), %d seats", resumed, err, h.taken())
	}
	if _, err := conn.CloseSession(t.Context(), acp.CloseSessionRequest{SessionId: "m"}); err != nil || h.taken() != 0 {
		t.Errorf("closed: %v, %d seats", err, h.taken())
	}
	for what, ask := range map[string]func() error{
		"a closed session": func() error {
			_, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: "m", Prompt: []acp.ContentBlock{acp.TextBlock("x")}})
			return err
		},
		"an unknown session": func() error {
			_, err := conn.ResumeSession(t.Context(), acp.ResumeSessionRequest{SessionId: "none", Cwd: "/w"})
			return err
		},
		"a folder without / ": func() error {
			_, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "w", McpServers: []acp.McpServer{}})
			return err
		},
		"a mode that is none ": func() error {
			_, err := conn.SetSessionMode(t.Context(), acp.SetSessionModeRequest{SessionId: "m", ModeId: "x"})
			return err
		},
	} {
		if err := ask(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// What needs permission is asked with its diff and its call. Without an answer it
// is refused, and a private rule is offered for this once only.
func TestPermission(t *testing.T) {
	decided := make(chan string, 1)
	h := &host{st: memory.New(), run: func(ctx context.Context, _ session.Info, say llm.Message, ask tool.Approver, yield func(agent.Event, error) bool) {
		ctx = WithCall(ctx, llm.ToolCall{ID: "c7", Name: "edit_file", Args: []byte(`{"path":"a.go"}`)})
		d, err := ask.Approve(ctx, tool.Request{Tool: "edit_file", Path: "a.go", Diff: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n", Private: say.Text() == "private"})
		decided <- fmt.Sprint(d, " ", err)
		yield(says("done"), nil)
	}}
	conn, c := connect(t, h)
	s, err := conn.NewSession(t.Context(), acp.NewSessionRequest{Cwd: "/w", McpServers: []acp.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		say, answer string
		options     int
		want        string
	}{
		{"go", "session", 4, fmt.Sprint(tool.Session, " <nil>")},
		{"go", "no", 4, fmt.Sprint(tool.No, " <nil>")},
		{"go", "", 4, fmt.Sprint(tool.No, " ", tool.Because("the question was closed without an answer"))},
		{"go", "made up", 4, fmt.Sprint(tool.No, " <nil>")},
		{"private", "once", 2, fmt.Sprint(tool.Once, " <nil>")},
	} {
		var asked acp.RequestPermissionRequest
		c.choose = func(r acp.RequestPermissionRequest) acp.RequestPermissionOutcome {
			if asked = r; q.answer == "" {
				return acp.NewRequestPermissionOutcomeCancelled()
			}
			return acp.NewRequestPermissionOutcomeSelected(acp.PermissionOptionId(q.answer))
		}
		if _, err := conn.Prompt(t.Context(), acp.PromptRequest{SessionId: s.SessionId, Prompt: []acp.ContentBlock{acp.TextBlock(q.say)}}); err != nil {
			t.Fatal(err)
		}
		if got := <-decided; got != q.want {
			t.Errorf("%q is answered with %q: %s, want %s", q.say, q.answer, got, q.want)
		}
		diff := asked.ToolCall.Content[0].Diff
		if asked.ToolCall.ToolCallId != "c7" || len(asked.Options) != q.options || diff == nil || diff.Path != "/w/a.go" || *diff.OldText != "same\nold\n" || diff.NewText != "same\nnew\n" {
			t.Errorf("the question is %+v", asked)
		}
	}
}

// What an editor sends becomes a message: files with their names, images, and
// nothing that cannot be understood.
func TestMessage(t *testing.T) {
	file := acp.ContentBlock{Resource: &acp.ContentBlockResource{Type: "resource", Resource: acp.EmbeddedResourceResource{TextResourceContents: &acp.TextResourceContents{Uri: "file:///w/a.go", Text: "package a"}}}}
	m, err := message([]acp.ContentBlock{acp.TextBlock("look"), file, acp.ResourceLinkBlock("b.go", "file:///w/b.go"), acp.ImageBlock("AAAA", "image/png")})
	want := []llm.Block{llm.Text{Text: "look"}, llm.Text{Text: "<file path=\"/w/a.go\">\npackage a\n</file>"}, llm.Text{Text: "[/w/b.go]"}, llm.Image{MIME: "image/png", Data: "AAAA"}}
	if err != nil || !reflect.DeepEqual(m.Blocks, want) {
		t.Errorf("the message is %+v (%v)", m, err)
	}
	for name, blocks := range map[string][]acp.ContentBlock{"nothing": nil, "white space": {acp.TextBlock(" \n")}, "a broken image": {acp.ImageBlock("%%", "image/png")}, "a sound": {acp.AudioBlock("AAAA", "audio/wav")}} {
		if m, err := message(blocks); err == nil {
			t.Errorf("%s is taken as %+v", name, m)
		}
	}
}
