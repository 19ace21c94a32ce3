//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package repl_test

import (
	"os"

	"goclaw/internal/repl"
	"goclaw/internal/transcript"
	"goclaw/internal/tui"
)

// onTerminal is package tui's interface, which imports repl.
type onTerminal struct{ *tui.UI }

func (o onTerminal) Connect(c *repl.Chat) { o.Attach(repl.Remote{Chat: c}) }

func init() {
	repl.OnTerminal = func(tty *os.File) repl.Terminal {
		return onTerminal{tui.New(tui.Options{In: tty, Out: tty, Environ: []string{"TERM=xterm-256color"}, Style: transcript.Style{Colour: true}})}
	}
}
