package ranking

import (
	"bytes"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/parts"
)

var (
	partLiteral = parts.New("literal match", parts.Search)
	partHeld    = parts.New("key words as they are written", parts.Search)
)

// ToRead is how many candidates are read, to see how literally they hold what
// is looked for.
const ToRead = 200

const (
	literalWeight = 2.0  // of a literal match, beside lexical/max
	literalInside = 0.85 // the same inside of longer words
	literalPart   = 0.8  // what a text counts at most that does not hold all of a query as it is
	literalKeys   = 0.2  // the same for key words, which may stand anywhere
	literalHeld   = 0.5  // what a text counts that holds all key words, as they are written
	minShare      = 0.5  // of a query that a text must hold
)

const (
	maxLiteral = 512 // bytes of a query that are compared
	minLiteral = 4
)

// Literal returns what tells how literally a text holds a query that looks for
// its words themselves; nil: that does not count for q.
func (q *Question) Literal(query string) *Literal {
	if !q.exact || !partLiteral.On() {
		return nil
	}
	l := &Literal{part: literalPart}
	l.query = slices.Clone(l.fold(query))
	if len(l.query) < minLiteral || len(l.query) > maxLiteral {
		return nil
	}
	fields := bytes.Fields(l.query)
	if q.keys && partHeld.On() {
		l.keys = fields
	}
	if q.keys {
		l.part = literalKeys
	}
	if mayName(query) {
		for _, by := range []string{"", "_", "-"} {
			l.names = append(l.names, bytes.Join(fields, []byte(by)))
		}
	}
	l.ids = map[uint32]int32{}
	for i := range len(l.query) - 2 {
		t := trigram(l.query[i:])
		if _, ok := l.ids[t]; !ok {
			l.ids[t] = int32(len(l.ids))
			l.may[t*2654435761>>20] = true
		}
	}
	return l
}

// Literal compares texts with a query, letter by letter.
type Literal struct {
	query []byte           // folded
	ids   map[uint32]int32 // of its trigrams
	may   [1 << 12]bool    // which hashes trigrams of it have
	text  []byte
	keys  [][]byte // key words
	names [][]byte // the query, as a program may write it as one name
	part  float64
	at    [][2]int32 // where the text has trigrams of it, and which
	count []int32    // how often each is in the window
}

func trigram(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }

// fold writes a text in lower case and with single spaces.
func (l *Literal) fold(text string) []byte {
	out := l.text[:0]
	space := true
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t' || c == '\r':
			if !space {
				out = append(out, ' ')
			}
			space = true
			i++
			continue
		case c >= 'A' && c <= 'Z':
			out = append(out, c|0x20)
			i++
		case c < utf8.RuneSelf:
			out = append(out, c)
			i++
		default:
			r, size := utf8.DecodeRuneInString(text[i:])
			out = utf8.AppendRune(out, unicode.ToLower(r))
			i += size
		}
		space = false
	}
	l.text = out
	return bytes.TrimRight(out, " ")
}

// Fit returns how much of the query a text holds in one place: 1 for all of it,
// as it is.
func (l *Literal) Fit(text string) float64 {
	b := l.fold(text)
	held := 0.0
	for at := 0; ; {
		i := bytes.Index(b[at:], l.query)
		if i < 0 {
			break
		}
		if at += i; apart(b, at) && apart(b, at+len(l.query)) {
			return 1
		}
		held = literalInside
		at++
	}
	if held > 0 {
		return held
	}
	if slices.ContainsFunc(l.names, func(n []byte) bool { return bytes.Contains(b, n) }) {
		return literalInside
	}
	return l.held(b) + l.share(b)
}

// held returns what b counts for the key words that it holds as they are
// written.
func (l *Literal) held(b []byte) float64 {
	if len(l.keys) == 0 {
		return 0
	}
	n := 0.0
	for _, k := range l.keys {
		for at := 0; ; at++ {
			i := bytes.Index(b[at:], k)
			if i < 0 {
				break
			}
			if at += i; apart(b, at) && apart(b, at+len(k)) {
				n++
				break
			}
		}
	}
	return literalHeld * math.Pow(n/float64(len(l.keys)), 4) // all of them: some are in many texts
}

// share returns what b counts for how much of the query it holds in one place.
func (l *Literal) share(b []byte) float64 {
	l.at = l.at[:0]
	for i := range len(b) - 2 {
		t := trigram(b[i:])
		if !l.may[t*2654435761>>20] {
			continue
		}
		if id, ok := l.ids[t]; ok {
			l.at = append(l.at, [2]int32{int32(i), id})
		}
	}
	if l.count == nil {
		l.count = make([]int32, len(l.ids))
	}
	clear(l.count)
	window, first, have, best := int32(2*len(l.query)+20), 0, 0, 0
	for _, a := range l.at {
		if l.count[a[1]]++; l.count[a[1]] == 1 {
			have++
		}
		for l.at[first][0] < a[0]-window {
			id := l.at[first][1]
			if l.count[id]--; l.count[id] == 0 {
				have--
			}
			first++
		}
		best = max(best, have)
	}
	share := float64(best) / float64(max(len(l.ids), 1))
	if share < minShare {
		return 0
	}
	return l.part * share * share
}

// apart reports whether no word goes on at i of b.
func apart(b []byte, i int) bool {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf }
	return i == 0 || i == len(b) || !letter(b[i-1]) || !letter(b[i])
}

// Reorder orders cands by how literally they hold the query, too; fits are
// those of the first of them.
func Reorder(cands []Candidate, fits []float64) {
	if len(cands) == 0 {
		return
	}
	best := max(cands[0].Score, 1e-9)
	for i, f := range fits {
		cands[i].Score += best * literalWeight * f
	}
	slices.SortStableFunc(cands, byScore)
}
