package transcript

import (
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Wrap breaks lines that are longer than width between words, and indents what
// follows like the beginning of the line. Code blocks, tables, and words that are
// too long for any line stay as they are, as does everything if width is 0.
// Colours count as no columns.
func Wrap(text string, width int) string {
	if width <= 0 || len(text) <= width {
		return text
	}
	lines := strings.Split(text, "\n")
	fence, apart := "", false // apart: after an empty line or indented code
	for i, line := range lines {
		plain := painted.ReplaceAllString(line, "")
		body := strings.TrimLeft(plain, " ")
		indented := apart && (len(plain)-len(body) >= 4 || strings.HasPrefix(body, "\t")) && listed.FindString(body) == ""
		apart = body == "" || indented
		switch {
		case fence != "":
			if strings.HasPrefix(body, fence) && strings.Trim(body, fence[:1]+" ") == "" {
				fence = ""
			}
		case strings.HasPrefix(body, "```") || strings.HasPrefix(body, "~~~"):
			fence = body[:3]
		case indented || strings.HasPrefix(body, "|"):
		default:
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

var (
	painted = regexp.MustCompile("\x1b\\[[0-9;]*m")
	listed  = regexp.MustCompile(`^([-*+•] |[0-9]{1,3}[.)] )`)
	// cells measures text that may be coloured.
	cells = displaywidth.Options{ControlSequences: true}
)

// In scripts without spaces a line may begin with any character that does not
// close, and end with any that does not open.
const (
	closing = ".,;:!?)]}'\"…、。，．！？：；）］｝」』】〉》〕・ー々"
	opening = "([{（［｛「『【〈《〔"
)

// wrapLine breaks one line, which is prose whatever it begins with.
func wrapLine(line string, width int) string {
	if cells.String(line) <= width {
		return line
	}
	plain := painted.ReplaceAllString(line, "")
	body := strings.TrimLeft(plain, " ")
	under := len(plain) - len(body) + cells.String(listed.FindString(body))
	if under > width/2 {
		under = 0
	}
	var out, word strings.Builder
	col, space, size := 0, 0, 0 // columns of the line, of the spaces after it, and of the next word
	begun := false              // the line has a word
	flush := func() {
		switch {
		case begun && size > 0 && col+space+size > width:
			out.WriteString("\n" + strings.Repeat(" ", under))
			col = under
		default:
			out.WriteString(strings.Repeat(" ", space))
			col += space
		}
		out.WriteString(word.String())
		if col += size; col > width { // the terminal breaks it
			col = (col-1)%width + 1
		}
		begun = begun || size > 0
		word.Reset()
		space, size = 0, 0
	}
	before, wide := "", false
	for g := cells.StringGraphemes(line); g.Next(); {
		c, w := g.Value(), g.Width()
		if c == " " {
			if word.Len() > 0 {
				flush()
			}
			space++
			before, wide = c, false
			continue
		}
		if w > 0 {
			if size > 0 && (wide || w > 1) && !strings.Contains(closing, c) && !strings.Contains(opening, before) {
				flush()
			}
			before, wide = c, w > 1
		}
		word.WriteString(c)
		size += w
	}
	flush()
	return out.String()
}
