//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"

	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/internal/tui"
	"goclaw/internal/tui/tuitest"
	"goclaw/llm"
	"goclaw/tool"
)

// nobody is a chat that can only be interrupted.
type nobody struct {
	tui.Chat
	stop context.CancelCauseFunc
}

func (n nobody) Interrupt()                   { n.stop(line.ErrInterrupt) }
func (nobody) Completions() []repl.Completion { return nil }
func (nobody) Arguments(string) (now []repl.Completion, later func() []repl.Completion) {
	return nil, nil
}
func (nobody) Commands() [][2]string { return nil }

// show runs a UI on a terminal, prepared by with, while work uses it.
func show(t *testing.T, cols, rows int, work func(ctx context.Context, ui *tui.UI), with ...func(ui *tui.UI)) (p *tuitest.Person, over <-chan struct{}) {
	t.Helper()
	p = tuitest.New(t, cols, rows)
	ui := tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=xterm-256color"}})
	ctx, stop := context.WithCancelCause(context.Background())
	ui.Attach(nobody{stop: stop})
	for _, f := range with {
		f(ui)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := ui.Run(ctx, func(ctx context.Context) error { work(ctx, ui); return nil }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { p.Hangup(); <-done })
	return p, done
}

// await returns what comes of a key.
func await[T any](t *testing.T, p *tuitest.Person, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(tuitest.Patience):
		p.Hangup()
		t.Fatalf("nothing came; the terminal shows\n%s", p.Text())
	}
	return v
}

// clock says when keys come. It stands still until the user pauses, however long
// the machine takes.
type clock struct{ paused atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_000_000_000+c.paused.Load(), 0) }

func (c *clock) pause() { c.paused.Add(1) }

// typed waits until the input ends with text, which a question hides.
func typed(t *testing.T, p *tuitest.Person, ui *tui.UI, text string) {
	t.Helper()
	for begin := time.Now(); !strings.HasSuffix(ui.InputText(), text); time.Sleep(time.Millisecond) {
		if time.Since(begin) > tuitest.Patience {
			t.Fatalf("the input has %q, want %q; the terminal shows\n%s", ui.InputText(), text, p.Text())
		}
	}
}

func ended(name, args, text string) repl.Call {
	c := llm.ToolCall{ID: name + args, Name: name, Args: []byte(args)}
	return repl.Call{ToolCall: c, Title: transcript.CallLine(c), State: repl.CallRecorded, Result: llm.Result(c, text)}
}

// What was typed before a question is on the screen, or while the user is in the
// middle of a word, does not answer it.
func TestTypedBeforeTheQuestion(t *testing.T) {
	ready, answers := make(chan struct{}), make(chan string, 3)
	var c clock
	var ui *tui.UI
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		defer ui.Busy("working")()
		<-ready
		for _, command := range []string{"rm -r build | tee log", "the second"} {
			d, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: command, Dir: "/work", Rule: tool.Exactly("x")})
			answers <- fmt.Sprint(d, " ", err)
		}
		text, _ := ui.ReadLine(ctx, "")
		answers <- text
	}, func(u *tui.UI) { ui = u; u.SetClock(c.now) })
	p.See("working")
	p.Press("yes say")
	p.See("yes say")
	close(ready)
	p.Press("any") // the question comes now
	p.See("| tee log")
	p.Press("yyy")
	typed(t, p, ui, "yes sayanyyyy")
	c.pause()
	p.Press("s") // nor later, while the input holds something
	typed(t, p, ui, "yes sayanyyyys")
	p.Press("\x1b")
	p.See("set aside")
	p.Press("s")
	if got := await(t, p, answers); got != "session <nil>" {
		t.Errorf("the answer is %q", got)
	}
	p.See("the second")
	p.Press("bnot now\r")
	if got := await(t, p, answers); got != "no not now" {
		t.Errorf("the answer is %q", got)
	}
	p.Press("\r")
	if got := await(t, p, answers); got != "yes sayanyyyys" {
		t.Errorf("the input had %q", got)
	}
	<-over
}

