package transcript

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/secrets"
	"goclaw/session"
)

// Fields returns args for a format of one line: keys, titles, paths and errors
// come from outside and may hold line ends.
func Fields(args []any) []any {
	out := make([]any, len(args))
	for i, a := range args {
		switch a := a.(type) {
		case session.Key:
			out[i] = Name(a)
		case session.ID:
			out[i] = Name(a)
		case string:
			out[i] = strings.ReplaceAll(a, "\n", " ")
		case error:
			out[i] = strings.ReplaceAll(a.Error(), "\n", "; ")
		default:
			out[i] = a
		}
	}
	return out
}

// Count returns a number with its noun: 1 turn, 2 turns.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Problem returns an error as it is shown: in one line, without secrets.
func Problem(err error) string {
	text, _ := secrets.Redact(strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " "))
	return text
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

// Age is Ago in few columns.
func Age(d time.Duration) string {
	return strings.Replace(strings.TrimSuffix(Ago(d), " ago"), " months", "mo", 1)
}

// Took says how long something took.
func Took(d time.Duration) string {
	switch {
	case d < 10*time.Second && d%time.Second != 0:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Dollars formats an amount of money; small ones get more digits.
func Dollars(usd float64) string {
	switch {
	case usd <= 0:
		return "$0"
	case usd < 0.01:
		return fmt.Sprintf("$%.4f", usd)
	case usd < 0.1:
		return fmt.Sprintf("$%.3f", usd)
	}
	return fmt.Sprintf("$%.2f", usd)
}

// KeepEnd cuts the beginning of a text that has more than width columns: of a
// folder, the end tells more.
func KeepEnd(text string, width int) string {
	if displaywidth.String(text) <= width {
		return text
	}
	r := []rune(text)
	for len(r) > 0 && displaywidth.String(string(r)) > width-1 {
		r = r[1:]
	}
	return displaywidth.TruncateString("…"+string(r), max(width, 0), "")
}

// Stamp returns t as JSON output has it: in UTC, "" for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Source returns the program that a session came from.
func Source(in session.Info) string { return Name(cmp.Or(in.Origin.Program, "goclaw")) }

// Called names a session by its key, and by its title if it has one.
func Called(in session.Info) string {
	if in.Title == "" {
		return Name(in.Key)
	}
	return fmt.Sprintf("%s (%s)", Name(in.Key), OneLine(Name(in.Title), 60))
}

// Table aligns rows, of which the first is the head. If they are wider than
// width (0: no limit), long cells are cut; if that is not enough, columns are
// left out from the right, but never the first two.
func Table(rows [][]string, st Style, width int) []string {
	widths := columns(rows)
	for width > 0 && total(widths) > width {
		i := widest(widths)
		switch {
		case widths[i] > leastCell:
			widths[i]--
		case len(widths) > 2:
			widths = columns(rows)[:len(widths)-1]
		case widths[i] > 1:
			widths[i]--
		default:
			width = 0
		}
	}
	var out []string
	for _, row := range rows {
		var b strings.Builder
		for i, w := range widths {
			c := displaywidth.TruncateString(row[i], w, "…")
			b.WriteString(c + strings.Repeat(" ", max(w-displaywidth.String(c), 0)+2))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	out[0] = st.Bold(out[0])
	return out
}

// leastCell is the width that cells are cut to before a column is left out.
const leastCell = 14

// columns returns the widths of the columns of rows.
func columns(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], displaywidth.String(c))
		}
	}
	return widths
}

// total returns the width of a line with such columns.
func total(widths []int) int {
	sum := -2
	for _, w := range widths {
		sum += w + 2
	}
	return sum
}

func widest(widths []int) int {
	at := 0
	for i, w := range widths {
		if w > widths[at] {
			at = i
		}
	}
	return at
}

// ShortPath returns a path with ~ for the user's home.
func ShortPath(path, home string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok && home != "" {
		path = "~/" + rest
	}
	return filepath.ToSlash(path)
}
