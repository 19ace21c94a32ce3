package transcript

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/recall"
)

// Hit shows a hit: where it is, and what of it fits the query, which is marked:
// of a long text the matching lines with their numbers. It fits a terminal with
// that many columns (0: no terminal).
func Hit(n int, h recall.Hit, query string, st Style, columns int) string {
	width := cmp.Or(columns, 100)
	var head []string
	if h.File != "" {
		head = append(head, st.Cyan(OneLine(Name(h.Cite()), max(width-4, 20))))
		if h.Heading != "" && width >= 80 {
			head = append(head, st.Dim(OneLine(Name(h.Heading), 60)))
		}
	} else {
		room, record := min(48, width-30), fmt.Sprintf("record %d", h.Seq)
		if h.Near && width < 60 {
			record = fmt.Sprintf("#%d", h.Seq)
			room = min(room, width-len("10.       near")-len(h.Role)-len(record))
		}
		head = append(head, st.Cyan(OneLine(Name(h.Key), max(room, 8))), st.Green(Name(h.Role)))
		if h.Title != "" && width >= 80 {
			head = append(head, OneLine(Name(h.Title), 48))
		}
		head = append(head, st.Dim(record))
	}
	if !h.Time.IsZero() && width >= 60 {
		at := h.Time.Local().Format("2006-01-02 15:04")
		if h.File != "" {
			at = h.Time.Format(time.DateOnly)
		}
		head = append(head, st.Dim(at))
	}
	switch {
	case h.Near && width >= 60:
		head = append(head, st.Dim("near a match"))
	case h.Near:
		head = append(head, st.Dim("near"))
	}
	if len(h.Also) > 0 && width >= 80 {
		head = append(head, st.Dim(alsoIn(h)))
	}
	return fmt.Sprintf("%s %s\n%s", st.Bold(fmt.Sprintf("%2d.", n)), strings.Join(head, "  "), found(h, query, st, columns))
}

// alsoIn says how often a hit was said elsewhere, and in how many sessions.
func alsoIn(h recall.Hit) string {
	in := map[string]bool{}
	for _, cite := range h.Also {
		if id, _, ok := recall.Cited(cite); ok && id != string(h.Session) {
			in[id] = true
		}
	}
	s := fmt.Sprintf("and %d more like it", len(h.Also))
	if len(in) > 0 {
		s += " in " + Count(len(in), "other session")
	}
	return s
}

// shownLines is how many lines of a long text are shown.
const shownLines = 3

// found shows what of a hit fits the query, indented.
func found(h recall.Hit, query string, st Style, columns int) string {
	width := cmp.Or(columns, 100)
	size := max(2*width-16, 40)
	if len(h.Text) > size && strings.Contains(h.Text, "\n") {
		if lines := h.Matches(query, shownLines, max(width-16, 24)); len(lines) > 0 {
			return numbered(lines, firstLine(h), st, columns)
		}
	}
	text, marks := h.Snippet(query, size)
	return fit("    "+highlight(text, marks, st), columns)
}

// firstLine is the number of the first line of a hit's text: in its file, or in
// the message.
func firstLine(h recall.Hit) int { return max(h.Line, 1) }

// numbered shows lines with their numbers, and "…" where some are left out.
func numbered(lines []recall.LineMatch, first int, st Style, columns int) string {
	digits := len(fmt.Sprint(first - 1 + lines[len(lines)-1].Line))
	var out []string
	for i, l := range lines {
		if i > 0 && l.Line > lines[i-1].Line+1 {
			out = append(out, st.Dim("    "+strings.Repeat(" ", digits)+"…"))
		}
		number := st.Dim(fmt.Sprintf("%*d:", digits, first-1+l.Line))
		out = append(out, fit("    "+number+" "+highlight(l.Text, l.Marks, st), columns))
	}
	return strings.Join(out, "\n")
}

// fit wraps a line to the columns of a terminal, if there is one.
func fit(line string, columns int) string {
	if columns > 0 {
		return wrapLine(line, columns)
	}
	return line
}

// highlight paints the marks of a text.
func highlight(text string, marks [][2]int, st Style) string {
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.WriteString(Printable(text[at:m[0]]))
		b.WriteString(st.Paint("1;33", Printable(text[m[0]:m[1]])))
		at = m[1]
	}
	b.WriteString(Printable(text[at:]))
	return b.String()
}

