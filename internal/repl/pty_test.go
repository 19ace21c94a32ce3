//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package repl

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"strings"
	"testing"
	"time"

	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/tuitest"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	"goclaw/tool"
)

// hang says text and then nothing more until it is stopped.
func hang(text string) llmtest.Step {
	return func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			if text != "" && !yield(llm.Delta{Text: text}, nil) {
				return
			}
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		}
	}
}

// sit runs a chat on a real terminal. over waits for its end.
func (b *bench) sit(t *testing.T, ctx context.Context, opts ...func(*Options)) (p *tuitest.Person, over func()) {
	t.Helper()
	return b.sitAt(t, ctx, 80, 24, opts...)
}

// Terminal is the interface of package tui, for tests that may not import it.
type Terminal interface {
	Input
	Display
	Width() int
	Connect(c *Chat)
	Run(ctx context.Context, work func(context.Context) error) error
}

// OnTerminal returns the interface on a terminal.
var OnTerminal func(tty *os.File) Terminal

// sitAt is sit on a terminal of another size.
func (b *bench) sitAt(t *testing.T, ctx context.Context, cols, rows int, opts ...func(*Options)) (p *tuitest.Person, over func()) {
	t.Helper()
	p = tuitest.New(t, cols, rows)
	ui := OnTerminal(p.TTY)
	o := b.options(p.TTY, p.TTY)
	o.Interactive, o.Display, o.Style, o.Width = true, ui, transcript.Style{Colour: true}, ui.Width
	for _, f := range opts {
		f(&o)
	}
	chat := New(o)
	if a, ok := b.tools.(*asking); ok {
		a.ask = chat.Approve
	}
	ui.Connect(chat)
	return p, ends(t, p, func() error {
		return ui.Run(ctx, func(ctx context.Context) error { return chat.Run(ctx, ui) })
	})
}

// sitPlain is sitAt with plain lines.
func (b *bench) sitPlain(t *testing.T, ctx context.Context, cols, rows int, opts ...func(*Options)) (p *tuitest.Person, over func()) {
	t.Helper()
	p = tuitest.New(t, cols, rows)
	o := b.options(p.TTY, p.TTY)
	o.Interactive, o.Width = true, func() int { return cols }
	for _, f := range opts {
		f(&o)
	}
	chat := New(o)
	return p, ends(t, p, func() error { return chat.Run(ctx, line.NewPlain(p.TTY, p.TTY)) })
}

// ends runs a chat; over waits for its end.
func ends(t *testing.T, p *tuitest.Person, run func() error) (over func()) {
	done := make(chan error, 1)
	go func() { done <- run() }()
	return func() {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the chat ends with %v, want nil", err)
			}
		case <-time.After(tuitest.Patience):
			t.Fatalf("the chat does not end; all that came: %q", p.All())
		}
	}
}

// lastBody returns the last record of the only session.
func (b *bench) lastBody(t *testing.T) session.Body {
	t.Helper()
	in, err := session.Current(context.Background(), b.store, "main:cli:user")
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(context.Background(), b.store, in.ID)
	if err != nil {
		t.Fatal(err)
	}
	return s.Branch[len(s.Branch)-1].Body
}

// What explains a command stays in its column.
func TestTerminalHelp(t *testing.T) {
	b := newBench()
	p, over := b.sitAt(t, t.Context(), 80, 60)
	p.Rests()
	p.Press("/help\r")
	p.See("\n  /sessions [--all] [text|all]  list the sessions, most recently used first;\n" + strings.Repeat(" ", 32) + "--all: subagents' as well (also /list)\n")
	p.Press("/quit\r")
	over()
}

func TestTerminalTalk(t *testing.T) {
	b := newBench(llmtest.Say("a **bold** word"))
	p, over := b.sit(t, context.Background())
	p.See("New session")
	p.Press("hello\r")
	p.See("> hello\na bold word\n\n>")
	p.Press("\x1b[200~one\ntwo\x1b[201~")
	p.See("> one\n  two")
	p.Press("\r")
	p.See("echo: one\ntwo")
	if got := b.model.Requests()[1].Messages[2].Text(); got != "one\ntwo" {
		t.Errorf("a paste of two lines is said as %q", got)
	}
	p.Press("/swi\t")
	p.See("> /switch")
	p.Press("main\r")
	p.See("already in main:cli:user")
	p.Press("\x1b[A\x1b[A")
	p.See("> one\n  two\n")
	p.Press("\x15\x7f\x15\x04")
	over()
	p, over = b.sit(t, context.Background())
	p.See("Restored: 2 previous turns of main:cli:user")
	p.Press("/quit\r")
	over()
}

