// Package tui is the chat on a real terminal: an input and a status line below
// what was said, which scrolls away in the terminal's own scrollback.
//
// It is built on Bubble Tea. What was said is printed once and never drawn
// again; only what is alive is drawn: the answer that is streaming, the calls
// that run, the input and the status line.
package tui

import (
	_ "charm.land/bubbles/v2/textarea"
	_ "charm.land/bubbletea/v2"
	_ "charm.land/lipgloss/v2"
	_ "github.com/alecthomas/chroma/v2"
	_ "github.com/charmbracelet/colorprofile"
	_ "github.com/charmbracelet/x/ansi"
)
