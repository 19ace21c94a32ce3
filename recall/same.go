package recall

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/text"
	"goclaw/recall/internal/words"
	"goclaw/session"
)

// gathered are hits of which no two say the same. Others that say what a hit
// says are listed in its Also.
type gathered struct {
	limit int
	query string
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
	g.seen.query, g.seen.stand = g.query, h.Stand
	first := g.seen.find(h.Text, h.Role == Output)
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
	query string            // that they were found by
	stand map[string]string // what was found in place of its words
	alike map[string]int    // by what they say word for word
	texts []gist

	last gist // the one looked for last
	text string
}

// gist is what a text is compared by.
type gist struct {
	terms  map[string]bool // nil: too few to be compared
	output bool            // of a tool
	text   string
}

// Texts that differ say the same if they share nine tenths of their words, and
// have more words than a greeting.
const (
	sameShare    = 0.9
	sameWords    = 6
	failureWords = 4 // of an error, numbers aside
)

// sameText is how many bytes of a text are compared.
const sameText = 8000

// failure matches output that reports an error. It says the same if only
// numbers in it differ: times, addresses, ids.
var failure = regexp.MustCompile(`(?i)\b(error|errors|failed|failure|fatal|panic|exception|traceback|denied|refused|timed out|not found|cannot)\b|Error\b|Exception\b`)

// find returns which earlier text says the same, -1 if none does. output says
// that it is the output of a tool.
func (c *collapse) find(said string, output bool) int {
	said = text.Head(said, sameText)
	c.text, c.last = wordForWord(said), gist{output: output, text: said}
	if at, ok := c.alike[c.text]; ok {
		return at
	}
	c.last.terms = words.Set(said)
	failed := output && failure.MatchString(said)
	if failed {
		maps.DeleteFunc(c.last.terms, func(t string, _ bool) bool { return strings.ContainsAny(t, "0123456789") })
	}
	if n := len(c.last.terms); n < failureWords || n < sameWords && !failed {
		c.last.terms = nil
		return -1
	}
	return slices.IndexFunc(c.texts, func(o gist) bool { return c.same(o) })
}

// same reports whether o says the same as the last text.
func (c *collapse) same(o gist) bool {
	if o.terms == nil {
		return false
	}
	both, least := 0, min(len(c.last.terms), len(o.terms))
	for t := range c.last.terms {
		if o.terms[t] {
			both++
		}
	}
	switch all := len(c.last.terms) + len(o.terms) - both; {
	case float64(both) >= sameShare*float64(all):
		return true
	case !c.last.output || !o.output || float64(both) < sameShare*float64(least):
		return false
	}
	// A part of a file that was read again says the same if what was looked for
	// is the same in both.
	here, there := c.matching(c.last.text), c.matching(o.text)
	return here != "" && here == there
}

// matching returns the lines of a tool's output that match, without the numbers
// of lines that tools put before them.
func (c *collapse) matching(output string) string {
	var b strings.Builder
	for _, l := range (Hit{Text: output, Stand: c.stand}).Matches(c.query, 3, 200) {
		b.WriteString(strings.TrimSpace(lineNumber.ReplaceAllString(l.Text, "")) + "\n")
	}
	return b.String()
}

var lineNumber = regexp.MustCompile(`^\s*\d+\s*[→:|\t ]\s*`)

// put adds the text that was looked for last and not found.
func (c *collapse) put() {
	if c.alike == nil {
		c.alike = map[string]int{}
	}
	c.alike[c.text] = len(c.texts)
	c.texts = append(c.texts, c.last)
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
func oneEach(hits []Hit, limit int, query string, live func(session.ID) bool) []Hit {
	g := gathered{limit: limit, query: query}
	for _, h := range hits {
		g.add(h, live(h.Session))
	}
	return g.hits
}
