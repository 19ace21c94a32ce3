package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/naming"
	"goclaw/session"
)

// What is gone through for a query that the index cannot answer, and how much
// of one session: such a search reads the log.
const (
	maxScanned    = 20_000 // records
	maxScannedOne = 5_000
	maxLiteral    = 1000 // bytes of the query
)

// literal is a query without a word that is indexed, such as "to be or not to
// be", or an emoji: it is looked for as it stands.
type literal struct {
	phrase  string
	symbols []rune // any of which will do, if there are no letters
}

// asLiteral returns how to look for text as it stands, and whether that is the
// only way.
func asLiteral(text string) (literal, bool) {
	if text = squash(text); text == "" || len(text) > maxLiteral {
		return literal{}, false
	}
	indexed := false
	words(text, func(word) { indexed = true })
	if indexed {
		return literal{}, false
	}
	l := literal{phrase: text}
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return literal{phrase: text}, true
		}
		if unicode.Is(unicode.So, r) {
			l.symbols = append(l.symbols, r)
		}
	}
	return l, true
}

// squash makes texts comparable: in lower case, with single spaces, and
// without the marks that only say how an emoji is drawn.
func squash(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == '\uFE0F' || r == '\uFE0E' {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// fits says how well a text fits: 2 if it holds the phrase, 1 if it holds one
// of the symbols, 0 if neither.
func (l literal) fits(text string) float64 {
	text = squash(text)
	if from, _ := wordsAt(text, l.phrase); from >= 0 {
		return 2
	}
	if slices.ContainsFunc(l.symbols, func(r rune) bool { return strings.ContainsRune(text, r) }) {
		return 1
	}
	return 0
}

// wordsAt returns where phrase stands in text, not within a word; -1 if it
// does not.
func wordsAt(text, phrase string) (from, to int) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	begin, _ := utf8.DecodeRuneInString(phrase)
	end, _ := utf8.DecodeLastRuneInString(phrase)
	for at := 0; phrase != ""; {
		i := strings.Index(text[at:], phrase)
		if i < 0 {
			break
		}
		from, to = at+i, at+i+len(phrase)
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		after, _ := utf8.DecodeRuneInString(text[to:])
		if !(inWord(begin) && inWord(before)) && !(inWord(end) && inWord(after)) {
			return from, to
		}
		at = to
	}
	return -1, -1
}

// standsAt returns where l stands in a text, as it is written there; -1 if it
// does not.
func standsAt(text string, l literal) (from, to int) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) { // a letter that takes more room in lower case
		lower = text
	}
	if from, to = wordsAt(lower, l.phrase); from >= 0 {
		return from, to
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return slices.Contains(l.symbols, r) }); i >= 0 {
		_, size := utf8.DecodeRuneInString(text[i:])
		return i, i + size
	}
	return -1, -1
}

// scanMemory looks for l in the memory files.
func (ix *Index) scanMemory(q Query, l literal) []Hit {
	var hits []Hit
	for _, f := range ix.memory.order {
		for i, n := range f.notes {
			d := f.seg.docs[i]
			if (!q.Since.IsZero() && !f.since(d, q.Since)) || (!q.Until.IsZero() && d.time >= q.Until.Unix()) {
				continue
			}
			if score := l.fits(n.text); score > 0 {
				hits = append(hits, ix.noteHit(f, i, score, q))
			}
		}
	}
	return oneEach(newestFirst(hits, len(hits)), q.Limit, func(session.ID) bool { return true })
}

// scanSessions looks for l in the transcripts, those used last first, and says
// if it did not go through all of them.
func (ix *Index) scanSessions(ctx context.Context, q Query, l literal, res *Result) ([]Hit, error) {
	var hits []Hit
	infos := map[session.ID]session.Info{}
	scanned, whole := 0, true
	for in, err := range ix.o.Store.List(ctx, session.Query{ID: q.Session, Key: q.Key, Agent: q.Agent}) {
		if err != nil {
			return nil, err
		}
		if scanned >= maxScanned {
			whole = false
			break
		}
		infos[in.ID] = in
		from := max(0, in.Last-maxScannedOne)
		whole = whole && from == 0
		for r, err := range ix.o.Store.Read(ctx, in.ID, from) {
			var d *session.Damage
			if errors.As(err, &d) || errors.Is(err, session.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			scanned++
			s, ok := speak(r)
			if !ok || q.Role != "" && s.role != q.Role || !q.Since.IsZero() && s.at.Before(q.Since) || !q.Until.IsZero() && !s.at.Before(q.Until) {
				continue
			}
			if r.Seq == q.seq && in.ID == q.without {
				continue
			}
			if score := l.fits(s.text); score > 0 {
				hits = append(hits, Hit{Session: in.ID, Key: in.Key, Seq: r.Seq, Record: r.ID, Role: s.role, Time: s.at, Text: s.text, Score: score})
			}
		}
		if len(hits) > 20*MaxLimit {
			hits = newestFirst(hits, 10*MaxLimit)
		}
	}
	if !whole {
		res.Incomplete = append(res.Incomplete, fmt.Sprintf("no word of the query is in the index: it was looked for as it stands, in the newest %d records", scanned))
	}
	hits = oneEach(newestFirst(hits, len(hits)), q.Limit, func(id session.ID) bool { return !infos[id].Mirror() })
	for i, h := range hits {
		hits[i].Title = naming.Title(ctx, ix.o.Store, infos[h.Session])
	}
	return hits, nil
}

// newestFirst returns the best n, of equals the newest.
func newestFirst(hits []Hit, n int) []Hit {
	slices.SortStableFunc(hits, func(a, b Hit) int {
		if a.Score != b.Score {
			return cmp.Compare(b.Score, a.Score)
		}
		return b.Time.Compare(a.Time)
	})
	return hits[:min(n, len(hits))]
}