func TestTerminalEscape(t *testing.T) {
	b := newBench(hang("so far so good"))
	p, over := b.sit(t, context.Background())
	p.Rests()
	p.Press("go\r")
	p.See("so far so good")
	p.Press("\x1b")
	p.See("so far so good\n[stopped; everything so far is saved]\n\n>")
	p.Rests()
	p.Press("hello\r") // Escape takes nothing away from the next key
	p.See("echo: hello\n\n>")
	p.Press("\x04")
	over()
}

func TestTerminalCtrlC(t *testing.T) {
	t.Run("stops the answer", func(t *testing.T) {
		b := newBench(hang("so far so good"))
		p, over := b.sit(t, context.Background())
		p.Rests()
		p.Press("go\r")
		p.See("so far so good")
		p.Press("\x03")
		p.See("so far so good\n[stopped; everything so far is saved]\n\n>")
		m, ok := b.lastBody(t).(session.Message)
		if !ok || m.Text() != "so far so good" || m.Stop != llm.StopAborted {
			t.Errorf("the last record is %+v, want the stopped answer", b.lastBody(t))
		}
		p.Press("more\r")
		p.See("echo: more\n\n>") // the turn is over
		p.Press("\x03")
		p.See("Ctrl-C again to quit")
		p.Press("x")
		p.See("> x")
		p.Press("\x03") // clears
		p.Rests()
		p.Press("\x03")
		over()
	})
	t.Run("keeps what was typed ahead", func(t *testing.T) {
		b := newBench(hang("so far"))
		p, over := b.sit(t, context.Background())
		p.Rests()
		p.Press("go\r")
		p.See("so far")
		p.Press("and then?\r")
		p.See("» and then?")
		p.Press("/quit\r")
		p.See("» /quit")
		p.Press("\x03")
		p.See("so far\n[stopped; everything so far is saved]\n\n> and then?\n  /quit")
		p.Press("\x7f\x7f\x7f\x7f\x7fthis\r")
		p.See("echo: and then?\nthis")
		p.Press("\x04")
		over()
		if got := b.model.Requests()[1].Messages; got[len(got)-1].Text() != "and then?\nthis" {
			t.Errorf("said is %q", got[len(got)-1].Text())
		}
	})
	t.Run("twice quits", func(t *testing.T) {
		b := newBench(hang("so far"))
		p, over := b.sit(t, context.Background())
		p.Rests()
		p.Press("go\r")
		p.See("so far")
		p.Press("\x03\x03")
		over()
		if m, ok := b.lastBody(t).(session.Message); !ok || m.Stop != llm.StopAborted {
			t.Errorf("the last record is %+v, want the stopped answer", b.lastBody(t))
		}
	})
	t.Run("aborts what does not end", func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				if yield(llm.Delta{Text: "deaf"}, nil) {
					<-release
					yield(llm.Delta{}, ctx.Err())
				}
			}
		}
		aborted := make(chan struct{}, 8)
		p, over := newBench(deaf).sit(t, context.Background(), func(o *Options) { o.Abort = func() { aborted <- struct{}{} } })
		p.Rests()
		p.Press("go\r")
		p.See("deaf")
		p.Press("\x03\x03\x03")
		select {
		case <-aborted:
		case <-time.After(tuitest.Patience):
			t.Fatal("the third Ctrl-C does not end the program")
		}
		close(release)
		over()
	})
	t.Run("before a word", func(t *testing.T) {
		b := newBench(hang(""))
		p, over := b.sit(t, context.Background())
		p.Rests()
		p.Press("go\r")
		p.See("waiting for test/one")
		p.Press("\x03")
		p.See("[stopped; everything so far is saved]")
		p.Press("/continue\r")
		p.See("echo: go")
		p.Press("\x04")
		over()
	})
}

func TestTerminalSignals(t *testing.T) {
	for name, step := range map[string]llmtest.Step{"in an answer": hang("so far"), "at the prompt": llmtest.Say("so far")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(step)
			ctx, cancel := context.WithCancel(context.Background())
			p, over := b.sit(t, ctx)
			p.Rests()
			p.Press("go\r")
			p.See("so far")
			if name == "at the prompt" {
				p.See("so far\n\n>")
			}
			cancel()
			over()
			in, err := session.Current(context.Background(), b.store, "main:cli:user")
			if err != nil || in.Turns != 1 {
				t.Errorf("%d turns are kept (%v), want 1", in.Turns, err)
			}
		})
	}
	t.Run("hangup", func(t *testing.T) {
		p, over := newBench().sit(t, context.Background())
		p.See(">")
		p.Hangup()
		over()
	})
}

