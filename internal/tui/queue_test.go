//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"goclaw/internal/repl"
	"goclaw/internal/repl/history"
	"goclaw/internal/repl/line"
	"goclaw/internal/tui"
	"goclaw/internal/tui/tuitest"
)

// Two Ctrl-C that arrive at once are two, although the chat has not heard of the
// first when the second comes.
func TestTwoCtrlCAtOnce(t *testing.T) {
	next, got := make(chan struct{}), make(chan error, 2)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for range 2 {
			_, err := ui.ReadLine(ctx, "")
			got <- err
			<-next
		}
	})
	p.See("? for help")
	p.Press("\x03\x03later")
	p.See("later") // both were seen
	close(next)
	for range 2 {
		if err := await(t, p, got); !errors.Is(err, line.ErrInterrupt) {
			t.Error(err)
		}
	}
	<-over
}

// Who stops an answer has all that waits in the input again: what was to be sent
// next, and what was to be sent into the answer.
func TestStopTakesBackWhatWaits(t *testing.T) {
	stopped, got := make(chan struct{}), make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		ui.Steering()
		idle := ui.Busy("working")
		<-ctx.Done()
		idle()
		close(stopped)
		text, _ := ui.ReadLine(context.WithoutCancel(ctx), "")
		got <- text
	})
	p.See("working")
	p.Press("go left\x13")
	p.See("↳ go left")
	p.Press("then right\r")
	p.See("» then right")
	p.Press("\x1b")
	<-stopped
	p.See("> go left\n  then right\n")
	p.Press("\r")
	if text := await(t, p, got); text != "go left\nthen right" {
		t.Errorf("%q was sent", text)
	}
	<-over
}

// When the chat ends, what was typed and not sent is told, and kept.
func TestUnsentMessagesAreKept(t *testing.T) {
	h, end := &history.History{}, make(chan struct{})
	p, over := show(t, 80, 24, func(_ context.Context, ui *tui.UI) {
		ui.Steering()
		defer ui.Busy("working")()
		<-end
	}, func(ui *tui.UI) { ui.Remember(h) })
	p.See("working")
	p.Press("one\x13two\rthree")
	p.See("» two")
	p.See("> three")
	close(end)
	<-over
	p.See("not sent: one (↑ brings it back)\nnot sent: two (↑ brings it back)\nnot sent: three (↑ brings it back)")
	if !slices.Equal(h.Lines(), []string{"one", "two", "three"}) {
		t.Errorf("the history has %q", h.Lines())
	}
	if strings.Contains(p.Text(), "queued") {
		t.Errorf("the terminal shows\n%s", p.Text())
	}
}

// A reading that is over before it begins takes no message that waits.
func TestEndedReadingTakesNothing(t *testing.T) {
	ready, got := make(chan struct{}), make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		idle := ui.Busy("working")
		<-ready
		idle()
		ended, end := context.WithCancel(ctx)
		end()
		for range 20 {
			if text, err := ui.ReadLine(ended, ""); err == nil {
				t.Errorf("read %q", text)
			}
		}
		text, _ := ui.ReadLine(ctx, "")
		got <- text
	})
	p.See("working")
	p.Press("next\r")
	p.See("» next")
	close(ready)
	if text := await(t, p, got); text != "next" {
		t.Errorf("%q was sent", text)
	}
	<-over
}

// broken is an overlay that panics.
type broken struct{}

func (broken) Update(tea.Msg) (bool, tea.Cmd) { return false, nil }
func (broken) View(int, int) string           { panic("broken") }
func (broken) FullScreen() bool               { return true }

// A panic in what is drawn ends the chat as a terminal does that goes away: its
// work is told, and the terminal is what it was.
func TestPanicInAnOverlay(t *testing.T) {
	p := tuitest.New(t, 80, 24)
	ui := tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=xterm-256color"}})
	before, _ := term.GetState(int(p.TTY.Fd()))
	var opened error
	err := ui.Run(context.Background(), func(ctx context.Context) error {
		opened = ui.Open(ctx, broken{})
		return nil
	})
	if !errors.Is(opened, io.EOF) || !errors.Is(err, tea.ErrProgramPanic) {
		t.Errorf("the work got %v, and the chat ended with %v", opened, err)
	}
	if after, _ := term.GetState(int(p.TTY.Fd())); !reflect.DeepEqual(before, after) {
		t.Error("the terminal is not what it was")
	}
}

