package editor

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/terminal"
)

// clean returns what of s may be in the text, so that what is sent is what was
// shown: line ends as \n, no terminal sequences, no control characters, nothing
// that changes the direction of text, and no invisible characters except those
// that one needs (a joiner in an emoji, one variation of a letter).
func clean(s string) string { return cleanAfter("", s) }

// cleanAfter is clean for what is inserted after before, which it may change.
func cleanAfter(before, s string) string {
	if plain(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	s = terminal.Strip(s)
	var b strings.Builder
	b.Grow(len(s))
	last, _ := utf8.DecodeLastRuneInString(before)
	unseen := before == "" || unicode.IsSpace(last) || invisible(last) // what stands before needs no invisible character
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			r = '\uFFFD' // not UTF-8
		case isChip(r):
			r = '\uFFFD'
		case terminal.Hidden(r):
			continue
		case invisible(r):
			if unseen || !joins(r) {
				continue
			}
			unseen = true
			b.WriteRune(r)
			continue
		}
		unseen = unicode.IsSpace(r)
		b.WriteRune(r)
	}
	return b.String()
}

func invisible(r rune) bool { return unicode.In(r, unicode.Cf, unicode.Variation_Selector) }

// joins reports whether an invisible character changes how the one before it or
// after it looks.
func joins(r rune) bool {
	return r == 0x200c || r == 0x200d || unicode.Is(unicode.Variation_Selector, r) || r >= 0x600 && r < 0x1000
}

// plain reports whether s is ASCII that needs no cleaning.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}
