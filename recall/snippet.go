package recall

import (
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"goclaw/recall/internal/ranking"
	"goclaw/recall/internal/words"
)

// Snippet returns about n bytes of a hit's text on one line, around the place
// that holds most of what query asks for, and where that stands in it.
func (h Hit) Snippet(query string, n int) (s string, marks [][2]int) {
	return snippet(h.Text, h.matches(query), n)
}

// Marks returns where the text holds what query asks for. Marks are in order,
// and none overlaps another.
func (h Hit) Marks(query string) (marks [][2]int) {
	for _, w := range h.matches(query) {
		if k := len(marks); k > 0 && marks[k-1][1] >= w.From {
			marks[k-1][1] = max(marks[k-1][1], w.To)
		} else {
			marks = append(marks, [2]int{w.From, w.To})
		}
	}
	return marks
}

// LineMatch is a line of a text that holds what a query asks for.
type LineMatch struct {
	Line  int // counted from 1
	Text  string
	Marks [][2]int
}

// Matches returns the lines of the text that hold most of what query asks for, at
// most n and in their order. Equal lines are returned once. Each is cut to about
// size bytes around what it holds.
func (h Hit) Matches(query string, n, size int) []LineMatch {
	lines := linesWith(h.Text, h.matches(query))
	var best []line
	covered, same := map[string]bool{}, map[string]bool{}
	for len(best) < n {
		at, most := -1, 0
		for i, l := range lines {
			worth := len(l.found) // different words, and those that no line has yet
			for term := range l.terms {
				worth += 1000
				if !covered[term] {
					worth += 2000
				}
			}
			if worth > most && !same[strings.TrimSpace(l.text)] {
				at, most = i, worth
			}
		}
		if at < 0 {
			break
		}
		same[strings.TrimSpace(lines[at].text)] = true
		for term := range lines[at].terms {
			covered[term] = true
		}
		best = append(best, lines[at])
	}
	sort.Slice(best, func(i, j int) bool { return best[i].n < best[j].n })
	var out []LineMatch
	for _, l := range best {
		s, marks := snippet(l.text, l.found, size)
		out = append(out, LineMatch{l.n, s, marks})
	}
	return out
}

// line is a line of a text with what was found in it.
type line struct {
	n     int
	text  string
	found []words.Word
	terms map[string]bool
}

// maxLines is how many lines with matches are looked at.
const maxLines = 2000

// linesWith returns the lines of text in which something was found. What begins
// in one line and ends in another belongs to neither.
func linesWith(text string, found []words.Word) (lines []line) {
	for n, from := 1, 0; len(found) > 0 && len(lines) < maxLines; n++ {
		to := len(text)
		if i := strings.IndexByte(text[from:], '\n'); i >= 0 {
			to = from + i
		}
		l := line{n: n, text: strings.TrimSuffix(text[from:to], "\r"), terms: map[string]bool{}}
		for len(found) > 0 && found[0].From < to {
			if w := found[0]; w.To <= to {
				l.terms[w.Term] = true
				w.From, w.To = w.From-from, w.To-from
				l.found = append(l.found, w)
			}
			found = found[1:]
		}
		if len(l.found) > 0 {
			lines = append(lines, l)
		}
		if from = to + 1; from > len(text) {
			break
		}
	}
	return lines
}

// phraseTerm is the term of the query as a whole. No word has it.
const phraseTerm = "\x00"

// maxPhrases is how often the query as a whole is looked for in a text.
const maxPhrases = 200

// matches returns where the text holds what query asks for: its words, those
// that were found in place of them, and the whole of it. They are ordered by
// where they begin, the longer first.
func (h Hit) matches(query string) []words.Word {
	text, want := h.Text, ranking.Ask(query, time.Time{}).Terms()
	var found []words.Word
	words.Each(text, func(w words.Word) {
		if of, ok := h.Stand[w.Term]; ok && !want[w.Term] {
			w.Term = of
		} else if !want[w.Term] {
			return
		}
		found = append(found, w)
	})
	l, only := asLiteral(query)
	if !only {
		l = literal{phrase: squash(query)}
	}
	if only && len(found) == 0 || len(l.phrase) > 2 && len(l.phrase) <= maxLiteral {
		for at, n := 0, 0; at < len(text) && n < maxPhrases; n++ {
			from, to := standsAt(text[at:], l)
			if from < 0 {
				break
			}
			found = append(found, words.Word{Term: phraseTerm, From: at + from, To: at + to})
			at += to
		}
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return a.From < b.From || a.From == b.From && a.To > b.To
	})
	return found
}

// snippet is Snippet for what was found in text.
func snippet(text string, found []words.Word, n int) (s string, marks [][2]int) {
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
			b.WriteString(oneSpaced(text[i:found[next].To]))
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
	s = strings.TrimRight(b.String(), " ")
	if to < len(text) {
		s += " …"
	}
	return s, marks
}

// oneSpaced puts a match that spans lines on one.
func oneSpaced(text string) string {
	if strings.ContainsAny(text, "\n\t\r") {
		return strings.Join(strings.Fields(text), " ")
	}
	return text
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
