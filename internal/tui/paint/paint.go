// Package paint draws rows of text on a terminal whose cursor is somewhere in
// the rows that were drawn before, and prints other rows above them, which scroll
// away. It writes what has changed and nothing else.
package paint

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Sheet is what is drawn on the terminal, from the top of the view to its end.
// What is above is the terminal's: it is never drawn again.
//
// Bubble Tea's renderer knows how to draw a view and how to print lines above it,
// but writes the whole view again whenever its height changes, which it does
// with every line of an answer. A Sheet takes what is printed and what is drawn
// for one column of rows: a line of the answer that was alive and is printed now
// stays where it is, and not a byte is written for it.
type Sheet struct {
	rows []Row
	x, y int // of the cursor
}

// Row is a row of a Sheet.
type Row struct {
	cells []cell
	wide  int // the columns that it takes on the terminal, with those that were erased
}

// NewRow returns the row of a line of text, whose only control sequences are
// styles and hyperlinks.
func NewRow(text string) Row {
	cs := cells(text)
	return Row{cells: cs, wide: widthOf(cs)}
}

// String returns the row as text.
func (r Row) String() string {
	var b strings.Builder
	put(&b, r.cells, -1)
	return b.String()
}

func (r Row) same(s Row) bool { return slices.Equal(r.cells, s.cells) }

// Paint writes to b what draws view, with printed above it, over what is drawn
// now. The terminal has height rows, not fewer than the view and the one before.
// The cursor ends in x, y of the view.
func (s *Sheet) Paint(b *strings.Builder, printed, view []Row, x, y, height int) {
	rows := append(slices.Clone(printed), view...)
	top := 0
	for top < min(len(s.rows), len(rows)) && rows[top].same(s.rows[top]) {
		rows[top].wide = max(rows[top].wide, s.rows[top].wide)
		top++
	}
	end := 0 // rows at the end that are the same
	for end < min(len(s.rows), len(rows))-top && rows[len(rows)-1-end].same(s.rows[len(s.rows)-1-end]) {
		end++
	}
	before, after := len(s.rows)-end, len(rows)-end // what changes ends there
	if end > 0 && before != after && len(rows) <= height {
		s.shift(b, before, after-before)
	}
	for i := top; i < len(rows); i++ {
		s.rewrite(b, i, &rows[i])
	}
	if len(rows) < len(s.rows) {
		s.move(b, 0, len(rows))
		b.WriteString(ansi.EraseScreenBelow)
	}
	s.rows = rows
	s.move(b, x, len(printed)+y)
	s.rows, s.y = rows[len(printed):], y
}

// Len returns the number of rows.
func (s *Sheet) Len() int { return len(s.rows) }

// Erase writes to b what removes everything that is drawn, when the terminal has
// become width columns wide. reflows: it has broken the rows that are too wide
// for it; sticky: what was erased of a row counts as well. The cursor is at the
// top then.
func (s *Sheet) Erase(b *strings.Builder, width int, reflows, sticky bool) {
	up := s.y
	if reflows && width > 0 {
		up = max(s.x, 0) / width
		for _, r := range s.rows[:min(s.y, len(s.rows))] {
			wide := r.wide
			if !sticky {
				wide = widthOf(r.cells)
			}
			up += 1 + max(0, wide-1)/width
		}
	}
	b.WriteByte('\r')
	if up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	b.WriteString(ansi.EraseScreenBelow)
	*s = Sheet{}
}

// Leave writes to b what moves the cursor to the beginning of the last row.
func (s *Sheet) Leave(b *strings.Builder) { s.move(b, 0, max(len(s.rows)-1, 0)) }

// shift moves the rows from at on by n, down or up.
func (s *Sheet) shift(b *strings.Builder, at, n int) {
	if n > 0 {
		s.move(b, 0, len(s.rows)-1)
		b.WriteString(strings.Repeat("\n", n)) // scrolls if that is the last row of the screen
		s.y += n
		s.rows = slices.Insert(s.rows, at, make([]Row, n)...)
		s.move(b, 0, at)
		b.WriteString(ansi.InsertLine(n))
		return
	}
	s.move(b, 0, at+n)
	b.WriteString(ansi.DeleteLine(-n))
	s.rows = slices.Delete(s.rows, at+n, at)
}

// move moves the cursor. Only the row after the last one may be new.
func (s *Sheet) move(b *strings.Builder, x, y int) {
	if y == len(s.rows) && y > s.y {
		if n := y - 1 - s.y; n > 0 {
			b.WriteString(ansi.CursorDown(n))
		}
		b.WriteString("\r\n")
		s.x, s.y = 0, y
	}
	switch {
	case y > s.y:
		b.WriteString(ansi.CursorDown(y - s.y))
	case y < s.y:
		b.WriteString(ansi.CursorUp(s.y - y))
	}
	switch {
	case x == s.x:
	case x == 0:
		b.WriteByte('\r')
	default:
		b.WriteString(ansi.CursorHorizontalAbsolute(x + 1))
	}
	s.x, s.y = x, y
}

// rewrite makes row i, which may be the one after the last, r.
func (s *Sheet) rewrite(b *strings.Builder, i int, r *Row) {
	var old Row
	if i < len(s.rows) {
		old = s.rows[i]
	}
	if i < len(s.rows) && r.same(old) {
		r.wide = max(r.wide, old.wide)
		return
	}
	// From the first cell that differs to the last, if the rest stays where it is.
	from, x := 0, 0
	for from < min(len(old.cells), len(r.cells)) && old.cells[from] == r.cells[from] && r.cells[from].certain() {
		x += r.cells[from].width
		from++
	}
	to := len(r.cells)
	width, was := widthOf(r.cells), widthOf(old.cells)
	if width == was && len(r.cells) == len(old.cells) {
		for to > from && old.cells[to-1] == r.cells[to-1] {
			to--
		}
	}
	s.move(b, x, i)
	if slices.ContainsFunc(r.cells[from:], cell.disputed) {
		// Not a cell more than the row has, and nothing old between its cells.
		to = len(r.cells)
		b.WriteString(ansi.EraseLineRight + ansi.ResetModeAutoWrap)
		put(b, r.cells[from:], x)
		b.WriteString(ansi.SetModeAutoWrap)
	} else {
		put(b, r.cells[from:to], x)
	}
	for _, c := range r.cells[from:to] {
		s.x += c.width
	}
	if width < was {
		b.WriteString(ansi.EraseLineRight)
	}
	if s.x > x && !certain(r.cells[from:to]) || to == len(r.cells) {
		s.x = -1 // at the end of a row, terminals differ in where the cursor is
	}
	if len(r.cells) > 0 { // else nothing is left of what was there
		r.wide = max(r.wide, old.wide)
	}
	if i == len(s.rows) {
		s.rows = append(s.rows, *r)
	} else {
		s.rows[i] = *r
	}
}

func certain(cs []cell) bool {
	for _, c := range cs {
		if !c.certain() {
			return false
		}
	}
	return true
}
