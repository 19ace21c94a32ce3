package ranking

import (
	"slices"
	"strings"
	"unicode"

	"goclaw/internal/parts"
)

var partExact = parts.New("queries that are no questions", parts.Search)

// exactNear is what the messages around count where words themselves are looked
// for.
const exactNear = 0.25

// of returns w for a question. Where it looks for its words themselves, a
// message counts for how many of them it holds, whoever said it.
func (w *weights) of(q *Question) *weights {
	if !q.exact || w.exactB == 0 || !partExact.On() {
		return w
	}
	e := *w
	e.b, e.cover, e.user, e.tool = w.exactB, exactCover, 1, 1
	e.cosine = exactCosine
	for i := range e.near {
		if i != len(e.near)/2 {
			e.near[i] *= exactNear
		}
	}
	return &e
}

// exactCosine is the weight of the cosine there: what holds the words comes
// first.
const exactCosine = 0.3

// exactCover is how much of the score of a message depends on the share of the
// words that it holds.
const exactCover = 0.8

// asking are the words that questions and orders begin with.
var asking = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`who whom whose what when where why how which is are was were am do does did can could should would will has have had
may might must tell list summarize describe explain find give show remind according in on after before during`) {
		m[w] = true
	}
	return m
}()

// isExact reports whether a query looks for its words themselves: it has the
// marks of code, begins with a mark that stands alone, as a line does that was
// copied from a list, or is not put as a question. asks says that it ends in a
// question mark.
func isExact(text string, asks bool) bool {
	if strings.ContainsAny(text, "{}();=→`") {
		return true
	}
	first, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	if rest != "" && !strings.ContainsFunc(first, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		return true
	}
	return !asks && !asking[strings.ToLower(strings.Trim(first, ".,:;'\""))]
}

// maxKeys is how many key words somebody looks for.
const maxKeys = 5

// areKeys reports whether a query is a few words that need not stand together.
func areKeys(text string) bool {
	f := strings.Fields(text)
	return len(f) > 1 && len(f) <= maxKeys && !slices.ContainsFunc(f, func(w string) bool { return !plain(w) })
}
