package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"goclaw/recall"
)

// Hit shows a hit: where it is, and a snippet in which the words of the query are
// marked. It fits a terminal with that many columns (0: no terminal).
func Hit(n int, h recall.Hit, query string, st Style, columns int) string {
	width := cmp.Or(columns, 100)
	var head []string
	if h.File != "" {
		head = append(head, st.Cyan(OneLine(Name(h.Cite()), max(width-4, 20))))
		if h.Heading != "" && width >= 80 {
			head = append(head, st.Dim(OneLine(Name(h.Heading), 60)))
		}
	} else {
		head = append(head, st.Cyan(OneLine(Name(h.Key), max(min(48, width-30), 8))), st.Green(Name(h.Role)))
		if h.Title != "" && width >= 80 {
			head = append(head, OneLine(Name(h.Title), 48))
		}
		head = append(head, st.Dim(fmt.Sprintf("record %d", h.Seq)))
	}
	if !h.Time.IsZero() && width >= 60 {
		at := h.Time.Local().Format("2006-01-02 15:04")
		if h.File != "" {
			at = h.Time.Format(time.DateOnly)
		}
		head = append(head, st.Dim(at))
	}
	if h.Near {
		head = append(head, st.Dim("near a match"))
	}
	if len(h.Also) > 0 && width >= 80 {
		head = append(head, st.Dim(fmt.Sprintf("and %d more like it", len(h.Also))))
	}
	text, marks := recall.Snippet(h.Text, query, max(2*width-16, 40))
	var b strings.Builder
	at := 0
	for _, m := range marks {
		b.WriteString(Printable(text[at:m[0]]))
		b.WriteString(st.paint("1;33", Printable(text[m[0]:m[1]])))
		at = m[1]
	}
	b.WriteString(Printable(text[at:]))
	snippet := "    " + b.String()
	if columns > 0 {
		snippet = wrapLine(snippet, columns)
	}
	return fmt.Sprintf("%s %s\n%s", st.Bold(fmt.Sprintf("%2d.", n)), strings.Join(head, "  "), snippet)
}
