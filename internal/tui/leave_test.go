//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/term"

	"goclaw/internal/tui"
	"goclaw/internal/tui/tuitest"
)

// TestTerminalIsGivenBack: the terminal is what it was when the interface ends,
// and what was said last is there.
func TestTerminalIsGivenBack(t *testing.T) {
	p := tuitest.New(t, 40, 10)
	before, err := term.GetState(int(p.TTY.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("failed")
	u := tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=xterm-256color"}})
	if err := u.Run(context.Background(), func(context.Context) error { u.Print("the last words"); return failed }); !errors.Is(err, failed) {
		t.Errorf("it ends with %v", err)
	}
	after, err := term.GetState(int(p.TTY.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if *before != *after {
		t.Errorf("the terminal's state is %+v, was %+v", after, before)
	}
	p.Await("the last words, and the cursor below", func(text string, row, col int) bool {
		return text == "the last words" && row == 1 && col == 0
	})
	p.Await("no bracketed paste, and a cursor", func(string, int, int) bool {
		all := p.All()
		last := func(sequence string) int { return strings.LastIndex(all, sequence) }
		return last("\x1b[?2004h") < last("\x1b[?2004l") && last("\x1b[?25h") >= last("\x1b[?25l")
	})
}

// TestPrintedAfterTheEnd: what is shown while the interface ends is not lost.
func TestPrintedAfterTheEnd(t *testing.T) {
	p := tuitest.New(t, 40, 10)
	u := tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=xterm-256color"}})
	err := u.Run(context.Background(), func(ctx context.Context) error {
		u.Print("one")
		p.See("one")
		p.Hangup()
		<-ctx.Done() // the terminal is gone, and the chat hears of it
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
