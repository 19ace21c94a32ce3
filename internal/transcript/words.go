package transcript

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"goclaw/session"
)

// Count writes a number and what it counts: 1 turn, 2 turns.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Ago says how long ago something was.
func Ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", d/time.Hour)
	case d < 60*24*time.Hour:
		return fmt.Sprintf("%dd ago", d/(24*time.Hour))
	}
	return fmt.Sprintf("%d months ago", d/(30*24*time.Hour))
}

// Source says which program a session came from.
func Source(in session.Info) string { return cmp.Or(in.Origin.Program, "goclaw") }

// Called names a session by its key, and by its title if it has one.
func Called(in session.Info) string {
	if in.Title == "" {
		return string(in.Key)
	}
	return fmt.Sprintf("%s (%s)", in.Key, OneLine(Printable(in.Title), 60))
}

// Table aligns rows, of which the first is the head, by the columns that a
// terminal gives them.
func Table(rows [][]string, st Style) []string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], displaywidth.String(c))
		}
	}
	var out []string
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			b.WriteString(c + strings.Repeat(" ", width[i]-displaywidth.String(c)+2))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	out[0] = st.Bold(out[0])
	return out
}
