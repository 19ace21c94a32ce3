package call

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// Line is a line of a diff.
type Line struct {
	number int  // in the file before the change, or after it; 0: none
	mark   byte // '+', '-', ' ', or 0 for what is between two parts
	text   string
}

// Lines reads a unified diff. What is not part of one is kept as it is.
func Lines(diff string) (out []Line) {
	var before, after int
	inside := false
	for line := range strings.Lines(diff) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "@@ ") {
			if inside {
				out = append(out, Line{text: "⋮"})
			}
			if _, err := fmt.Sscanf(line, "@@ -%d", &before); err == nil {
				fmt.Sscanf(line[strings.IndexByte(line, '+')+1:], "%d", &after)
				inside = true
				continue
			}
		}
		if !inside {
			if !strings.HasPrefix(line, "diff ") && !strings.HasPrefix(line, "--- ") && !strings.HasPrefix(line, "+++ ") {
				out = append(out, Line{text: line})
			}
			continue
		}
		mark, text := byte(' '), ""
		if line != "" {
			mark, text = line[0], line[1:]
		}
		switch mark {
		case '+':
			out = append(out, Line{after, mark, text})
			after++
		case '-':
			out = append(out, Line{before, mark, text})
			before++
		case ' ':
			out = append(out, Line{after, mark, text})
			before++
			after++
		default:
			out = append(out, Line{text: line})
		}
	}
	return out
}

// gutter is how wide the numbers are, with what surrounds them.
const gutter = 7

// row draws the line cut to width.
func (l Line) row(width int, st transcript.Style) string {
	if l.mark == 0 {
		return dimmed(l.text, width, st)
	}
	return l.draw(l.side(), cut(l.clean(), width-gutter), width, st)
}

// Rows draws the whole line, in as many rows as it needs.
func (l Line) Rows(width int, st transcript.Style) (out []string) {
	side := l.side()
	for part := range strings.SplitSeq(ansi.Hardwrap(l.clean(), max(width-gutter, 1), true), "\n") {
		out = append(out, l.draw(side, part, width, st))
		side = strings.Repeat(" ", gutter)
	}
	return out
}

func (l Line) clean() string {
	return strings.ReplaceAll(transcript.Printable(l.text), "\t", "    ")
}

// side is what is left of the text.
func (l Line) side() string {
	number := ""
	if l.number > 0 {
		number = fmt.Sprint(l.number)
	}
	mark := l.mark
	if mark == 0 {
		mark = ' '
	}
	return fmt.Sprintf("%4s %c ", number, mark)
}

func (l Line) draw(side, text string, width int, st transcript.Style) string {
	line := st.Dim(side) + text
	switch l.mark {
	case '+':
		line = st.Green(side + text)
	case '-':
		line = st.Red(side + text)
	case 0:
		line = st.Dim(side + text)
	}
	return ansi.Truncate(terminal.Text(line), width, "")
}
