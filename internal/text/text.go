// Package text shortens texts without cutting characters in two, and writes
// sizes.
package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Head returns the first n bytes of s, less if a character would be cut.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Tail returns the last n bytes of s, less if a character would be cut.
func Tail(s string, n int) string {
	at := max(0, len(s)-n)
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return s[at:]
}

// Middle cuts s in the middle if it has more than head+tail bytes: it returns
// the first head and the last tail bytes, and says between them how much is
// missing.
func Middle(s string, head, tail int) string {
	if len(s) <= head+tail {
		return s
	}
	first, last := Head(s, head), Tail(s, tail)
	return fmt.Sprintf("%s\n[... %d of %d bytes cut ...]\n%s", first, len(s)-len(first)-len(last), len(s), last)
}

// Clip returns at most n bytes of s, cut at a word where there is one, with
// " …" after it if anything is missing.
func Clip(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) <= n {
		return s
	}
	s = Head(s, n)
	if i := strings.LastIndexAny(s, " \n"); i > len(s)/2 {
		s = s[:i]
	}
	return strings.TrimSpace(s) + " …"
}

// OneLine returns at most n bytes of s, as Clip does, in one line.
func OneLine(s string, n int) string { return Clip(strings.Join(strings.Fields(s), " "), n) }

// Bytes says a number of bytes the way people do.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), 0
	for f >= 1023.95 && unit < 5 { // less is not rounded to 1024
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.1f %cB", f, "BKMGTP"[unit])
}
