// Package fuzzy finds texts by a few letters of them, as people type in pickers:
// every word of the query must be in the text, whole, or letter by letter in its
// order with little between. Case and diacritics do not matter.
package fuzzy

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// What a letter of the query is worth in a text.
const (
	letter = 1
	next   = 4  // it follows the one before
	start  = 6  // it begins a word
	gap    = 14 // at most what is subtracted for those that were skipped
	whole  = 4  // a word of the query that is there in one piece, by letter
	need   = 2  // by letter; less is chance
)

// Pattern is a query that is matched with many texts. The zero value matches
// every text.
type Pattern struct{ words [][]rune }

// New returns the pattern of query.
func New(query string) Pattern {
	var p Pattern
	for _, w := range strings.Fields(query) {
		p.words = append(p.words, Fold(w).letters)
	}
	return p
}

// Empty reports whether the pattern matches every text.
func (p Pattern) Empty() bool { return len(p.words) == 0 }

// Text is a text that is matched with many patterns.
type Text struct {
	letters []rune
	begins  []bool  // a word
	at      []int32 // where the letters are in the text, in bytes; nil: one after the other
}

// Fold prepares s for matching.
func Fold(s string) Text {
	t := Text{letters: make([]rune, 0, len(s)), begins: make([]bool, 0, len(s))}
	before, ascii := ' ', true
	for i, r := range s {
		if r >= unicode.MaxASCII && ascii {
			ascii, t.at = false, make([]int32, len(t.letters), len(s))
			for j := range t.at {
				t.at[j] = int32(j)
			}
		}
		begins := word(r) && (!word(before) || unicode.IsUpper(r) && unicode.IsLower(before))
		before = r
		if ascii {
			t.letters, t.begins = append(t.letters, unicode.ToLower(r)), append(t.begins, begins)
			continue
		}
		for _, d := range norm.NFD.String(string(r)) {
			if !unicode.Is(unicode.Mn, d) {
				t.letters, t.begins, t.at = append(t.letters, unicode.ToLower(d)), append(t.begins, begins), append(t.at, int32(i))
				begins = false
			}
		}
	}
	return t
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Match reports whether every word of query is in text, how well (more is
// better), and at which bytes of text the letters found begin.
func Match(query, text string) (score int, positions []int, ok bool) {
	p, t := New(query), Fold(text)
	if score, ok = p.Score(t); ok {
		positions = p.Positions(t)
	}
	return score, positions, ok
}

// Score reports whether every word of the pattern is in t, and how well.
func (p Pattern) Score(t Text) (score int, ok bool) {
	for _, w := range p.words {
		s, _, ok := find(w, t, false)
		if !ok {
			return 0, false
		}
		score += s
	}
	return score, true
}

// Positions returns at which bytes of the text the letters found begin.
func (p Pattern) Positions(t Text) (out []int) {
	for _, w := range p.words {
		_, at, _ := find(w, t, true)
		for _, i := range at {
			if t.at != nil {
				i = int(t.at[i])
			}
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// find looks for one word.
func find(w []rune, t Text, where bool) (score int, at []int, ok bool) {
	if len(w) == 0 { // marks only
		return 0, nil, true
	}
	if i := index(w, t); i >= 0 {
		if score = len(w)*(letter+next+whole) - next; t.begins[i] {
			score += start
		}
		for j := range w {
			if where {
				at = append(at, i+j)
			}
		}
		return score, at, true
	}
	if !subsequence(w, t.letters) {
		return 0, nil, false
	}
	return scattered(w, t, where)
}

// index returns where w stands in t in one piece, at the beginning of a word if
// it can be; -1 if it does not.
func index(w []rune, t Text) int {
	found := -1
	for i := 0; i+len(w) <= len(t.letters); i++ {
		if t.letters[i] != w[0] || found >= 0 && !t.begins[i] || !slices.Equal(t.letters[i:i+len(w)], w) {
			continue
		}
		if found = i; t.begins[i] {
			return i
		}
	}
	return found
}

func subsequence(w, text []rune) bool {
	for _, r := range text {
		if r == w[0] {
			if w = w[1:]; len(w) == 0 {
				return true
			}
		}
	}
	return false
}

// scattered finds the letters of w in their order, where that is worth most. It
// fails if that is so little that it is chance.
func scattered(w []rune, t Text, where bool) (score int, at []int, ok bool) {
	const none = -1 << 20
	first := slices.Index(t.letters, w[0])
	t.letters, t.begins = t.letters[first:], t.begins[first:]
	n := len(t.letters)
	var buf [2][128]int32               // most texts need no more
	row, before := buf[0][:], buf[1][:] // the best that ends there, with this letter of w and with the one before
	if n > len(row) {
		row, before = make([]int32, n), make([]int32, n)
	}
	row, before = row[:n], before[:n]
	var from []int32 // which place it follows
	if where {
		from = make([]int32, len(w)*n)
	}
	for j, r := range w {
		best, bestAt := int32(none), -1 // among those that end before the last letter, less what is skipped
		for i, c := range t.letters {
			if best > none && i-bestAt <= gap+1 {
				best-- // one more is skipped; after gap of them it costs nothing
			}
			row[i] = none
			if c == r {
				s, f := best, bestAt
				if j == 0 {
					s, f = 0, -1
				} else if i > 0 && before[i-1] > none && before[i-1]+next >= s {
					s, f = before[i-1]+next, i-1
				}
				if s > none {
					row[i] = s + letter
					if t.begins[i] {
						row[i] += start
					}
					if where {
						from[j*n+i] = int32(f)
					}
				}
			}
			if j > 0 && i > 0 && before[i-1] >= best {
				best, bestAt = before[i-1], i-1
			}
		}
		row, before = before, row
	}
	end := 0
	for i, s := range before {
		if s > before[end] {
			end = i
		}
	}
	if before[end] < need*int32(len(w)) {
		return 0, nil, false
	}
	for j, i := len(w)-1, end; where && j >= 0; j-- {
		at = append(at, first+i)
		i = int(from[j*n+i])
	}
	slices.Reverse(at)
	return int(before[end]), at, true
}
