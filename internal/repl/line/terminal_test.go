//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package line

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"goclaw/internal/repl/history"
	"goclaw/internal/repl/ptytest"
)

type answer struct {
	text string
	err  error
}

// sit opens a terminal and reads one line after the other from it.
func sit(t *testing.T, cols, rows int, setup ...func(*Terminal)) (*ptytest.Person, func() answer) {
	t.Helper()
	p := ptytest.New(t, cols, rows)
	term, err := Open(p.TTY, p.TTY, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { term.Close() })
	for _, f := range setup {
		f(term)
	}
	return p, reader(t, func(ctx context.Context) (string, error) { return term.ReadLine(ctx, "> ") })
}

// reader calls read once for every answer that is taken. At the test's end it
// waits for the last read, so that nobody uses the terminal when it is closed.
func reader(t *testing.T, read func(context.Context) (string, error)) func() answer {
	answers := make(chan answer)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for {
			text, err := read(ctx)
			select {
			case answers <- answer{text, err}:
			case <-ctx.Done():
				return
			}
			if errors.Is(err, io.EOF) {
				return
			}
		}
	}()
	return func() answer {
		t.Helper()
		select {
		case a := <-answers:
			return a
		case <-time.After(20 * time.Second):
			t.Fatal("no line was read in 20 seconds")
		}
		return answer{}
	}
}

func TestScreen(t *testing.T) {
	p, next := sit(t, 12, 6)
	p.Shows(">", 0, 2)
	p.Press("hello wor")
	p.Shows("> hello wor", 0, 11)
	p.Press("ld") // over the edge
	p.Shows("> hello worl\nd", 1, 1)
	p.Press("\x7f")
	p.Shows("> hello worl", 1, 0)
	p.Press("\x7f")
	p.Shows("> hello wor", 0, 11)
	p.Press("\x01中 ")
	p.Shows("> 中 hello w\nor", 0, 5)
	p.Press("\x15\x05")
	p.Shows("> hello wor", 0, 11)
	p.Press("\x1b[200~\nsecond\nthird\x1b[201~")
	p.Shows("> hello wor\n  second\n  third", 2, 7)
	p.Press("\x1b[A\x1b[A\x01")
	p.Shows("> hello wor\n  second\n  third", 0, 2)
	p.Press("\r")
	if got, want := next(), (answer{"hello wor\nsecond\nthird", nil}); got != want {
		t.Errorf("read %+v, want %+v", got, want)
	}
	p.Shows("> hello wor\n  second\n  third\n>", 3, 2)
}

func TestTallerThanTheScreen(t *testing.T) {
	p, next := sit(t, 20, 4)
	text := "one\ntwo\nthree\nfour\nfive\nsix"
	p.Press("\x1b[200~" + text + "\x1b[201~")
	p.Shows("  four\n  five\n  six", 2, 5)
	p.Press("\x1b[A\x1b[A\x1b[A\x1b[A")
	p.Shows("> one\n  two\n  three", 1, 5)
	p.Press("\r")
	if got := next(); got.text != text || got.err != nil {
		t.Errorf("read %+v, want %q", got, text)
	}
}

func TestCompletionIsListed(t *testing.T) {
	p, _ := sit(t, 20, 6, func(tm *Terminal) {
		tm.Complete = func(before string) (int, []string) { return 0, []string{"/sessions", "/switch"} }
	})
	p.Shows(">", 0, 2)
	p.Press("/s\t")
	p.Shows("> /s\n/sessions  /switch\n> /s", 2, 4)
}

func TestSearchIsShown(t *testing.T) {
	p, next := sit(t, 40, 4, func(tm *Terminal) { tm.History = &history.History{} })
	p.See(">")
	p.Press("alpha beta\r")
	next()
	p.Press("gamma\r")
	next()
	p.Shows("> alpha beta\n> gamma\n>", 2, 2)
	p.Press("\x12bet")
	p.See(`(search "bet") alpha beta`)
	p.Press("\r")
	if got := next(); got.text != "alpha beta" {
		t.Errorf("read %+v, want the line that was found", got)
	}
}