// Whoever writes a message although a question is open answers nothing, whatever
// letters it has, until the message is queued or set aside. It is seen below the
// question.
func TestMessageAtAQuestion(t *testing.T) {
	large := `bash wants to run in /work:
  rm -r build
  s and a allow exactly this.
  y  yes, once
  s  yes, in this session
  a  yes, always here
❯ n  no
  b  no, because …
> try it any
Enter queues it; Esc: answer first`
	small := `bash wants to run in /work:
  rm -r build
y yes  s  a  n no  b
> try it any
Enter queues it; Esc: answer first`
	t.Run("80x24", func(t *testing.T) { messageAtAQuestion(t, 80, 24, large) })
	t.Run("40x20", func(t *testing.T) { messageAtAQuestion(t, 40, 20, large) })
	t.Run("40x10", func(t *testing.T) { messageAtAQuestion(t, 40, 10, small) })
}

func messageAtAQuestion(t *testing.T, cols, rows int, screen string) {
	answers := make(chan string, 4)
	var c clock
	p, over := show(t, cols, rows, func(ctx context.Context, ui *tui.UI) {
		for _, command := range []string{"rm -r build", "the second"} {
			d, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: command, Dir: "/work", Rule: tool.Exactly("x")})
			answers <- fmt.Sprint(d, " ", err)
		}
		for range 2 {
			text, _ := ui.ReadLine(ctx, "")
			answers <- text
		}
	}, func(u *tui.UI) { u.SetClock(c.now) })
	p.See("rm -r build")
	p.Press("try it")
	p.See("> try it")
	c.pause()
	p.Press(" any")
	p.See("> try it any")
	p.Shows(screen, strings.Count(screen, "\n")-1, len("> try it any"))
	c.pause()
	p.Press("\ryes")               // the second line of what was pasted as keys, or typed in one go
	p.See("» try it any queued\n") // the arrow up is the question's
	p.See("> yes")
	c.pause()
	p.Press("\x1b[200~ and y\x1b[201~") // nor does a paste answer
	p.See("> yes and y")
	c.pause()
	p.Press("\x1b")
	p.Await("a question without an input", func(s string, _, _ int) bool {
		return !strings.Contains(s, "> yes and y") && (rows < 12 || strings.Contains(s, "set aside"))
	})
	p.Press("n")
	if got := await(t, p, answers); got != "no <nil>" {
		t.Errorf("the answer is %q", got)
	}
	// The next question is answered at once: nothing was typed since.
	p.See("the second")
	p.Press("s")
	if got := await(t, p, answers); got != "session <nil>" {
		t.Errorf("the answer is %q", got)
	}
	if got := await(t, p, answers); got != "try it any" {
		t.Errorf("%q was queued", got)
	}
	p.See("> yes and y")
	c.pause() // "s Enter" would be one answer
	p.Press("\r")
	if got := await(t, p, answers); got != "yes and y" {
		t.Errorf("the input had %q", got)
	}
	<-over
}

// Ctrl-C clears a message at a question before it stops anything, and a message
// can be sent into the turn that asks.
func TestKeysAtAQuestion(t *testing.T) {
	answers := make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		yes, err := ui.Yes(ctx, "Continue it?", true)
		answers <- fmt.Sprint(yes, " ", err)
		ui.Steering()
		defer ui.Busy("working")()
		d, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: "rm -r build", Dir: "/work", Rule: tool.Exactly("x")})
		answers <- fmt.Sprint(d, " ", err, " ", ui.Steered().Text())
	})
	p.See("Continue it?")
	p.Press("/continue")
	p.See("> /continue")
	p.Press("\x03")
	p.Await("an empty input", func(s string, _, _ int) bool { return !strings.Contains(s, "> /continue") })
	p.Press("\r")
	if got := await(t, p, answers); got != "true <nil>" {
		t.Errorf("the answer is %q", got)
	}
	p.See("rm -r build")
	p.Press("use make\x13")
	p.See("↳ use make")
	p.Press("\x1b")
	if got := await(t, p, answers); got != "no <nil> use make" {
		t.Errorf("the answer is %q", got)
	}
	<-over
}

