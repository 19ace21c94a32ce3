package ranking

import (
	"math/bits"
	"slices"
	"strings"

	"goclaw/internal/near"
	"goclaw/internal/parts"
	"goclaw/recall/internal/words"
)

var (
	partBeginnings = parts.New("beginnings of words", parts.Search)
	partTypos      = parts.New("words with a typo", parts.Search)
	partNames      = parts.New("names written as several words", parts.Search)
)

// What a word counts that is not the one that was asked for, as a factor of how
// often it is there.
const (
	beginningFactor = 0.7  // it only begins with it
	typoFactor      = 0.5  // it is spelled in another way
	besideFactor    = 0.25 // it is a part of a name that may be misspelled
)

const (
	minBeginning = 4  // letters that a word is found by that begins with them
	minTypo      = 4  // letters of a term that may be misspelled
	twoTypos     = 8  // from how many letters on two are looked for
	maxVariants  = 64 // words that one word of a question stands for
	looseFrom    = 5  // with more than one letter in so many changed, it may be another word: submarine, summary
)

// variant is a list of a term that stands for one of the question.
type variant struct {
	list   []byte
	factor float32
}

// variants are those of one term by segment, how many docs they have, and the
// terms that stand for it.
type variants struct {
	by    [][]variant
	n     int
	near  bool // it is only found misspelled
	loose bool // so much that it is likely to be another word
	terms []string
}

func (v *variants) add(seg int, list []byte, n int, factor float32) {
	if list != nil {
		v.by[seg] = append(v.by[seg], variant{list, factor})
		v.n += n
	}
}

// variants finds a term of a question: as it is, else what begins with it, else
// what it may be a misspelling of. Names and hashes are also found by their
// beginnings where somebody wrote just those.
func (c *Corpus) variants(t asked) (variants, error) {
	v := variants{by: make([][]variant, len(c.Segs))}
	for i, s := range c.Segs {
		list, n, err := s.List(t.term)
		if err != nil {
			return v, err
		}
		v.add(i, list, n, 1)
	}
	if t.fixed || v.n > 0 && !t.code {
		return v, nil
	}
	there := v.n > 0
	if err := c.beginnings(t, &v); err != nil {
		return v, err
	}
	if !there {
		if err := c.unfinished(t, &v); err != nil {
			return v, err
		}
	}
	if v.n > 0 {
		return v, nil
	}
	return v, c.typos(t, &v)
}

