package transcript

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/terminal"
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
	var out []string
	fence, apart := "", false // apart: after an empty line or indented code
	for _, line := range lines {
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
		case indented:
		case strings.HasPrefix(body, "|"): // a table
		default:
			line = wrapLine(line, width)
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

var (
	painted = regexp.MustCompile("\x1b\\[[0-9;]*m")
	listed  = regexp.MustCompile(`^([-*+•│] |[0-9]{1,3}[.)] )`)
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
	var out strings.Builder
	w := NewWrapper(func(s string) { out.WriteString(s) }, func() int { return width })
	w.Write(line)
	w.Flush()
	return out.String()
}

// Wrapper breaks prose between words while it arrives. What follows in a line
// is indented like the beginning of the line. A word is written when it is whole.
type Wrapper struct {
	out   func(string)
	width func() int // 0: no line is broken

	held  string // not looked at yet: a character may still grow
	word  strings.Builder
	size  int    // columns of word
	space int    // spaces before it
	col   int    // columns that are written of the line
	begun bool   // the line has a word
	lead  string // the beginning of the line, without colours
	last  string // the last character
	wide  bool   // it has two columns
}

// NewWrapper returns a Wrapper that writes to out, for a terminal with width
// columns.
func NewWrapper(out func(string), width func() int) *Wrapper {
	return &Wrapper{out: out, width: width}
}

// Write takes the next part of the text.
func (w *Wrapper) Write(text string) {
	if w.width() <= 0 {
		w.Flush()
		w.out(text)
		return
	}
	w.held += text
	at := 0
	for g := cells.StringGraphemes(w.held); g.Next(); {
		c := g.Value()
		if at+len(c) == len(w.held) && c != " " && c != "\n" {
			break
		}
		at += len(c)
		w.add(c, g.Width())
	}
	w.held = w.held[at:]
}

// Flush writes what is held back.
func (w *Wrapper) Flush() {
	held := w.held
	w.held = ""
	for g := cells.StringGraphemes(held); g.Next(); {
		w.add(g.Value(), g.Width())
	}
	w.put()
}

// Verbatim writes text that is not prose: its lines are not broken.
func (w *Wrapper) Verbatim(text string) {
	w.Flush()
	w.out(text)
	if strings.HasSuffix(text, "\n") {
		w.newLine()
	}
}

// Column reports how much is written of the line.
func (w *Wrapper) Column() int { return w.col }

func (w *Wrapper) newLine() { w.col, w.begun, w.lead, w.last, w.wide = 0, false, "", "", false }

// add takes the next character.
func (w *Wrapper) add(c string, width int) {
	switch {
	case c == "\n":
		w.put()
		w.out("\n")
		w.newLine()
		return
	case c == " ":
		if w.size > 0 { // a colour alone is no word
			w.put()
		}
		w.space++
		w.last, w.wide = c, false
		return
	case width > 0:
		if w.size > 0 && (w.wide || width > 1) && !strings.Contains(closing, c) && !strings.Contains(opening, w.last) {
			w.put()
		}
		w.last, w.wide = c, width > 1
	}
	w.word.WriteString(c)
	w.size += width
}

// put writes the word and the spaces before it, on the next line if there is no
// room.
func (w *Wrapper) put() {
	width := w.width()
	if width <= 0 {
		width = math.MaxInt
	}
	var out string
	switch room := w.col+w.space+w.size <= width; {
	case room || !w.begun:
		out = strings.Repeat(" ", w.space)
		w.col += w.space
	case w.size > 0:
		w.col = w.under(width)
		out = "\n" + strings.Repeat(" ", w.col)
	}
	out += w.word.String()
	if len(w.lead) < 32 {
		w.lead += painted.ReplaceAllString(out, "")
	}
	if w.col += w.size; w.col > width { // the terminal breaks it
		w.col = (w.col-1)%width + 1
	}
	w.begun = w.begun || w.size > 0
	w.word.Reset()
	w.space, w.size = 0, 0
	if out != "" {
		w.out(out)
	}
}

// under returns how far the rest of the line is indented.
func (w *Wrapper) under(width int) int {
	body := strings.TrimLeft(w.lead, " ")
	n := len(w.lead) - len(body) + cells.String(listed.FindString(body))
	if n > width/2 {
		return 0
	}
	return n
}

// Say writes a line of prose. On a terminal it is broken between words.
func Say(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, Wrap(fmt.Sprintf(format, Fields(args)...), terminal.Columns(w)))
}