// What something else has written is there in the end, without a line end as well.
func TestWrittenWithoutALineEnd(t *testing.T) {
	p, over := show(t, 80, 24, func(_ context.Context, ui *tui.UI) { ui.Write("one\ntw"); ui.Write("o") })
	<-over
	p.See("one\ntwo")
}

// counted is a chat that counts how often it was interrupted.
type counted struct {
	nobody
	n *atomic.Int64
}

func (c counted) Interrupt() { c.n.Add(1) }

// Who presses Esc again because an answer takes its time to stop does not quit,
// as with Ctrl-C.
func TestEscDoesNotQuit(t *testing.T) {
	var n atomic.Int64
	end := make(chan struct{})
	p, over := show(t, 80, 24, func(context.Context, *tui.UI) { <-end }, func(ui *tui.UI) {
		ui.Attach(counted{n: &n})
		ui.Busy("working")
	})
	p.See("working")
	for _, key := range []string{"\x1b", "\x1b", "\x1b"} {
		p.Press(key)
		p.Read()
	}
	p.See("stopping; Ctrl-C quits")
	if n.Load() != 1 {
		t.Errorf("the chat was interrupted %d times by Esc", n.Load())
	}
	p.Press("\x03")
	p.Await("Ctrl-C", func(string, int, int) bool { return n.Load() == 2 })
	close(end)
	<-over
}

// Ctrl-D while the chat works quits when it is done, unless another key follows.
func TestCtrlDWhileTheChatWorks(t *testing.T) {
	next, got := make(chan struct{}), make(chan error, 2)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for range 2 {
			<-next
			_, err := ui.ReadLine(ctx, "")
			got <- err
		}
	})
	p.See("? for help")
	p.Press("\x04")
	p.See("quits when this is done; any key: stay")
	p.Press("stay\r")
	p.See("» stay")
	next <- struct{}{}
	if err := await(t, p, got); err != nil {
		t.Error(err)
	}
	p.Press("\x04")
	p.See("quits when this is done")
	next <- struct{}{}
	if err := await(t, p, got); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	<-over
}

// Keys that come when the chat has ended its work, and does not wait for the next
// line yet, are what they are when it waits: Esc does not quit, nor does it count
// as Ctrl-C, and what a key opens is opened.
func TestKeysBetweenTwoLines(t *testing.T) {
	var n atomic.Int64
	next, got := make(chan struct{}), make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for range 2 {
			<-next
			text, err := ui.ReadLine(ctx, "")
			got <- fmt.Sprint(text, " ", err)
		}
	}, func(ui *tui.UI) { ui.Attach(counted{n: &n}) })
	p.See("? for help")
	p.Press("\x1b")
	p.See("Esc again")
	p.Press("\x1b")
	p.Await("Esc", func(s string, _, _ int) bool { return !strings.Contains(s, "Esc again") })
	next <- struct{}{}
	if text := await(t, p, got); text != "/rewind <nil>" || n.Load() > 0 {
		t.Errorf("Esc twice is %q, and interrupted the chat %d times", text, n.Load())
	}
	p.Press("not this")
	p.See("> not this")
	p.Press("\x03")
	p.See("↑ brings it back")
	if n.Load() > 0 {
		t.Error("Ctrl-C interrupts the chat, and the input had something to clear")
	}
	p.Press("\x10and")
	p.See("> and") // both were seen
	next <- struct{}{}
	if text := await(t, p, got); text != "/sessions <nil>" {
		t.Errorf("Ctrl-P is %q", text)
	}
	<-over
}

// A key that opens something comes too late if the chat has taken a line before,
// and begins to work: nothing opens when the work is over.
func TestKeyBeforeTheWork(t *testing.T) {
	next, got := make(chan struct{}), make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for range 2 {
			text, err := ui.ReadLine(ctx, "")
			got <- fmt.Sprint(text, " ", err)
			<-next
			done := ui.Busy("working")
			<-next
			done()
		}
	})
	p.See("? for help")
	p.Press("one\r")
	if text := await(t, p, got); text != "one <nil>" {
		t.Errorf("the first line is %q", text)
	}
	p.Press("\x10and") // Ctrl-P
	p.See("> and")
	next <- struct{}{}
	p.See("when the answer is there: /sessions")
	next <- struct{}{}
	p.Press(" two\r")
	if text := await(t, p, got); text != "and two <nil>" {
		t.Errorf("the second line is %q", text)
	}
	close(next)
	<-over
}

