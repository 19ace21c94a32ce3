package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	tea "charm.land/bubbletea/v2"
)

// paper is what was printed, above what is drawn.
type paper struct {
	loop          *loop
	width, height int // of the terminal

	pending []string // texts to print with the next view
	last    frame    // the view before
	probe   bool     // the terminal is to answer when it has drawn the next view
}

// print puts text, whose only control sequences are styles, above what is drawn.
// It scrolls away from there.
func (p *paper) print(text string) { p.pending = append(p.pending, text) }

// offer hands a view to the output, with what is to be printed with it. It sets
// the view's number as the title of the window, where the output finds it: there
// is no other way to know which view Bubble Tea draws, and when.
func (p *paper) offer(v *tea.View) {
	f := frame{number: p.last.number, width: p.width, height: p.height, content: v.Content, alt: v.AltScreen, print: p.pending, probe: p.probe}
	if c := v.Cursor; c != nil {
		f.x, f.y = c.X, c.Y
	}
	if f.probe || len(f.print) > 0 || !f.same(p.last) {
		f.number++
		p.loop.out.offer(f)
		p.last, p.pending, p.probe = f, nil, false
	}
	v.WindowTitle = f.title()
}

// lines wraps text to width. Each line has its own styles.
func lines(text string, width int) []string {
	text = strings.ReplaceAll(text, "\t", "    ")
	if width > 0 {
		text = lipgloss.Wrap(text, width, "")
	}
	return strings.Split(text, "\n")
}