// Marked shows a line of a hit, or near it, with what matches the query marked.
func Marked(h recall.Hit, line, query string, st Style) string {
	h.Text = line
	return highlight(line, h.Marks(query), st)
}

// shownHits is how many hits of a group are shown.
const shownHits = 3

// Group shows what was found in one session or file: where, how much, and a
// line of each of the best hits.
func Group(n int, g recall.Group, query string, st Style, columns int, now time.Time) string {
	width := cmp.Or(columns, 100)
	h := g.Hits[0]
	head := []string{st.Cyan(OneLine(Name(cmp.Or(h.File, string(h.Key))), max(min(48, width-30), 8)))}
	if h.Title != "" && width >= 60 {
		head = append(head, OneLine(Name(h.Title), 48))
	}
	if h.Folder != "" && width >= 80 {
		head = append(head, st.Dim(OneLine(Name(Tilde(h.Folder)), 40)))
	}
	if at := g.Latest(); !at.IsZero() && width >= 60 {
		head = append(head, st.Dim(Ago(now.Sub(at))))
	}
	head = append(head, Count(g.Count, "hit"))
	out := []string{st.Bold(fmt.Sprintf("%2d.", n)) + " " + strings.Join(head, "  ")}
	for _, h := range g.Hits[:min(len(g.Hits), shownHits)] {
		where := fmt.Sprintf("#%d %s", h.Seq, h.Role)
		if h.File != "" {
			where = fmt.Sprintf(":%d", h.Line)
		}
		size := max(width-16-len(where), 24)
		text, marks := h.Snippet(query, size)
		if lines := h.Matches(query, 1, size); len(h.Text) > size && len(lines) > 0 {
			text, marks = lines[0].Text, lines[0].Marks
		}
		out = append(out, fit("    "+st.Dim(Name(where))+"  "+highlight(text, marks, st), columns))
	}
	return strings.Join(out, "\n")
}

// Tilde shortens a path below the user's home.
func Tilde(path string) string {
	home, err := os.UserHomeDir()
	if err != nil || home == "/" {
		return path
	}
	if rest, ok := strings.CutPrefix(path, home); ok && (rest == "" || rest[0] == filepath.Separator) {
		return "~" + rest
	}
	return path
}

// How much of a hit is shown when it is opened.
const (
	openedWhole  = 40 // lines; longer texts are shown around what matches
	openedAround = 5  // lines before and after one that matches
	openedBytes  = 2000
)

// Opened shows the text of a hit with what matches the query marked: all of a
// short one, of a long one the lines around those that match, with numbers.
func Opened(h recall.Hit, query string, st Style, columns int) string {
	lines := strings.Split(h.Text, "\n")
	keep := make([]bool, len(lines))
	best := h.Matches(query, shownLines, 1)
	switch {
	case len(lines) <= openedWhole:
		best = nil
		for i := range keep {
			keep[i] = true
		}
	case len(best) == 0: // it is near a match: its beginning
		best = []recall.LineMatch{{Line: 1}}
	}
	for _, l := range best {
		for i := max(0, l.Line-1-openedAround); i < min(len(lines), l.Line+openedAround); i++ {
			keep[i] = true
		}
	}
	marks := h.Marks(query)
	digits := len(fmt.Sprint(len(lines)))
	var out []string
	from := 0
	for i, text := range lines {
		to := from + len(text)
		if !keep[i] {
			if i == 0 || keep[i-1] {
				out = append(out, st.Dim(strings.Repeat(" ", digits)+"…"))
			}
			from = to + 1
			continue
		}
		line := openedLine(strings.TrimSuffix(text, "\r"), within(marks, from, to), h, query, st)
		if len(lines) > 1 {
			line = st.Dim(fmt.Sprintf("%*d:", digits, i+1)) + " " + line
		}
		out = append(out, fit(line, columns))
		from = to + 1
	}
	return strings.Join(out, "\n")
}

// openedLine shows one line with its marks; a very long one is cut.
func openedLine(text string, marks [][2]int, h recall.Hit, query string, st Style) string {
	if len(text) > openedBytes {
		h.Text = text
		text, marks = h.Snippet(query, openedBytes)
	}
	return highlight(text, marks, st)
}

// within returns the marks between from and to, counted from there.
func within(marks [][2]int, from, to int) (out [][2]int) {
	for _, m := range marks {
		if m[0] >= from && m[1] <= to {
			out = append(out, [2]int{m[0] - from, m[1] - from})
		}
	}
	return out
}