// Esc stops a message that the chat has taken also before its work begins, and is
// not taken for "go back" then. A command is not work that it could stop.
func TestEscBeforeTheWork(t *testing.T) {
	var n atomic.Int64
	next, got := make(chan struct{}), make(chan string, 1)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		for range 2 {
			text, err := ui.ReadLine(ctx, "")
			got <- fmt.Sprint(text, " ", err)
			<-next
		}
	}, func(ui *tui.UI) { ui.Attach(counted{n: &n}) })
	p.See("? for help")
	p.Press("one\r")
	if text := await(t, p, got); text != "one <nil>" {
		t.Errorf("the first line is %q", text)
	}
	p.Press("\x1b")
	p.Press("\x1b") // the second one says that the first was seen
	p.See("stopping; Ctrl-C quits")
	if n.Load() != 1 {
		t.Errorf("Esc interrupts the chat %d times", n.Load())
	}
	next <- struct{}{}
	p.Press("/list\r")
	if text := await(t, p, got); text != "/list <nil>" {
		t.Errorf("the second line is %q", text)
	}
	p.Press("\x1b")
	p.See("Esc again")
	if n.Load() != 1 {
		t.Error("Esc interrupts a command")
	}
	close(next)
	<-over
}

// Only a turn takes messages while it runs: other work does not offer Ctrl-S, and
// what is sent with it waits for the end like everything else.
func TestWorkThatIsNoTurn(t *testing.T) {
	next, got := make(chan struct{}), make(chan string, 2)
	p, over := show(t, 80, 24, func(ctx context.Context, ui *tui.UI) {
		steering := ui.Steering()
		idle := ui.Busy("a turn")
		<-next
		idle()
		steering()
		idle = ui.Busy("a command")
		<-next
		got <- ui.Steered().Text()
		idle()
		text, _ := ui.ReadLine(ctx, "")
		got <- text
	})
	p.See("a turn")
	p.Press("say")
	p.See("a turn · Enter queues · Ctrl-S sends it into this answer · Esc stops")
	next <- struct{}{}
	p.See("a command · Enter queues · Esc stops")
	p.Press("\x13")
	p.See("» say queued")
	next <- struct{}{}
	if text := await(t, p, got); text != "" {
		t.Errorf("%q was sent into a command", text)
	}
	if text := await(t, p, got); text != "say" {
		t.Errorf("%q was sent", text)
	}
	<-over
}

// lister is a chat with a command that takes a name.
type lister struct{ nobody }

func (lister) Completions() []repl.Completion {
	return []repl.Completion{{Text: "/model", Args: "NAME", Help: "choose the model"}}
}

func (lister) Arguments(string) (now []repl.Completion, later func() []repl.Completion) {
	return []repl.Completion{{Text: "anthropic/claude-opus-4-5", Help: "200k"}, {Text: "anthropic/claude-sonnet-4-5", Help: "200k"}}, nil
}

func (lister) NextMode() string {
	return "mode edits: changes files unasked, and asks before it runs commands"
}

// On a narrow terminal the names of a list can be told apart, and a hint has as
// many lines as the status line. Ctrl-C clears the input, whatever list is open.
func TestNarrow(t *testing.T) {
	end := make(chan struct{})
	p, over := show(t, 40, 20, func(context.Context, *tui.UI) { <-end }, func(ui *tui.UI) { ui.Attach(lister{}) })
	p.See("> Ask")
	p.Press("\x1b[Z")
	p.See("mode edits: changes files unasked, and\nasks before it runs commands")
	p.Press("/model ")
	p.See("> /model\n  anthropic/claude-opus-4-5    200k\n  anthropic/claude-sonnet-4-5  200k")
	p.Press("\x03")
	p.See("> Ask")
	p.See("↑ brings it back")
	close(end)
	<-over
}
