package editor

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// row is a row of the input as it is drawn: the characters from byte from to
// byte to of the text.
type row struct {
	from, to int
	hard     bool // a line end follows, or the end of the text
}

// cell is one character of a row: where it begins, what is drawn, and how many
// columns that takes.
type cell struct {
	at    int
	shown string
	width int
	chip  bool
}

// layout is a text broken into rows of at most width columns.
type layout struct {
	text  string
	width int
	chips *chips
	rows  []row
}

// newLayout breaks text after blanks, and inside of words that are wider than a
// row. The last column is left to the cursor, and to a blank at a row's end.
func newLayout(text string, width int, c *chips) *layout {
	l := &layout{text: text, width: max(width, 4), chips: c}
	for from := 0; ; {
		end := strings.IndexByte(text[from:], '\n')
		if end < 0 {
			l.line(from, len(text))
			return l
		}
		l.line(from, from+end)
		from += end + 1
	}
}

// line breaks one line of the text into rows.
func (l *layout) line(from, to int) {
	start, x := from, 0
	brk, bx := -1, 0 // the last place for a break, and its column
	var before cell
	for at := from; at < to; {
		c := l.cell(at, to)
		if at > start && (before.shown == " " || before.width == 2 && c.width == 2) && c.shown != " " {
			brk, bx = at, x
		}
		limit := l.width - 1
		if c.shown == " " {
			limit = l.width
		}
		if x+c.width > limit && at > start {
			if brk > start && c.shown != " " {
				x -= bx
			} else {
				brk, x = at, 0
			}
			l.rows = append(l.rows, row{start, brk, false})
			start, brk = brk, -1
			if x+c.width > l.width-1 && start < at { // what was moved is a whole row already
				l.rows = append(l.rows, row{start, at, false})
				start, x = at, 0
			}
		}
		x += c.width
		at += len(first(l.text[at:to]))
		before = c
	}
	if x >= l.width { // a blank fills the row: the cursor goes below
		l.rows = append(l.rows, row{start, to, false})
		start = to
	}
	l.rows = append(l.rows, row{start, to, true})
}

// cell returns the character at a place.
func (l *layout) cell(at, to int) cell {
	s := first(l.text[at:to])
	c := cell{at: at, shown: s, width: 1}
	switch {
	case s == "\t":
		c.shown, c.width = "    ", 4
	case len(s) == 1 && s[0] >= ' ' && s[0] < 0x7f:
	default:
		for _, r := range s {
			if isChip(r) {
				c.shown, c.chip = l.chips.of(r).label, true
				c.shown = clip(c.shown, l.width-1)
				break
			}
		}
		c.width = displaywidth.String(c.shown)
	}
	if c.width > l.width-1 || c.width < 1 && !c.chip {
		c.shown, c.width = "\uFFFD", 1
	}
	return c
}

// cells returns the characters of a row.
func (l *layout) cells(r row) (out []cell) {
	for at := r.from; at < r.to; {
		out = append(out, l.cell(at, r.to))
		at += len(first(l.text[at:r.to]))
	}
	return out
}

// find returns in which row and column the byte pos is.
func (l *layout) find(pos int) (y, x int) {
	for y = range l.rows {
		r := l.rows[y]
		if pos < r.to || pos == r.to && r.hard {
			break
		}
	}
	for _, c := range l.cells(l.rows[y]) {
		if c.at >= pos {
			break
		}
		x += c.width
	}
	return y, x
}

// place returns the byte at column x of row y, or that of the character which
// covers it.
func (l *layout) place(y, x int) int {
	r := l.rows[y]
	at := 0
	for _, c := range l.cells(r) {
		if at+c.width > x {
			return c.at
		}
		at += c.width
	}
	if r.hard {
		return r.to
	}
	cells := l.cells(r)
	return cells[len(cells)-1].at // its end is the next row's start
}

// clip cuts s to width columns.
func clip(s string, width int) string {
	if displaywidth.String(s) <= width {
		return s
	}
	return displaywidth.TruncateString(s, max(width, 1), "…")
}
