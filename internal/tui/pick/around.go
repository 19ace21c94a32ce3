package pick

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/recall"
)

// around is a hit with what stands around it.
type around struct {
	s             *Search
	hit           recall.Hit
	before, after int // how many messages are shown

	reading bool
	known   bool // something was read
	lines   []recall.Line
	file    []string // of a memory file
	from    int      // the number of its first line
	all     bool     // there is nothing more to read
	err     error

	width int      // that rows are made for
	rows  []string // what is shown, line by line
	at    int      // the row of the hit
	top   int      // the first row on the screen
	page  int
}

// surroundings are what was read around a hit.
type surroundings struct {
	of    *around
	lines []recall.Line
	file  []string
	from  int
	err   error
}

// fileLines is how many lines of a memory file are shown before the hit, and
// twice as many after.
const fileLines = 2000

// read reads what stands around the hit.
func (a *around) read() tea.Cmd {
	if a.reading {
		return nil
	}
	a.reading = true
	h, before, after := a.hit, a.before, a.after
	return func() tea.Msg {
		m := surroundings{of: a}
		if h.File == "" {
			m.lines, m.err = recall.Around(a.s.ctx, a.s.o.Store, h.Session, h.Seq, before, after)
			return m
		}
		m.from = max(1, h.Line-fileLines)
		text, _, err := a.s.o.File(h.File, m.from, 3*fileLines)
		m.file, m.err = strings.Split(strings.TrimRight(text, "\n"), "\n"), err
		return m
	}
}

// took takes what was read. What is on the screen stays where it is.
func (a *around) took(m surroundings) {
	first := !a.known
	a.all = m.file != nil || len(m.lines) == len(a.lines)
	a.reading, a.known, a.lines, a.file, a.from, a.err = false, true, m.lines, m.file, m.from, m.err
	was := a.at
	a.width = 0
	a.lay(max(a.s.w, 1))
	if first {
		a.top = a.at - max(a.s.h/3, 1)
	} else {
		a.top += a.at - was
	}
}

// key scrolls, and reads more where the end is reached.
func (a *around) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "up", "k", "ctrl+p":
		a.top--
	case "down", "j", "ctrl+n":
		a.top++
	case "pgup", "b":
		a.top -= max(a.page-1, 1)
	case "pgdown", "space", " ":
		a.top += max(a.page-1, 1)
	case "home", "g":
		a.top = 0
	case "end", "G":
		a.top = len(a.rows)
	}
	last := max(len(a.rows)-a.page, 0)
	more := (a.top < 0 || a.top > last) && !a.all
	a.top = max(min(a.top, last), 0)
	if more && !a.reading {
		a.before, a.after = 4*a.before, 4*a.after
		return a.read()
	}
	return nil
}

// lay makes the rows for a width.
func (a *around) lay(width int) {
	if a.width == width || !a.known {
		return
	}
	a.width, a.rows, a.at = width, nil, 0
	if a.hit.File != "" {
		a.layFile(width)
		return
	}
	for _, l := range a.lines {
		if l.Seq != a.hit.Seq {
			a.rows = append(a.rows, spoken(l, "", recall.Hit{}, mostShown, width)...)
			continue
		}
		a.at = len(a.rows)
		rows := spoken(l, a.s.text, a.hit, 64*mostShown, width)
		for i, r := range rows {
			if strings.Contains(r, "\x1b["+cFound+"m") {
				a.at += i
				break
			}
		}
		rows[0] = paint(cHead, "> ") + rows[0]
		a.rows = append(a.rows, rows...)
	}
}

// layFile makes the rows of a memory file, with numbers.
func (a *around) layFile(width int) {
	digits := len(fmt.Sprint(a.from + len(a.file)))
	for i, text := range a.file {
		n := a.from + i
		is := n >= a.hit.Line && n < a.hit.Line+max(a.hit.Lines, 1)
		if n == a.hit.Line {
			a.at = len(a.rows)
		}
		for j, p := range paragraphs(text, width-digits-2) {
			number, mark := fmt.Sprintf("%*d ", digits, n), " "
			if j > 0 {
				number = strings.Repeat(" ", digits+1)
			}
			if is {
				h := a.hit
				h.Text = p
				p, mark = marked(p, h.Marks(a.s.text), ""), paint(cHead, ">")
			}
			a.rows = append(a.rows, mark+paint(cDim, number)+p)
		}
	}
}

// view shows so many lines.
func (a *around) view(width, height int) []string {
	switch {
	case !a.known:
		return []string{paint(cDim, "reading …")}
	case a.err != nil:
		return []string{paint(cBad, cut(name(a.err.Error()), width))}
	}
	a.lay(width)
	a.page = height
	a.top = max(min(a.top, len(a.rows)-height), 0)
	return a.rows[a.top:min(a.top+height, len(a.rows))]
}