func TestEndings(t *testing.T) {
	p, next := sit(t, 40, 10)
	p.See(">")
	p.Press("half\x03")
	if got := next(); got.text != "half" || !errors.Is(got.err, ErrInterrupt) {
		t.Errorf("Ctrl-C gives %+v, want the text and ErrInterrupt", got)
	}
	p.See("> half^C")
	p.Press("\x04")
	if got := next(); !errors.Is(got.err, io.EOF) {
		t.Errorf("Ctrl-D gives %+v, want io.EOF", got)
	}
}

func TestTerminalIsGone(t *testing.T) {
	p, next := sit(t, 40, 10)
	p.See(">")
	p.Hangup()
	if got := next(); !errors.Is(got.err, io.EOF) {
		t.Errorf("a hangup gives %+v, want io.EOF", got)
	}
}

func TestContextEndsTheReading(t *testing.T) {
	p := ptytest.New(t, 40, 10)
	tm, err := Open(p.TTY, p.TTY, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	next := reader(t, func(context.Context) (string, error) { return tm.ReadLine(ctx, "> ") })
	p.Press("half")
	p.See("> half")
	cancel(ErrInterrupt)
	if got := next(); got.text != "half" || !errors.Is(got.err, ErrInterrupt) {
		t.Errorf("read %+v, want what was typed and the cause", got)
	}
}

func TestTypedAhead(t *testing.T) {
	p := ptytest.New(t, 40, 10)
	pressed := make(chan struct{}, 1)
	tm, err := Open(p.TTY, p.TTY, func() { pressed <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer tm.Close()
	p.Press("typed\r\x03 ahead\ry\r")
	select {
	case <-pressed:
	case <-time.After(20 * time.Second):
		t.Fatal("Ctrl-C was not told while no line was read")
	}
	got, err := tm.ReadLine(context.Background(), "> ")
	if got != "typed ahead" || err != nil {
		t.Errorf("read %q, %v; want what was typed before Ctrl-C and after it", got, err)
	}
	// A question is not answered by what was typed before it.
	next := reader(t, func(ctx context.Context) (string, error) { return tm.Ask(ctx, "sure? ") })
	p.See("sure?")
	p.Press("no\r")
	if got := next(); got.text != "no" {
		t.Errorf("the answer is %q, want what was typed behind the question", got.text)
	}
}

func TestTerminalIsGivenBack(t *testing.T) {
	p := ptytest.New(t, 40, 10)
	before, err := term.GetState(int(p.TTY.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	tm, err := Open(p.TTY, p.TTY, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tm.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := term.GetState(int(p.TTY.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if *before != *after {
		t.Errorf("the terminal's state is %+v, was %+v", after, before)
	}
	p.Await("the end of marked pastes", func(string, int, int) bool { return strings.HasSuffix(p.All(), "\x1b[?2004h\x1b[?2004l") })
}

func TestPlain(t *testing.T) {
	type read struct {
		text string
		err  error
	}
	for name, c := range map[string]struct {
		in   string
		want []read
	}{
		"lines":       {"a\n\nb\n", []read{{"a", nil}, {"", nil}, {"b", nil}, {"", io.EOF}, {"", io.EOF}}},
		"no line end": {"a", []read{{"a", nil}, {"", io.EOF}}},
		"continued":   {"a\\\nb\\\nc\nd\n", []read{{"a\nb\nc", nil}, {"d", nil}}},
		"cut short":   {"a\\\n", []read{{"a\n", nil}, {"", io.EOF}}},
		"windows":     {"a\r\nb\r\n", []read{{"a", nil}, {"b", nil}}},
		"not text":    {"a\xff\n", []read{{"a\uFFFD", nil}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPlain(strings.NewReader(c.in), nil)
			for i, want := range c.want {
				got, err := p.ReadLine(context.Background(), "> ")
				if got != want.text || err != want.err {
					t.Errorf("line %d is %q, %v; want %q, %v", i, got, err, want.text, want.err)
				}
			}
		})
	}
}
