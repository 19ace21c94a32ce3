//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package repl

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/tui/tuitest"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/recall"
	"goclaw/session"
)

// finder finds the same whatever is looked for.
type finder []recall.Hit

func (f finder) Search(context.Context, recall.Query) (recall.Result, error) {
	return recall.Result{Hits: f}, nil
}

func (finder) File(string, int, int) (string, int, error) { return "", 0, nil }

// seeWhole waits until the screen shows text, broken between words at most.
func seeWhole(t *testing.T, p *tuitest.Person, text string) {
	t.Helper()
	p.Await(fmt.Sprintf("the words %q", text), func(s string, _, _ int) bool {
		return strings.Contains(strings.Join(strings.Fields(s), " "), text)
	})
}

// On a terminal of 40 columns, plain lines break no word that there is room for,
// in whatever the chat shows.
func TestTerminalNarrow(t *testing.T) {
	const (
		width    = 40
		name     = "openrouter/some-vendor/with-a-very-long-model-name-of-2026"
		key      = "main:cli:a-conversation"
		question = "Could you establish which counterparties acknowledged the outstanding reconciliation?"
		answer   = "Internationally recognised counterparties acknowledged 東京の天気 👍 everything including the reconciliation statements."
		code     = "some code that is much longer than forty columns are"
		problem  = "the model that was chosen for this conversation cannot be asked at present"
	)
	gate := make(chan struct{})
	slow := func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		<-gate
		return llmtest.Say("done")(ctx, req)
	}
	b := newBench(slow)
	b.seed(t, "s1", key, User(question), By("other", "model", Answer(answer+"\n```\n"+code+"\n```")), Title("Reconciliation statements of counterparties"))
	p, over := b.sitPlain(t, context.Background(), width, 200, func(o *Options) {
		decide, model := o.Decide, o.Model
		o.Model = func() Model { m := model(); m.Name = name; return m }
		o.Decide = func(ctx context.Context, s *session.Session) (Model, string, error) {
			_, _, err := decide(ctx, s)
			return o.Model(), problem, err
		}
		o.Search = finder{{Session: "s1", Key: key, Title: "Reconciliation statements", Seq: 3, Role: "assistant", Text: answer}}
	})
	says := func(text string) { // what is typed before the prompt is there stands elsewhere
		t.Helper()
		p.Await("the prompt", func(s string, _, col int) bool { return strings.HasSuffix(s, "\n>") && col == len("> ") })
		p.Press(text)
	}
	seeWhole(t, p, problem)
	seeWhole(t, p, "Restored: 1 previous turn of "+key+" (Reconciliation statements of counterparties)")
	says("/sessions\r")
	seeWhole(t, p, "1* Reconciliation statements of counter… now, 1 turn")
	says("/history\r")
	seeWhole(t, p, question)
	seeWhole(t, p, answer)
	says("/search counterparties\r")
	seeWhole(t, p, "assistant record 3 … recognised counterparties acknowledged 東京の天気 👍")
	seeWhole(t, p, "/open N opens hit N in its context")
	says("/open 1\r")
	seeWhole(t, p, "/switch s1 goes there")
	says("/title Reconciliation of the outstanding statements, acknowledged\r")
	seeWhole(t, p, `is now called "Reconciliation of the outstanding statements, acknowledged"`)
	says("/nonsense\r")
	seeWhole(t, p, "error: ")
	says("go\r")
	close(gate)
	p.See("\ndone\n")
	p.Press("\x04")
	over()

	if !strings.Contains(p.All(), code) {
		t.Errorf("the code is broken: %q", p.All())
	}
	for _, line := range strings.FieldsFunc(sequence.ReplaceAllString(p.All(), ""), func(r rune) bool { return r == '\r' || r == '\n' }) {
		if strings.Contains(line, code) || strings.Contains(line, name) || strings.HasPrefix(line, "> /") {
			continue
		}
		if w := displaywidth.String(line); w > width {
			t.Errorf("a line has %d columns: %q", w, line)
		}
	}
}

var sequence = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")
