package markdown

import (
	"strconv"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/terminal"
)

// look is how text is painted.
type look struct {
	attr attr
	fg   uint8 // the SGR code of one of the 16 colours; 0: the terminal's own
}

// attr is a set of the terminal's attributes.
type attr uint8

const (
	bold attr = 1 << iota
	dim
	italic
	underline
	strike
)

var attrCodes = [...]string{"1", "2", "3", "4", "9"}

// and returns l with what m adds to it.
func (l look) and(m look) look {
	l.attr |= m.attr
	if m.fg != 0 {
		l.fg = m.fg
	}
	return l
}

// change returns the sequence that turns look from into look to.
func change(from, to look) string {
	switch {
	case from == to:
		return ""
	case to == look{}:
		return "\x1b[m"
	}
	var codes []string
	if from.attr&^to.attr != 0 || from.fg != 0 && to.fg == 0 {
		codes = append(codes, "0")
		from = look{}
	}
	for i, code := range attrCodes {
		if (to.attr&^from.attr)&(1<<i) != 0 {
			codes = append(codes, code)
		}
	}
	if to.fg != from.fg {
		codes = append(codes, strconv.Itoa(int(to.fg)))
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// run is text in one look. A run that is "\n" breaks the line.
type run struct {
	text string
	look look
}

// paint writes a line so that it stands for itself: it begins and ends in the
// terminal's own look.
func (s Style) paint(line []run) string {
	for len(line) > 0 && strings.Trim(line[len(line)-1].text, " ") == "" {
		line = line[:len(line)-1]
	}
	var b strings.Builder
	var now look
	for i, r := range line {
		if i == len(line)-1 {
			r.text = strings.TrimRight(r.text, " ")
		}
		to := r.look
		if !s.Colour {
			to.fg = 0
		}
		const drawn = underline | strike // what is seen on a space
		if (now.attr|to.attr)&drawn == 0 && strings.Trim(r.text, " ") == "" {
			to = now // saves bytes
		}
		b.WriteString(change(now, to))
		now = to
		b.WriteString(r.text)
	}
	b.WriteString(change(now, look{}))
	return b.String()
}

// widthOf returns the columns that a line takes.
func widthOf(line []run) (n int) {
	for _, r := range line {
		n += displaywidth.String(r.text)
	}
	return n
}

// printable replaces what may not reach a terminal. Tabs and line ends are
// spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case terminal.Hidden(r):
			return '\uFFFD'
		}
		return r
	}, s)
}