// Nor does what is typed into a viewer when a question comes.
func TestTypedIntoAViewer(t *testing.T) {
	ready, answers := make(chan struct{}), make(chan string, 1)
	var c clock
	var ui *tui.UI
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			ui.ShowCalls(ctx, []repl.Call{ended("bash", `{"command":"make"}`, "made")}, 0)
		}()
		defer func() { <-closed }()
		<-ready
		d, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: "rm -r build", Dir: "/work", Rule: tool.Exactly("x")})
		answers <- fmt.Sprint(d, " ", err)
	}, func(u *tui.UI) { ui = u; u.SetClock(c.now) })
	p.See("q leaves")
	p.Press("/sa")
	p.See("/sa")
	close(ready)
	p.Press("y")
	p.See("rm -r build")
	p.Press("yaya")
	typed(t, p, ui, "yaya")
	c.pause()
	p.Press("a")
	typed(t, p, ui, "yayaa")
	p.Press("\x1b")
	p.See("set aside")
	p.Press("n")
	if got := await(t, p, answers); got != "no <nil>" {
		t.Errorf("the answer is %q", got)
	}
	p.See("made") // the viewer is there again
	p.Press("\x1b")
	p.Await("no search", func(text string, _, _ int) bool { return !strings.Contains(text, "/sa") })
	p.Press("q")
	<-over
}

// Ctrl-C says no and stops.
func TestCtrlCAtAQuestion(t *testing.T) {
	answers := make(chan error, 2)
	p, over := show(t, 40, 20, func(ctx context.Context, ui *tui.UI) {
		_, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: "x", Rule: tool.Exactly("x")})
		answers <- err
		// A Ctrl-C that comes before the question is known to be seen ends ctx as well.
		yes, err := ui.Yes(context.WithoutCancel(ctx), "Really?", true)
		if !yes {
			err = errors.New("no")
		}
		answers <- err
	})
	p.See("no, because")
	p.Press("\x03")
	if err := await(t, p, answers); !errors.Is(err, line.ErrInterrupt) {
		t.Error(err)
	}
	p.See("Really?")
	p.Press("\r")
	if err := await(t, p, answers); err != nil {
		t.Error(err)
	}
	<-over
}

// A call is drawn while it runs and printed once when it has ended; its output
// can be opened, while the turn goes on, and does not stay on the screen.
func TestCalls(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 20}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			next := make(chan struct{})
			p, over := show(t, size[0], size[1], func(ctx context.Context, ui *tui.UI) {
				idle := ui.Busy("waiting")
				c := ended("bash", `{"command":"make"}`, strings.Repeat("made something\n", 99)+"the last\n[exit code 0]")
				runs := c
				runs.State, runs.Result, runs.Tail, runs.Began = repl.CallRuns, llm.ToolResult{}, "making a\nmaking b", time.Now()
				ui.Call(runs)
				<-next
				ui.Call(c)
				ui.Call(ended("grep", `{"pattern":"x"}`, "one\ntwo"))
				<-next
				idle()
			})
			p.See("bash make\n  making a\n  making b\n")
			next <- struct{}{}
			p.See("✓ bash make\n  made something\n")
			p.See("  … 94 more lines (Ctrl-O opens)\n✓ grep \"x\"  2 lines\n")
			p.Press("\x0f")
			p.See("grep \"x\"  2 of 2")
			p.Press("\x1b[D")
			p.See("bash make  1 of 2")
			p.Press("G")
			p.See("the last\n[exit code 0]\n")
			p.Press("q")
			p.Await("the chat again", func(text string, _, _ int) bool { return !strings.Contains(text, "1 of 2") })
			next <- struct{}{}
			<-over
			if text := p.Text(); strings.Count(text, "✓ bash make") != 1 || strings.Contains(text, "making a") {
				t.Errorf("the terminal shows\n%s", text)
			}
		})
	}
}

