package line

import (
	"goclaw/internal/terminal"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// layout breaks text after a prompt of that many columns into rows of at most
// width columns, and returns where the byte pos is. Lines after the first are
// indented by the prompt. Control characters are shown as a replacement
// character.
func layout(prompt int, text string, pos, width int) (rows []string, row, col int) {
	width = max(width, 2)
	var b strings.Builder
	x := prompt % width
	for range prompt / width {
		rows = append(rows, "")
	}
	brk := func(indent int) {
		rows = append(rows, b.String())
		b.Reset()
		if indent >= width/2 {
			indent = 0
		}
		b.WriteString(strings.Repeat(" ", indent))
		x = indent
	}
	at := 0
	mark := func() {
		if at == pos {
			row, col = len(rows), x
		}
	}
	for g := displaywidth.StringGraphemes(text); g.Next(); {
		v, w := visible(g.Value(), g.Width())
		if v != "\n" && x+w > width {
			brk(0)
		}
		mark()
		if v == "\n" {
			brk(prompt)
		} else {
			b.WriteString(v)
			x += w
		}
		at += len(g.Value())
		if x >= width { // the terminal would wait at the edge
			brk(0)
		}
	}
	mark()
	return append(rows, b.String()), row, col
}

// visible returns how a character is shown, and how many columns that takes.
func visible(v string, w int) (string, int) {
	switch {
	case v == "\n" || v == "\r\n":
		return "\n", 0
	case v == "\t":
		return "    ", 4
	}
	for _, r := range v {
		if terminal.Hidden(r) {
			return "\uFFFD", 1
		}
	}
	return v, w
}

// columns arranges options in columns, filled from top to bottom.
func columns(options []string, width int) []string {
	widest := 0
	for _, o := range options {
		widest = max(widest, displaywidth.String(o)+2)
	}
	per := max((width+2)/max(widest, 1), 1)
	lines := (len(options) + per - 1) / per
	out := make([]string, lines)
	for i, o := range options {
		out[i%lines] += o + strings.Repeat(" ", widest-displaywidth.String(o))
	}
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}