// asking is a tool that needs leave.
type asking struct {
	tools
	ask func(context.Context, tool.Request) (tool.Decision, error)
}

func (a *asking) Run(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	d, err := a.ask(ctx, tool.Request{Tool: c.Name, Command: "rm -r build", Dir: "/w", Rule: tool.Exactly("rm -r build")})
	if err != nil {
		return llm.ToolResult{}, err
	}
	return llm.Result(c, d.String()), ctx.Err()
}

func TestTerminalApproval(t *testing.T) {
	call := func(id string) llmtest.Step { return llmtest.Call(id, "bash", `{"command":"rm -r build"}`) }
	b := newBench(call("c1"), llmtest.Say("one"), call("c2"), llmtest.Say("two"), call("c3"))
	b.tools = &asking{}
	var allowed []string
	p, over := b.sit(t, context.Background(), func(o *Options) {
		o.Remember = func(r tool.Rule) error { allowed = append(allowed, r.Exact); return errors.New("disk full") }
	})
	p.Rests()
	question := func() {
		t.Helper()
		p.See("bash wants to run in /w:\n  rm -r build\n")
		p.See("a  yes, always here\n❯ n  no")
	}
	p.Press("first\ry") // what is typed ahead is no leave
	question()
	p.See("> y\nEnter queues it; Esc: answer first")
	p.Press("\x1b")
	p.See("set aside")
	p.Press("y")
	p.See("one\n\n> y")
	p.Press("\x7fsecond\r")
	question()
	p.Press("a")
	p.See("this is allowed until goclaw exits, but could not be saved: disk full")
	p.See("two\n\n>")
	p.Rests()
	p.Press("third\r")
	question()
	p.Press("\x03")
	p.See("[stopped; everything so far is saved]")
	p.Rests()
	p.Press("\x04")
	over()
	if len(allowed) != 1 || allowed[0] != "rm -r build" {
		t.Errorf("allowed for always is %q, want the command", allowed)
	}
	var results []string
	s, err := session.Load(context.Background(), b.store, "main:cli:user", b.clock)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range s.Branch {
		if m, ok := rec.Body.(session.Message); ok {
			for _, r := range m.Results() {
				results = append(results, r.Text())
			}
		}
	}
	if want := "once always no\n(stopped by the user)"; strings.Join(results, " ") != want {
		t.Errorf("the results are %q, want %q", results, want)
	}
}

// The spinner has its line to itself and leaves nothing behind.
func TestTerminalSpinner(t *testing.T) {
	gate := make(chan struct{})
	slow := func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		<-gate
		return llmtest.Answer(llm.Text{Text: "here"}, llm.ToolCall{ID: "c1", Name: "look", Args: json.RawMessage("{}")})(ctx, req)
	}
	b := newBench(slow, llmtest.Say("and there"))
	p, over := b.sit(t, context.Background())
	p.Rests()
	p.Press("go\r")
	p.See(" waiting for test/one")
	close(gate)
	p.See("> go\nhere\n✓ look()  1s\n  seen\nand there\n\n>")
	p.Press("\x04")
	over()
}

// printing are tools that print while they run.
type printing struct {
	tools
	gate chan struct{}
}

func (p printing) Run(ctx context.Context, c llm.ToolCall) (llm.ToolResult, error) {
	for _, tail := range []string{"one", "one\n\x1b[2Jtwo\tthree\n4\n5\n6\n" + strings.Repeat("long ", 40), "7"} {
		llm.ProgressOf(ctx).Output(tail, 100)
		<-p.gate
	}
	return llm.Result(c, "1\n2"), nil
}

// What a tool prints is seen while it runs, and replaced by its result.
func TestTerminalLiveOutput(t *testing.T) {
	b := newBench(llmtest.Call("c1", "look", `{}`), llmtest.Say("done"))
	gate := make(chan struct{})
	b.tools = printing{gate: gate}
	p, over := b.sit(t, context.Background(), func(o *Options) { o.Width = func() int { return 80 } })
	p.Rests()
	p.Press("go\r")
	p.See(" look()")
	p.See("\n  one\n")
	gate <- struct{}{}
	p.See("\n  \uFFFD[2Jtwo")
	p.See("\n  4\n  5\n  6\n  long long long")
	gate <- struct{}{}
	p.See("\n  7\n")
	gate <- struct{}{}
	p.See("> go\n✓ look()  1s\n  1\n  2\ndone\n\n>")
	p.Press("\x04")
	over()
}
