package config

// Nearest returns the one of names that s is most likely a misspelling of,
// or "".
func Nearest(s string, names []string) string {
	best, dist := "", 1+len(s)/3
	for _, n := range names {
		if d := distance(s, n); d <= dist && d < len(n) {
			best, dist = n, d-1
		}
	}
	return best
}

// distance is the number of letters to change, add or drop, two swapped
// neighbours counting once.
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
