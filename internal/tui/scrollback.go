package tui

import (
	"strings"

	"charm.land/lipgloss/v2"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
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

// insert writes to b what puts lines above a view of rows rows, in which the
// cursor is in column x of row y before and after. The screen has height rows.
// Lines that do not fit above the view are inserted a screen at a time: else
// parts of the view would get into the scrollback.
func insert(b *strings.Builder, lines []string, height, rows, x, y int) {
	b.WriteByte('\r')
	at := y
	for len(lines) > 0 {
		n := min(len(lines), max(height-rows, 1))
		down(b, rows-1-at)
		b.WriteString(strings.Repeat("\n", n)) // scrolls if the view is at the bottom
		b.WriteString(ansi.CursorUp(n + rows - 1))
		b.WriteString(ansi.InsertLine(n))
		for _, line := range lines[:n] {
			b.WriteString(line)
			b.WriteString("\r\n")
		}
		lines, at = lines[n:], 0
	}
	down(b, y-at)
	if x > 0 {
		b.WriteString(ansi.CursorForward(x))
	}
}

func down(b *strings.Builder, n int) {
	if n > 0 {
		b.WriteString(ansi.CursorDown(n))
	}
}
