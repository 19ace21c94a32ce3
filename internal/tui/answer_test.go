//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tui_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/markdown"
	"goclaw/internal/transcript"
	"goclaw/internal/tui"
	"goclaw/internal/tui/tuitest"
)

// open returns a UI that runs until over is called.
func open(t *testing.T, cols, rows int) (p *tuitest.Person, u *tui.UI, over func()) {
	p = tuitest.New(t, cols, rows)
	// Like xterm, the emulator does not break lines that are too long after a resize.
	u = tui.New(tui.Options{In: p.TTY, Out: p.TTY, Environ: []string{"TERM=xterm-256color", "XTERM_VERSION=x"}, Style: transcript.Style{Colour: true}})
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- u.Run(context.Background(), func(context.Context) error { <-end; return nil })
	}()
	over = sync.OnceFunc(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(over)
	return p, u, over
}

// An answer that is longer than the screen is in the scrollback once, line for
// line as it is rendered at once, although it comes in small pieces.
func TestAnswerIsPrintedOnce(t *testing.T) {
	var b strings.Builder
	for i := range 12 {
		fmt.Fprintf(&b, "## Part %d\n\nWords of a **paragraph** that goes on until it is broken, number %d. 東京の天気はとても良い。\n\n- item a%d\n- item b%d\n\n```go\nfunc f%d() {}\n\n```\n\n| c%d | d |\n|---|---|\n| e | f |\n\n", i, i, i, i, i, i)
	}
	for _, size := range [][2]int{{80, 24}, {40, 20}} {
		p, u, over := open(t, size[0], size[1])
		done := u.Busy("thinking")
		for rest := b.String(); rest != ""; rest = rest[min(7, len(rest)):] {
			u.Said(rest[:min(7, len(rest))])
		}
		u.Finish()
		done()
		over()
		want := ansi.Strip(markdown.Render(b.String(), markdown.Style{Colour: true}, size[0]))
		p.See(strings.TrimRight(want, "\n"))
		if text := p.Text(); strings.Count(text, "Part ") != 12 || strings.Count(text, "item b") != 12 {
			t.Errorf("%dx%d: a line is there twice, or not at all:\n%s", size[0], size[1], text)
		}
	}
}

// What is not finished is drawn, in the width that the terminal has.
func TestAnswerIsAlive(t *testing.T) {
	p, u, _ := open(t, 60, 20)
	u.Said("Finished.\n\nSome **words** that are not finished yet, and a few more of")
	p.See("Finished.\n\nSome words that are not finished yet, and a few more of\n")
	p.Drag(40, 20)
	syscall.Kill(os.Getpid(), syscall.SIGWINCH) // the terminal is not the test's own
	p.See("Finished.\n\nSome words that are not finished yet,\nand a few more of\n")
	u.Said(" them.")
	u.Finish()
	p.See("Finished.\n\nSome words that are not finished yet,\nand a few more of them.\n")
}

// As soon as a terminal has said that it can, it shows an update that is not
// short at once, with the cursor in its place.
func TestUpdatesAreShownAtOnce(t *testing.T) {
	p, u, over := open(t, 80, 24)
	whole := func(i int) bool {
		name := fmt.Sprintf("paragraph %d", i)
		u.Said("This is " + name + strings.Repeat(", with words that make it long", 4) + ".\n\n")
		p.See(name)
		all := p.All()
		begin, end := strings.LastIndex(all[:strings.LastIndex(all, name)], ansi.SetModeSynchronizedOutput), strings.LastIndex(all[:strings.LastIndex(all, name)], ansi.ResetModeSynchronizedOutput)
		return begin > end
	}
	i := 0
	for !whole(i) {
		if i++; i == 100 {
			t.Fatalf("no update is one of a synchronised terminal: %q", p.All())
		}
	}
	for range 20 {
		if i++; !whole(i) {
			t.Errorf("paragraph %d is not", i)
		}
	}
	u.Finish()
	over()
	all := p.All()
	if set, reset := strings.Count(all, ansi.SetModeSynchronizedOutput), strings.Count(all, ansi.ResetModeSynchronizedOutput); set != reset {
		t.Errorf("%d updates begin and %d end", set, reset)
	}
}
