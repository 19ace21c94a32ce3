package recall

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Snippet returns about n bytes of text on one line, around the place that
// holds most of what query asks for, and where its words stand in it.
func Snippet(text, query string, n int) (s string, marks [][2]int) {
	want := map[string]bool{}
	for _, t := range ask(query, time.Time{}).terms {
		want[t.term] = true
	}
	var found []word
	words(text, func(w word) {
		if want[w.term] {
			found = append(found, w)
		}
	})
	if l, only := asLiteral(query); only && len(found) == 0 {
		if from, to := standsAt(text, l); from >= 0 {
			found = []word{{list: &list{term: l.phrase}, from: from, to: to}}
		}
	}
	from := 0
	if len(text) > n {
		from = window(text, found, n)
	}
	to := min(from+n, len(text))
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
	}
	space := true // white space becomes one space
	next := 0
	for i := from; i < to; {
		for next < len(found) && found[next].to <= i {
			next++
		}
		// One that began before goes on here: pairs of characters overlap.
		if next < len(found) && found[next].from <= i && found[next].from >= from && found[next].to <= to {
			begin := b.Len()
			b.WriteString(text[i:found[next].to])
			if k := len(marks); k > 0 && marks[k-1][1] >= begin {
				marks[k-1][1] = b.Len()
			} else {
				marks = append(marks, [2]int{begin, b.Len()})
			}
			i, space = found[next].to, false
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == ' ' || r == '\n' || r == '\t' || r == '\r' {
			if !space {
				b.WriteByte(' ')
			}
			space = true
		} else {
			b.WriteString(text[i : i+size])
			space = false
		}
		i += size
	}
	if to < len(text) {
		b.WriteString(" …")
	}
	return strings.TrimRight(b.String(), " "), marks
}

// window returns where to begin so that n bytes hold the most different words
// of those found.
func window(text string, found []word, n int) int {
	best, at := -1, 0
	for i := range found {
		seen := map[string]bool{}
		for _, w := range found[i:] {
			if w.to > found[i].from+n*3/4 {
				break
			}
			seen[w.term] = true
		}
		if len(seen) > best {
			best, at = len(seen), i
		}
		if i == 500 {
			break // a text that holds nothing else
		}
	}
	if best < 0 {
		return 0
	}
	from := max(0, found[at].from-n/4)
	if from+n > len(text) {
		from = max(0, len(text)-n)
	}
	// Begin at a word.
	for from > 0 && from < found[at].from && text[from-1] != ' ' && text[from-1] != '\n' {
		from++
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return from
}
