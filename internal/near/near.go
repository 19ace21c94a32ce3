// Package near finds the word that a misspelled one was meant to be.
package near

import "unicode/utf8"

// Nearest returns the name that s most likely misspells, or "" if none is near
// enough: a wrong suggestion misleads.
func Nearest(s string, names []string) string {
	best, dist := "", 0
	for _, n := range names {
		if d, ok := Distance(s, n); ok && (best == "" || d < dist) {
			best, dist = n, d
		}
	}
	return best
}

// Distance returns how many letters of a must be changed, added or dropped to
// get b; swapping two neighbours counts as one. ok is false if that is too many
// for a misspelling: more than a third of the shorter word, or more than 3.
func Distance(a, b string) (d int, ok bool) {
	short := min(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
	if long := max(len(a), len(b)); short < 3 || long > 200 {
		return 0, a == b
	}
	d = distance(a, b)
	return d, d <= min(short/3, 3)
}

// distance is Distance without a limit.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(x)][len(y)]
}
