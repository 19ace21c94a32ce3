// Package overhead measures what a turn takes beside its model, for the programs
// that measure stores.
package overhead

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"time"

	"goclaw/agent"
	"goclaw/llm"
	"goclaw/provider/anthropic"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/store/storetest"
	"goclaw/tool"
	"goclaw/window"
	"goclaw/window/bpe"
)

// History is how many tokens the session has before the turns.
const History = 200_000

// instant is a server of Anthropic's API that answers at once and notes when it
// was asked and when it had answered.
type instant struct {
	mu              sync.Mutex
	asked, answered time.Time
}

func (p *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = time.Now() // the first bytes have arrived
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

`, History)
	p.answered = time.Now()
}

func (p *instant) times() (asked, answered time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, p.answered
}

// Turns measures n turns on a new session in st with a real provider: from the
// input to the request on the wire, from the end of the answer to its record,
// and from there to the end of the turn, when its lock is released. dir is for
// the workspace.
func Turns(st session.Store, dir string, n int) (before, after, end []time.Duration, err error) {
	ctx := context.Background()
	tok := bpe.CL100K()
	tok.Count("warm")
	s, err := session.Load(ctx, st, "main:cli:user", session.System{})
	if err != nil {
		return nil, nil, nil, err
	}
	tokens := 0
	for r := range storetest.Conversation(1, 1_000_000) {
		switch r.Body.(type) {
		case session.Header, session.Compaction:
			continue
		}
		r = s.Next(r.Body, session.System{})
		if err := st.Append(ctx, s.ID, r); err != nil {
			return nil, nil, nil, err
		}
		if err := s.Apply(r); err != nil {
			return nil, nil, nil, err
		}
		if m, ok := r.Body.(session.Message); ok {
			tokens += tok.Count(m.Text())
			for _, res := range m.Results() {
				tokens += tok.Count(res.Text())
			}
		}
		if tokens > History {
			break
		}
	}
	tools, err := tool.New(tool.Options{Workspace: filepath.Join(dir, "workspace"), Now: time.Now})
	if err != nil {
		return nil, nil, nil, err
	}
	defer tools.Close()
	model := &instant{}
	srv := httptest.NewServer(model)
	defer srv.Close()
	provider := anthropic.New(anthropic.Config{BaseURL: srv.URL, APIKey: "k"})
	r := runner.New(runner.Options{Store: st, Who: "bench", Env: func(context.Context, *session.Session) (agent.Env, error) {
		return agent.Env{Provider: provider, Tools: tools, Tokens: tok, Budget: window.Budget{Window: 2 * History}, Prompt: window.Prompt{Provider: "p", Model: "m", System: "be brief"}}, nil
	}})
	for range n {
		begin := time.Now()
		var done time.Time
		for ev, err := range r.RunID(ctx, s.ID, llm.UserText("and then?")) {
			if err != nil {
				return nil, nil, nil, err
			}
			if _, ok := ev.(agent.Done); ok {
				done = time.Now()
			}
		}
		asked, answered := model.times()
		before, after, end = append(before, asked.Sub(begin)), append(after, done.Sub(answered)), append(end, time.Since(done))
	}
	return before, after, end, nil
}
