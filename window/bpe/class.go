package bpe

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// A class says which of the patterns' sets a rune belongs to.
type class uint8

const (
	upper   class = 1 << iota // Lu Lt Lm Lo M
	lower                     // Ll Lm Lo M
	letter                    // L
	number                    // N
	space                     // \s
	newline                   // \r \n
)

// mark is what a rune of M is: it goes with letters but is none.
const mark = upper | lower

// The classes of all runes, 256 to a page, equal pages once. They are written
// by buildClasses, before there is an encoding, and only read afterwards.
var (
	asciiClasses [utf8.RuneSelf]class
	classIndex   [(unicode.MaxRune + 1) >> 8]uint8
	classPages   [][256]class
)

// buildClasses is made of the unicode package's tables rather than stored, so
// that there is one truth about Unicode in the binary.
var buildClasses = sync.OnceFunc(func() {
	all := make([]class, unicode.MaxRune+1)
	for _, set := range []struct {
		class class
		table *unicode.RangeTable
	}{
		{upper | letter, unicode.Lu},
		{upper | letter, unicode.Lt},
		{lower | letter, unicode.Ll},
		{upper | lower | letter, unicode.Lm},
		{upper | lower | letter, unicode.Lo},
		{mark, unicode.M},
		{number, unicode.N},
		{space, unicode.White_Space},
	} {
		for _, r := range set.table.R16 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				all[c] = set.class
			}
		}
		for _, r := range set.table.R32 {
			for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
				all[c] = set.class
			}
		}
	}
	all['\n'] |= newline
	all['\r'] |= newline
	copy(asciiClasses[:], all)

	seen := make(map[[256]class]uint8)
	for i := range classIndex {
		page := [256]class(all[i<<8:])
		n, ok := seen[page]
		if !ok {
			if len(classPages) > 255 {
				panic("bpe: more than 256 different pages of Unicode classes")
			}
			n = uint8(len(classPages))
			seen[page] = n
			classPages = append(classPages, page)
		}
		classIndex[i] = n
	}
})

// classAt returns the class of the rune at i, and its width. text is valid.
func classAt(text string, i int) (class, int) {
	if b := text[i]; b < utf8.RuneSelf {
		return asciiClasses[b], 1
	}
	r, w := utf8.DecodeRuneInString(text[i:])
	return classPages[classIndex[r>>8]][r&0xff], w
}
