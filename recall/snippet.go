package recall

import (
	"strings"
	"time"
	"unicode/utf8"

	"goclaw/recall/internal/ranking"
	"goclaw/recall/internal/words"
)

// Snippet returns about n bytes of text on one line, around the place that
// holds most of what query asks for, and where its words stand in it.
func Snippet(text, query string, n int) (s string, marks [][2]int) {
	want := ranking.Ask(query, time.Time{}).Terms()
	var found []words.Word
	words.Each(text, func(w words.Word) {
		if want[w.Term] {
			found = append(found, w)
		}
	})
	if l, only := asLiteral(query); only && len(found) == 0 {
		if from, to := standsAt(text, l); from >= 0 {
			found = []words.Word{{Term: l.phrase, From: from, To: to}}
		}
	}
	from := 0
	if len(text) > n {
		from = excerpt(text, found, n)
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
		for next < len(found) && found[next].To <= i {
			next++
		}
		// An earlier word may reach this far: pairs of characters overlap.
		if next < len(found) && found[next].From <= i && found[next].From >= from && found[next].To <= to {
			at := b.Len()
			b.WriteString(text[i:found[next].To])
			if k := len(marks); k > 0 && marks[k-1][1] >= at {
				marks[k-1][1] = b.Len()
			} else {
				marks = append(marks, [2]int{at, b.Len()})
			}
			i, space = found[next].To, false
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

// excerpt returns where n bytes start that hold the most different words of
// those found.
func excerpt(text string, found []words.Word, n int) int {
	best, at := -1, 0
	for i := range found {
		seen := map[string]bool{}
		for _, w := range found[i:] {
			if w.To > found[i].From+n*3/4 {
				break
			}
			seen[w.Term] = true
		}
		if len(seen) > best {
			best, at = len(seen), i
		}
		if i == 500 {
			break // the text holds little else
		}
	}
	if best < 0 {
		return 0
	}
	from := max(0, found[at].From-n/4)
	if from+n > len(text) {
		from = max(0, len(text)-n)
	}
	// Start at a word.
	for from > 0 && from < found[at].From && text[from-1] != ' ' && text[from-1] != '\n' {
		from++
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	return from
}