// beginnings adds the terms that begin as t does.
func (c *Corpus) beginnings(t asked, v *variants) error {
	if len(t.word) < minBeginning || !partBeginnings.On() {
		return nil
	}
	seen := map[string]bool{}
	for i, s := range c.Segs {
		err := s.Range(t.word, func(term string, list []byte, n int) bool {
			if term == t.term {
				return true
			}
			seen[term] = true
			if len(seen) <= maxVariants {
				v.add(i, list, n, beginningFactor)
				v.terms = append(v.terms, strings.Clone(term))
			}
			return len(seen) <= maxVariants
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// endings are those of words whose stems lack them, or have others.
var endings = strings.Fields("ation ational ing ion ed er es ment ness able ible ive ity ally ful ous ence ance")

// unfinished adds the term of a word that t is the beginning of, if that term
// does not begin as t does: "configurati" is of configuration, whose term is
// configur.
func (c *Corpus) unfinished(t asked, v *variants) error {
	if !ascii(t.word) || !partBeginnings.On() {
		return nil
	}
	for n := len(t.word) - 1; n >= minBeginning; n-- {
		for _, e := range endings {
			if !strings.HasPrefix(e, t.word[n:]) {
				continue
			}
			term := words.Term(t.word[:n] + e)
			lists, docs, err := c.lists(term)
			if err != nil {
				return err
			}
			if docs == 0 || slices.Contains(v.terms, term) {
				continue
			}
			for i, list := range lists {
				v.add(i, list, 0, beginningFactor)
			}
			v.n += docs
			v.terms = append(v.terms, term)
		}
	}
	return nil
}

// typos adds the terms that t most likely misspells: those with the fewest
// letters to change.
func (c *Corpus) typos(t asked, v *variants) error {
	most := 1
	if len(t.term) >= twoTypos {
		most = 2
	}
	if len(t.term) < minTypo || !ascii(t.term) || isID(t.word) || !partTypos.On() {
		return nil
	}
	type at struct {
		seg, n int
		term   string
		list   []byte
	}
	best, found := most, map[int][]at{}
	offer := func(seg int, term string, list []byte, n int) {
		if d, ok := misspelt(t.term, term, best); ok {
			best = d
			found[d] = append(found[d], at{seg, n, strings.Clone(term), list})
		}
	}
	for i, s := range c.Segs {
		for _, start := range starts(t.term) {
			err := s.Range(start, func(term string, list []byte, n int) bool {
				offer(i, term, list, n)
				return true
			})
			if err != nil {
				return err
			}
		}
	}
	v.near = len(found[best]) > 0
	v.loose = v.near && best*looseFrom > len(t.term)
	for _, a := range found[best][:min(len(found[best]), maxVariants)] {
		v.add(a.seg, a.list, a.n, typoFactor)
		v.terms = append(v.terms, a.term)
	}
	return nil
}

// starts returns the first two letters of what w may misspell: its own, or
// those that it has if two of the first three were swapped, or one dropped or
// doubled.
func starts(w string) []string {
	s := []string{w[:2], w[1:2] + w[:1], w[:1] + w[2:3], w[1:3]}
	slices.Sort(s)
	return slices.Compact(s)
}

// misspelt returns how many letters differ, if not more than most.
func misspelt(a, b string, most int) (int, bool) {
	if len(a)-len(b) > most || len(b)-len(a) > most || bits.OnesCount64(letters(a)^letters(b)) > 2*most {
		return 0, false
	}
	d, ok := near.Distance(a, b)
	return d, ok && d <= most
}

// letters returns which letters and digits a word has, one bit each.
func letters(w string) (set uint64) {
	for i := range len(w) {
		set |= 1 << (w[i] & 63)
	}
	return set
}

func ascii(w string) bool { return strings.IndexFunc(w, func(r rune) bool { return r > 127 }) < 0 }

// isID reports whether a word is a number, or of the digits of one that is
// written in base 16: another one means something else.
func isID(w string) bool {
	digits := false
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
			digits = true
		case c < 'a' || c > 'f':
			return false
		}
	}
	return digits
}

const (
	maxJoined = 4 // words of a question that are tried as one
	maxName   = 8 // words of a query that may be one name, all of them
)

// mayName reports whether a query may be one name that is written as words.
func mayName(text string) bool {
	f := strings.Fields(text)
	return len(f) > 1 && len(f) <= maxName && partNames.On() && !slices.ContainsFunc(f, func(w string) bool { return !plain(w) })
}

// join adds to q names that are written as several words: "agent observer
// cancel" is agentObserverCancel.
func (q *Question) join(text string, seen map[string]bool) {
	if !partNames.On() {
		return
	}
	fields := strings.Fields(text)
	add := func(name string) {
		if term := words.Term(name); term != "" && !seen[term] && len(q.terms) < maxTerms {
			seen[term] = true
			q.terms = append(q.terms, asked{term: term, weight: 1, code: true, fixed: true})
		}
	}
	if mayName(text) {
		add(strings.Join(fields, ""))
	}
	for i := range fields {
		name := ""
		for j := i; j < min(i+maxJoined, len(fields)) && plain(fields[j]); j++ {
			if name += fields[j]; j > i {
				add(name)
			}
		}
	}
}

// plain reports whether a word has nothing but letters and digits of ASCII.
func plain(w string) bool {
	return strings.IndexFunc(w, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }) < 0
}
