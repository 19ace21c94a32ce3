package recall

import (
	"regexp"
	"slices"
	"strings"

	"goclaw/recall/internal/notes"
	"goclaw/recall/internal/words"
)

// How many hits are looked at for repetitions, and how many words of another one
// an answer must hold to repeat it.
const (
	maxSources  = 50
	sourceWords = 4
)

// citation is what a model was given as the place of something that it repeats.
var citation = regexp.MustCompile(`[0-9A-Za-z-]+#\d+|[^\s()\[\]]+\.\w+:\d+`)

// sourcesFirst puts what a model repeats before its answer that repeats it: an
// answer that cites another hit, or holds all of it word for word and was given
// later. The order is otherwise kept.
func sourcesFirst(hits []Hit) {
	n := min(len(hits), maxSources)
	if !slices.ContainsFunc(hits[:n], func(h Hit) bool { return h.Role == Assistant }) {
		return
	}
	said := map[string]string{} // word for word, by citation
	for _, h := range hits[:n] {
		if len(h.Text) <= sameText {
			said[h.Cite()] = " " + wordForWord(notes.WithoutMark(h.Text))
		}
	}
	repeats := func(answer, source Hit) bool {
		if answer.Role != Assistant || source.File == "" && !source.Time.Before(answer.Time) {
			return false
		}
		if slices.Contains(citation.FindAllString(answer.Text, -1), source.Cite()) {
			return true
		}
		held := said[source.Cite()]
		return strings.Count(held, " ") > sourceWords && strings.Contains(said[answer.Cite()], held) && !asks(source.Text)
	}
	moved := false
	for i := 1; i < n; i++ {
		for at := range i {
			if repeats(hits[at], hits[i]) {
				h := hits[i]
				copy(hits[at+1:i+1], hits[at:i])
				hits[at], moved = h, true
				break
			}
		}
	}
	if moved {
		raise(hits)
	}
}

// asks reports whether a text is a question, which tells nothing.
func asks(text string) bool {
	ends, _ := words.Asks(text)
	return ends
}

// raise sees to it that no hit has less than one of its kind after it.
func raise(hits []Hit) {
	best := map[bool]float64{}
	for i, h := range slices.Backward(hits) {
		note := h.File != ""
		best[note] = max(best[note], h.Score)
		hits[i].Score = best[note]
	}
}
