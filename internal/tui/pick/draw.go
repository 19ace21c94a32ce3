package pick

import (
	"iter"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
)

// How things are painted: with the terminal's own 16 colours, so that themes and
// light backgrounds hold. What is painted is never painted again around it.
const (
	cBold   = "1"
	cDim    = "2"
	cCursor = "7"
	cFound  = "1;33"
	cHead   = "1;36"
	cUser   = "32"
	cModel  = "36"
	cBad    = "31"
)

func paint(code, s string) string {
	if s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[m"
}

// name returns a title, a key or a folder as it may be shown: in one line, with
// nothing that a terminal would obey.
func name[S ~string](s S) string {
	return strings.Join(strings.Fields(transcript.Name(s)), " ")
}

// cut cuts a text without paint to w columns.
func cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	return displaywidth.TruncateString(s, w, "…")
}

// cell cuts and fills a text without paint to w columns.
func cell(s string, w int) string {
	s = cut(s, w)
	return s + strings.Repeat(" ", max(w-displaywidth.String(s), 0))
}

// lit paints the letters at the bytes at, which are in order, and the rest with
// code.
func lit(s string, at []int, code string) string {
	var b strings.Builder
	from, i := 0, 0
	for p, c := range characters(s) {
		for i < len(at) && at[i] < p {
			i++
		}
		if i == len(at) {
			break
		}
		if at[i] < p+len(c) {
			b.WriteString(paint(code, s[from:p]) + paint(cFound, c))
			from = p + len(c)
		}
	}
	return b.String() + paint(code, s[from:])
}

// characters yields the characters of a text, as people count them, by their
// places: an accent stays with its letter.
func characters(s string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		at := 0
		for g := displaywidth.StringGraphemes(s); g.Next() && yield(at, g.Value()); {
			at += len(g.Value())
		}
	}
}

// marked paints the spans of a text that recall marks, and makes it printable.
func marked(s string, spans [][2]int, code string) string {
	var b strings.Builder
	from := 0
	for _, m := range spans {
		if m[0] < from || m[1] > len(s) {
			continue
		}
		b.WriteString(paint(code, flat(s[from:m[0]])) + paint(cFound, flat(s[m[0]:m[1]])))
		from = m[1]
	}
	return b.String() + paint(code, flat(s[from:]))
}

// flat makes a piece of a line printable.
func flat(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(transcript.Printable(s))
}

// paragraphs returns a text from anywhere as lines of at most w columns.
func paragraphs(s string, w int) []string {
	s = strings.TrimRight(strings.TrimLeft(s, "\n"), " \t\n")
	s = strings.ReplaceAll(transcript.Printable(s), "\t", "    ")
	return strings.Split(ansi.Wrap(s, max(w, 1), ""), "\n")
}

// hint is a key and what it does.
type hint [2]string

// hints shows keys in at most so many lines. What does not fit is left out, but
// never the last two.
func hints(list []hint, width, lines int) []string {
	const between = "  "
	size := func(h hint) int { return displaywidth.String(h[0]) + 1 + displaywidth.String(h[1]) }
	keep := len(between) + size(list[len(list)-1]) + len(between) + size(list[len(list)-2])
	var out []string
	var line strings.Builder
	used := 0
	for i, h := range list {
		sep := min(used, len(between))
		if used > 0 && len(out) < lines-1 && used+sep+size(h) > width {
			out, used, sep = append(out, line.String()), 0, 0
			line.Reset()
		}
		if len(out) == lines-1 && i < len(list)-2 && used+sep+size(h) > width-keep {
			continue // the last two come first
		}
		if used > 0 {
			line.WriteString(between)
			used += len(between)
		}
		line.WriteString(paint(cBold, h[0]) + " " + paint(cDim, h[1]))
		used += size(h)
	}
	return append(out, line.String())
}

// page puts head at the top, foot at the bottom and as much of body as fits
// between them. No line is wider than the screen.
func page(width, height int, head, foot []string, body func(height int) []string) string {
	foot = foot[:min(len(foot), max(height-len(head), 0))]
	room := max(height-len(head)-len(foot), 0)
	lines := append([]string{}, head...)
	b := body(room)
	lines = append(lines, b[:min(len(b), room)]...)
	for len(lines) < height-len(foot) {
		lines = append(lines, "")
	}
	lines = append(lines, foot...)
	lines = lines[:min(len(lines), max(height, 1))]
	for i, l := range lines {
		if ansi.StringWidth(l) > width {
			lines[i] = ansi.Truncate(l, width, "…")
		}
	}
	return strings.Join(lines, "\n")
}

// cursor places the cursor, if it is to be shown and there is room for it.
func cursor(x, y, width, height int, shown bool) *tea.Cursor {
	if !shown || y >= height || width < 1 {
		return nil
	}
	return tea.NewCursor(min(x, width-1), y)
}

// beside puts right at column w of left, with a line between them.
func beside(left, right []string, w, height int) []string {
	out := make([]string, height)
	for i := range out {
		l, r := "", ""
		if i < len(left) {
			l = left[i]
		}
		if i < len(right) {
			r = right[i]
		}
		n := ansi.StringWidth(l)
		if n > w {
			l, n = ansi.Truncate(l, w, "…"), w
		}
		out[i] = l + strings.Repeat(" ", w-n) + paint(cDim, " │ ") + r
	}
	return out
}
