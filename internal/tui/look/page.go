package look

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
)

// page is a text that is shown row by row at some width. A place in it is the
// byte at which a row begins: nothing is computed for rows that are not shown,
// so that size does not matter.
//
// Rows are laid out from the beginning of a line, or, in long lines, from that
// of a segment: going up never has to measure a whole line of megabytes.
type page struct {
	text    string
	painted bool  // it has our own styles, and no other control characters
	breaks  []int // line ends before each block
	width   int
}

const (
	block   = 64 << 10
	segment = 4 << 10
	tab     = 4
)

func newPage(text string, painted bool) *page {
	p := &page{text: strings.TrimRight(text, "\n"), painted: painted, width: 80}
	n := 0
	for at := 0; at < len(p.text); at += block {
		p.breaks = append(p.breaks, n)
		n += strings.Count(p.text[at:min(at+block, len(p.text))], "\n")
	}
	p.breaks = append(p.breaks, n)
	return p
}

// lines is how many lines the text has.
func (p *page) lines() int { return p.breaks[len(p.breaks)-1] + 1 }

// lineOf returns the number of the line that has the byte at, from 1.
func (p *page) lineOf(at int) int {
	b := min(at/block, len(p.breaks)-1)
	return p.breaks[b] + strings.Count(p.text[min(b*block, len(p.text)):at], "\n") + 1
}

// lineStart returns where the line with the byte at begins.
func (p *page) lineStart(at int) int {
	for at > 0 {
		b := (at - 1) / block
		if p.breaks[b+1] == p.breaks[b] { // no line ends in the whole block
			at = b * block
			continue
		}
		if i := strings.LastIndexByte(p.text[b*block:at], '\n'); i >= 0 {
			return b*block + i + 1
		}
		at = b * block
	}
	return 0
}

// segmentStart returns where the segment with the byte at begins, of a line that
// begins at line.
func (p *page) segmentStart(line, at int) int {
	if p.painted { // a sequence must not be taken apart
		return line
	}
	k := (at - line) / segment
	for ; ; k-- {
		if s := p.aligned(line, line+k*segment); s <= at {
			return s
		}
	}
}

// aligned moves at, in the line that begins at line, back to the beginning of a
// character.
func (p *page) aligned(line, at int) int {
	for i := 0; i < utf8.UTFMax && at > line && at < len(p.text) && !utf8.RuneStart(p.text[at]); i++ {
		at--
	}
	return at
}

// segmentEnd returns where the segment after the one that begins at from begins,
// if the line reaches that far.
func (p *page) segmentEnd(line, from int) int {
	if p.painted {
		return len(p.text)
	}
	k := (from-line)/segment + 1
	end := p.aligned(line, min(line+k*segment, len(p.text)))
	if end <= from {
		end = p.aligned(line, min(line+(k+1)*segment, len(p.text)))
	}
	return min(end, len(p.text))
}

// row is one row of the screen.
type row struct {
	from, next int // where it begins, and the row after it
	line       int // where its line begins
	text       string
}

// mark is a part of the text that stands out.
type mark struct{ from, to int }

// row lays out the row that begins at from, in the line that begins at line.
func (p *page) row(line, from int, marks []mark) row {
	w := writer{page: p, marks: marks}
	r := row{from: from, line: line}
	at := from
	for end := p.segmentEnd(line, from); at < end; {
		if p.text[at] == '\n' {
			r.next, r.text = at+1, w.done()
			return r
		}
		if strings.HasPrefix(p.text[at:], "\r\n") {
			at++
			continue
		}
		n, ok := w.put(at, end)
		if !ok {
			break
		}
		at += n
	}
	if at < len(p.text) && p.text[at] == '\n' { // the line ends with the row
		at++
	} else if at >= len(p.text) {
		at = len(p.text) + 1
	}
	r.next, r.text = at, w.done()
	return r
}

// ended reports whether there is no row at from.
func (p *page) ended(from int) bool { return from > len(p.text) }

// rows returns at most n rows from the one that begins at from.
func (p *page) rows(from, n int, marks []mark) (out []row) {
	line := p.lineStart(from)
	for len(out) < n && !p.ended(from) {
		r := p.row(line, from, marks)
		out = append(out, r)
		if r.next > 0 && r.next <= len(p.text) && p.text[r.next-1] == '\n' {
			line = r.next
		}
		from = r.next
	}
	return out
}

// at returns the row that has the byte i.
func (p *page) at(i int) int {
	i = min(max(i, 0), len(p.text))
	line := p.lineStart(i)
	from := p.segmentStart(line, i)
	for {
		r := p.row(line, from, nil)
		if r.next > i || p.ended(r.next) {
			return from
		}
		from = r.next
	}
}

// up returns the row that is n rows above the one at from.
func (p *page) up(from, n int) int {
	for ; n > 0 && from > 0; n-- {
		from = p.at(from - 1)
	}
	return from
}

// down returns the row that is n rows below the one at from, or the last.
func (p *page) down(from, n int) int {
	rows := p.rows(from, n+1, nil)
	return rows[len(rows)-1].from
}

// writer writes one row.
type writer struct {
	*page
	marks  []mark
	b      strings.Builder
	column int
	marked bool
	style  bool // a style of the text is on
}

// put adds the character at, which ends before end, and returns how many bytes it
// has. ok is false if the row is full.
func (w *writer) put(at, end int) (n int, ok bool) {
	s := w.text[at:end]
	if w.painted && s[0] == 0x1b {
		n := 1 + strings.IndexByte(s, 'm')
		w.style = !strings.HasSuffix(s[:n], "[0m") && s[:n] != "\x1b[m"
		w.b.WriteString(s[:n])
		return max(n, 1), true
	}
	text, width, n := w.character(s)
	if w.column > 0 && w.column+width > w.width {
		return 0, false
	}
	if width > w.width {
		text, width = "\uFFFD", 1
	}
	w.mark(at)
	w.b.WriteString(text)
	w.column += width
	return n, true
}

// character returns the first character of s as it is shown, its width, and its
// bytes.
func (w *writer) character(s string) (text string, width, n int) {
	c := s[0]
	switch {
	case c == '\t':
		width = min(tab-w.column%tab, max(w.width-w.column, 1))
		return strings.Repeat(" ", width), width, 1
	case c >= ' ' && c < 0x7f && (len(s) == 1 || s[1] < 0x80):
		return s[:1], 1, 1
	case c < ' ' || c == 0x7f:
		return "\uFFFD", 1, 1
	}
	// A character has a bounded size, whatever the text piles on it.
	g := displaywidth.StringGraphemes(s[:min(len(s), 256)])
	g.Next()
	raw := g.Value()
	text = transcript.Printable(strings.ReplaceAll(strings.ToValidUTF8(raw, "\uFFFD"), "\n", ""))
	return text, displaywidth.String(text), len(raw)
}

// mark turns the mark on or off for the byte at.
func (w *writer) mark(at int) {
	for len(w.marks) > 0 && w.marks[0].to <= at {
		w.marks = w.marks[1:]
	}
	on := len(w.marks) > 0 && w.marks[0].from <= at
	switch {
	case on && !w.marked:
		w.b.WriteString("\x1b[7m")
	case !on && w.marked:
		w.b.WriteString("\x1b[27m")
	}
	w.marked = on
}

func (w *writer) done() string {
	if w.marked || w.style {
		w.b.WriteString("\x1b[m")
	}
	return w.b.String()
}