// In screen(1), which has no alternate screen unless it is told to, what was said
// scrolls away before something has the whole screen, and that does not stay.
func TestViewerInScreen(t *testing.T) {
	next := make(chan struct{})
	p := tuitest.New(t, 80, 24)
	ui := tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=screen", "STY=1.tty.host"}})
	ui.Attach(nobody{})
	over := make(chan error, 1)
	go func() {
		over <- ui.Run(context.Background(), func(ctx context.Context) error {
			ui.Print("said before\nand this")
			<-next
			ui.ShowCalls(ctx, []repl.Call{ended("bash", `{"command":"make"}`, "made")}, 0)
			ui.Print("said after")
			<-next
			return nil
		})
	}()
	p.See("and this\n> Ask")
	next <- struct{}{}
	p.See("q leaves")
	p.Press("q")
	p.See("said after\n> Ask")
	seen := vt.NewEmulator(80, 24)
	defer seen.InputPipe().(io.Closer).Close()
	go io.Copy(io.Discard, seen) // what it answers
	for _, b := range []string{ansi.SetModeAltScreenSaveCursor, ansi.ResetModeAltScreenSaveCursor} {
		if !strings.Contains(p.All(), b) {
			t.Errorf("the viewer was not on the alternate screen: %q", p.All())
		}
	}
	seen.WriteString(strings.NewReplacer(ansi.SetModeAltScreenSaveCursor, "", ansi.ResetModeAltScreenSaveCursor, "").Replace(p.All()))
	if screen := strings.Join(strings.Fields(seen.String()), " "); !strings.HasPrefix(screen, "said after > Ask") {
		t.Errorf("the screen shows\n%s", seen)
	}
	var away string
	for _, l := range seen.Scrollback().Lines() {
		away += strings.TrimSpace(l.String()) + "\n"
	}
	if away != "said before\nand this\n" {
		t.Errorf("%q scrolled away", away)
	}
	next <- struct{}{}
	if err := await(t, p, over); err != nil {
		t.Error(err)
	}
}

// Two Escs that come at once are two.
func TestEscTwice(t *testing.T) {
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		ui.ShowCalls(ctx, []repl.Call{ended("bash", `{"command":"make"}`, "made")}, 0)
	})
	p.See("q leaves")
	p.Press("/sa")
	p.See("/sa")
	p.Press("\x1b\x1b")
	select {
	case <-over:
	case <-time.After(tuitest.Patience):
		t.Errorf("the terminal shows\n%s", p.Text())
	}
}

// A question does not offer the key for help, which it would not take.
func TestNoHelpAtAQuestion(t *testing.T) {
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) { ui.Yes(ctx, "Really?", true) })
	p.See("y yes")
	if text := p.Text(); strings.Contains(text, "help") {
		t.Errorf("the terminal shows\n%s", text)
	}
	p.Press("\r")
	<-over
}

// "y Enter" answers one question and not the next as well, nor sends what stands
// in the input.
func TestAnswerAndEnter(t *testing.T) {
	answers := make(chan string, 3)
	var c clock
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for _, command := range []string{"the first", "the second"} {
			d, err := ui.Permit(ctx, tool.Request{Tool: "bash", Command: command, Dir: "/work", Rule: tool.Exactly("x")})
			answers <- fmt.Sprint(d, " ", err)
		}
	}, func(ui *tui.UI) { ui.SetClock(c.now) })
	p.See("the first")
	p.Press("y")
	if got := await(t, p, answers); got != "once <nil>" {
		t.Errorf("the answer is %q", got)
	}
	p.See("the second")
	p.Press("\r")
	p.Press("s")
	if got := await(t, p, answers); got != "session <nil>" {
		t.Errorf("the answer is %q", got)
	}
	<-over
}

// What the terminal answers is read also if there is nothing to do, and does not
// stand on the command line.
func TestLeavesAtOnce(t *testing.T) {
	for range 3 {
		p, over := show(t, 80, 24, func(context.Context, *tui.UI) {})
		<-over
		fmt.Fprint(p.TTY, "$ here")
		p.See("$ here")
		if text := p.Text(); strings.Contains(text, "rgb:") || strings.Contains(text, "[?2026") {
			t.Errorf("the terminal shows\n%s", text)
		}
	}
}
