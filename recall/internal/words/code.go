package words

import (
	"strings"
	"unicode/utf8"

	"goclaw/internal/parts"
)

var (
	partParts = parts.New("parts of camelCase", parts.Index)
	partJoins = parts.New("snake_case and flags as one", parts.Index)
)

// part is a part of a word: its term, and where it is in the word.
type part struct{ id, from, to int }

const (
	minPart  = 2 // letters of a part that is found by itself
	meanPart = 3 // on average, if not all have that many; others are what keys and hashes are made of
)

// parts returns the parts that a programmer writes as one word: camelCase,
// HTTPServer, sha256.
func (l *Lexer) parts(w string) (parts []part) {
	cuts := humps(w)
	if len(cuts) == 0 || !partParts.On() {
		return nil
	}
	cuts = append(cuts, len(w))
	if len(w) < meanPart*len(cuts) && !wordsOnly(w, cuts) {
		return nil
	}
	from := 0
	for _, to := range cuts {
		if to-from >= minPart {
			if term := Term(w[from:to]); term != "" {
				parts = append(parts, part{l.ID(term), from, to})
			}
		}
		from = to
	}
	return parts
}

// wordsOnly reports whether all parts of w, which end at cuts, may be words, as
// those of UserByID: none is one letter or a number.
func wordsOnly(w string, cuts []int) bool {
	from := 0
	for _, to := range cuts {
		if to-from < minPart || w[from] <= '9' {
			return false
		}
		from = to
	}
	return true
}

// HasParts reports whether w is several words, or words and numbers, that are
// written as one.
func HasParts(w string) bool { return len(humps(w)) > 0 }

// humps returns where the parts of w begin but the first. The s of URLs belongs
// to what precedes it.
func humps(w string) (cuts []int) {
	class := func(i int) byte {
		switch c := w[i]; {
		case c >= 'a' && c <= 'z':
			return 'a'
		case c >= 'A' && c <= 'Z':
			return 'A'
		case c >= '0' && c <= '9':
			return '0'
		}
		return 0
	}
	for i := 1; i < len(w); i++ {
		was, is := class(i-1), class(i)
		if was == 0 || is == 0 {
			continue
		}
		switch {
		case was == 'A' && is == 'a':
		case was == is && (is != 'A' || i+1 == len(w) || class(i+1) != 'a'):
		case was == is && w[i+1] == 's' && (i+2 == len(w) || class(i+2) == 'A'):
		default:
			cuts = append(cuts, i)
		}
	}
	return cuts
}

// joins reports whether c joins words to one name, as in no-ff, API_TOKEN and
// main.go.
func joins(c byte) bool { return c == '_' || c == '-' || c == '.' }

// joined takes the words from i to j, which are joined to one name, as if they
// were written without what joins them: FLY_API_TOKEN is found by flyApiToken.
// Dates, versions and the like are no names.
func (l *Lexer) joined(text string, i, j int, f func(Word)) {
	name := text[i:j]
	id, _, ok := l.seen.get(name)
	if !ok {
		id = stopWord
		if term := Term(Join(name)); term != "" {
			id = l.ID(term)
		}
		l.seen.put(name, id, nil)
	}
	if id != stopWord && partJoins.On() {
		f(Word{ID: id, From: i, To: j, Joined: true})
	}
}

// flag takes the word or name from i to j as a flag if two dashes precede it:
// --no-ff is found by itself, beside its words.
func (l *Lexer) flag(text string, i, j int, f func(Word)) {
	if i < 2 || text[i-1] != '-' || text[i-2] != '-' || i > 2 && (text[i-3] == '-' || wordByte[text[i-3]]) {
		return
	}
	name := text[i-2 : j]
	id, _, ok := l.seen.get(name)
	if !ok {
		id = l.ID(strings.ToLower(name[:min(len(name), maxWord)]))
		l.seen.put(name, id, nil)
	}
	if partJoins.On() {
		f(Word{ID: id, From: i - 2, To: j, Joined: true})
	}
}

// Join writes a name of several words as one word; "" if more of them have
// digits than not.
func Join(name string) string {
	numbers, words := 0, 0
	for p := range strings.FieldsFuncSeq(name, func(r rune) bool { return r < utf8.RuneSelf && joins(byte(r)) }) {
		words++
		if strings.ContainsAny(p, "0123456789") {
			numbers++
		}
	}
	if 2*numbers > words {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && joins(byte(r)) {
			return -1
		}
		return r
	}, name)
}
