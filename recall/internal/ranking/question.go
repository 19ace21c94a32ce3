package ranking

import (
	"slices"
	"strings"
	"time"
	"unicode"

	"goclaw/recall/internal/words"
)

// Question is a query as the ranking sees it.
type Question struct {
	terms []asked
	spans []words.Span
	keys  bool     // it is a few key words
	exact bool     // it looks for its words themselves
	ours  bool     // it is about the user: "what is my budget?"
	names []string // terms that are names of speakers; set by Look
	stand map[string]string
}

type asked struct {
	term   string
	word   string // as it is written, in lower case
	weight float64
	inDate bool     // it names a date, and there are others
	code   bool     // it is a name in a program, or a hash
	fixed  bool     // only the term itself is looked for
	parts  []string // terms of its parts, which are looked for if it is not found as it is
}

const (
	maxQuery   = 16 << 10 // bytes of a query that are looked at
	maxTerms   = 64       // different words of it that are searched for
	weakWeight = 0.5
	codeWeight = 2 // of a name in a program: a question that has one is about it
)

// weak are words that questions are made of.
var weak = words.Set(`kind type sort name many much often describe mention say tell think feel did does get like recently currently would
might likely considered consider person people thing things someone way specific particular according`)

// Ask reads a query. Nothing in it is syntax. Dates are understood as said at
// now.
func Ask(text string, now time.Time) *Question {
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	ends, _ := words.Asks(text)
	q := &Question{ours: ours(text), exact: isExact(text, ends), keys: areKeys(text), spans: words.Dates(text, now)}
	seen, others := map[string]bool{}, false
	words.Each(text, func(w words.Word) {
		if w.Inner {
			if n := len(q.terms) - 1; n >= 0 && q.terms[n].code && w.Term[0] > '9' { // a number is in many names
				q.terms[n].parts = append(q.terms[n].parts, w.Term)
			}
			return
		}
		if seen[w.Term] || len(q.terms) == maxTerms {
			return
		}
		seen[w.Term] = true
		a := asked{term: w.Term, weight: 1}
		a.word = strings.ToLower(text[w.From:w.To])
		a.code = w.Joined || words.HasParts(text[w.From:w.To])
		if w.Joined && !strings.HasPrefix(a.word, "--") {
			a.word = words.Join(a.word)
		}
		a.inDate = slices.ContainsFunc(q.spans, func(s words.Span) bool { return w.From >= s.At[0] && w.To <= s.At[1] })
		if weak[w.Term] && partWeak.On() {
			a.weight = weakWeight
		}
		if a.code && !q.exact {
			a.weight = codeWeight
		}
		others = others || !a.inDate
		q.terms = append(q.terms, a)
	})
	for i := range q.terms {
		q.terms[i].inDate = q.terms[i].inDate && others
	}
	q.join(text, seen)
	return q
}

// ours reports whether a question is about who asks it, and not about what
// somebody told them.
func ours(text string) bool {
	first, second := false, false
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
		switch w {
		case "i", "my", "me", "mine", "we", "our", "us":
			first = true
		case "you", "your":
			second = true
		}
	}
	return first && !second
}

// Spoken returns the text of a question as the people that it names would put
// it: they say "I" of themselves, and its vector is compared with what they
// said. Rank finds out whom it names.
func (q *Question) Spoken(text string) string {
	if len(q.names) == 0 || len(text) > maxQuery || !partSpoken.On() {
		return text
	}
	var b strings.Builder
	end := 0
	words.Each(text, func(w words.Word) {
		if !slices.Contains(q.names, w.Term) {
			return
		}
		b.WriteString(text[end:w.From])
		if name := text[w.From:w.To]; strings.HasSuffix(name, "s") && strings.ContainsAny(name, "'’") {
			b.WriteString("my")
		} else {
			b.WriteString("I")
		}
		end = w.To
	})
	return b.String() + text[end:]
}

// Stand returns the terms that stand for others of the question, those that
// begin with them or that they misspell, each with that one. Look finds them.
func (q *Question) Stand() map[string]string { return q.stand }

// Terms returns the terms that are searched for.
func (q *Question) Terms() map[string]bool {
	terms := map[string]bool{}
	for _, t := range q.terms {
		if !t.fixed {
			terms[t.term] = true
		}
	}
	return terms
}
