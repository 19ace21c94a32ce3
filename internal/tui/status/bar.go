package status

import (
	"strings"

	"goclaw/internal/transcript"
)

// thresholds are where the model is told how full its window is, in percent.
var thresholds = []int{50, 75, 90}

// Bar draws how full a window is in so many cells. The cell in which a threshold
// lies has a mark, so that it can be read without colours.
func Bar(used, size, cells int) string {
	full := 0
	if size > 0 {
		full = min(max(used*cells/size, 0), cells)
	}
	if used > 0 && full == 0 && cells > 0 {
		full = 1
	}
	bar := strings.Split(strings.Repeat("█", full)+strings.Repeat("░", cells-full), "")
	for _, t := range thresholds {
		switch i := mark(t, cells); {
		case i >= len(bar):
		case size > 0 && used*100 >= t*size: // it is reached
			bar[i] = "▓"
		default:
			bar[i] = "│"
		}
	}
	return strings.Join(bar, "")
}

// mark returns the cell that begins at percent, or the one that holds it.
func mark(percent, cells int) int { return percent * cells / 100 }

// level returns the paint of a window that is so full.
func level(st transcript.Style, percent int) func(string) string {
	switch {
	case percent >= 90:
		return func(s string) string { return st.Bold(st.Red(s)) }
	case percent >= 75:
		return st.Red
	case percent >= 50:
		return st.Yellow
	}
	return st.Green
}
