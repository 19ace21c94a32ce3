package recall

import (
	"strings"

	"goclaw/internal/text"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

// gathered are hits of which no two say the same. Others that say what a hit
// says are listed in its Also.
type gathered struct {
	limit int
	hits  []Hit
	seen  collapse
	// places are where each record is cited. A log that continues another has
	// copies of its records, which are cited once.
	places map[place]cited
}

// place is a record among those that say what a hit says.
type place struct {
	hit    int
	record string
}

// cited says where: -1 is the hit itself, others are places in Also.
type cited struct {
	at   int
	live bool
}

// full reports whether only what says the same as a hit is still taken.
func (g *gathered) full() bool { return len(g.hits) == g.limit }

// add takes h, or adds it to the hit that says the same. live says that its log
// is not a mirror: of one record in two logs, the live one is cited. It reports
// whether h is a separate hit.
func (g *gathered) add(h Hit, live bool) bool {
	if g.places == nil {
		g.places = map[place]cited{}
	}
	first := g.seen.find(h.Text)
	if first < 0 {
		if g.full() {
			return false
		}
		g.seen.put()
		g.places[place{len(g.hits), h.Record}] = cited{-1, live}
		g.hits = append(g.hits, h)
		return true
	}
	of := &g.hits[first]
	was, twice := g.places[place{first, h.Record}]
	switch {
	case !twice || h.Record == "":
		g.places[place{first, h.Record}] = cited{len(of.Also), live}
		of.Also = append(of.Also, h.Cite())
	case was.live || !live:
	case was.at < 0:
		h.Score, h.Also = of.Score, of.Also
		*of = h
		g.places[place{first, h.Record}] = cited{-1, true}
	default:
		of.Also[was.at] = h.Cite()
		g.places[place{first, h.Record}] = cited{was.at, true}
	}
	return false
}

// collapse finds texts that say the same.
type collapse struct {
	alike map[string]int    // by what they say word for word
	terms []map[string]bool // nil: too few to be compared

	text string // the last one looked for
	set  map[string]bool
}

// Texts that differ say the same if they share nine tenths of their words, and
// have more words than a greeting.
const (
	sameShare = 0.9
	sameWords = 6
)

// find returns which earlier text says the same, -1 if none does.
func (c *collapse) find(said string) int {
	said = text.Head(said, 8000)
	c.text, c.set = wordForWord(said), nil
	if at, ok := c.alike[c.text]; ok {
		return at
	}
	c.set = words.Set(said)
	if len(c.set) < sameWords {
		c.set = nil
		return -1
	}
	for i, o := range c.terms {
		both := 0
		for t := range c.set {
			if o[t] {
				both++
			}
		}
		if float64(both) >= sameShare*float64(len(c.set)+len(o)-both) {
			return i
		}
	}
	return -1
}

// put adds the text that was looked for last and not found.
func (c *collapse) put() {
	if c.alike == nil {
		c.alike = map[string]int{}
	}
	c.alike[c.text] = len(c.terms)
	c.terms = append(c.terms, c.set)
}

// wordForWord makes texts equal that differ only in case, space and
// punctuation.
func wordForWord(text string) string {
	var b strings.Builder
	for _, f := range strings.Fields(squash(text)) {
		if f = strings.TrimRight(strings.TrimLeft(f, "\"'“‘«¿¡"), ".,;:!?…\"'”’»。！？，、"); f != "" {
			b.WriteString(f)
			b.WriteByte(' ')
		}
	}
	if b.Len() == 0 {
		return text
	}
	return b.String()
}

// oneEach returns the hits without duplicates.
func oneEach(hits []Hit, limit int, live func(session.ID) bool) []Hit {
	g := gathered{limit: limit}
	for _, h := range hits {
		g.add(h, live(h.Session))
	}
	return g.hits
}
