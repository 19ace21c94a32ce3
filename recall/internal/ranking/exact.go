package ranking

import (
	"slices"
	"strings"

	"goclaw/internal/parts"
)

var partExact = parts.New("words that are looked for themselves", parts.Search)

// of returns w for a question. Where it looks for its words themselves, a
// message counts for what it holds, whoever said it.
func (w *weights) of(q *Question) *weights {
	if !q.exact || !partExact.On() {
		return w
	}
	e := *w
	if w.exactB > 0 {
		e.b, e.user, e.tool = w.exactB, 1, 1
	}
	for i := range e.near {
		if i != 2 {
			e.near[i] *= exactNear
		}
	}
	e.cover = w.exactCover
	return &e
}

// asking are the words that questions and orders begin with.
var asking = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`who whom whose what when where why how which is are was were am do does did can could should would will has have had
may might must tell list summarize describe explain find give show remind according in on after before during`) {
		m[w] = true
	}
	return m
}()

// isExact reports whether a query looks for its words themselves: it is not
// put as a question. asks says that it ends in a question mark.
func isExact(text string, asks bool) bool {
	if codeMarks && strings.ContainsAny(text, "{}();=→`") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	return !asks && !asking[strings.ToLower(strings.Trim(first, ".,:;'\""))]
}

var codeMarks = true

// areKeys reports whether a query is a few words that need not stand together.
func areKeys(text string) bool {
	f := strings.Fields(text)
	return len(f) > 1 && len(f) <= 5 && !slices.ContainsFunc(f, func(w string) bool { return !plain(w) })
}

var exactNear = 0.25
