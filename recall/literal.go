package recall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/recall/internal/words"
	"goclaw/session"
)

// How much is read for a query that the index cannot answer.
const (
	maxScanned    = 20_000 // records
	maxScannedOne = 5_000  // of one session
	maxLiteral    = 1000   // bytes of the query
)

// literal is a query without a word that is indexed, such as "to be or not to
// be", or an emoji: it is looked for literally.
type literal struct {
	phrase  string
	symbols []rune // any of which will do, if there are no letters
}

// asLiteral returns how to look for text literally, and whether that is the
// only way.
func asLiteral(text string) (literal, bool) {
	if text = squash(text); text == "" || len(text) > maxLiteral {
		return literal{}, false
	}
	if len(words.Set(text)) > 0 {
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

// fits says how well a text fits: 1 if it holds the phrase, 0.5 if it holds one
// of the symbols, 0 if neither.
func (l literal) fits(text string) float64 {
	text = squash(text)
	if from, _ := wordsAt(text, l.phrase); from >= 0 {
		return 1
	}
	if slices.ContainsFunc(l.symbols, func(r rune) bool { return strings.ContainsRune(text, r) }) {
		return 0.5
	}
	return 0
}

// wordsAt returns where phrase occurs in text as whole words; -1 if it does
// not.
func wordsAt(text, phrase string) (from, to int) {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	start, _ := utf8.DecodeRuneInString(phrase)
	end, _ := utf8.DecodeLastRuneInString(phrase)
	for at := 0; phrase != ""; {
		i := strings.Index(text[at:], phrase)
		if i < 0 {
			break
		}
		from, to = at+i, at+i+len(phrase)
		before, _ := utf8.DecodeLastRuneInString(text[:from])
		after, _ := utf8.DecodeRuneInString(text[to:])
		if !(inWord(start) && inWord(before)) && !(inWord(end) && inWord(after)) {
			return from, to
		}
		at = to
	}
	return -1, -1
}

// standsAt returns where l occurs in a text; -1 if it does not.
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

// scanMemory looks for the query in the memory files, literally.
func (s *search) scanMemory() []Hit {
	var hits []Hit
	for _, f := range s.memory.All {
		for i, n := range f.Notes {
			if !f.Within(i, s.q.Since, s.q.Until) {
				continue
			}
			if score := s.literal.fits(n.Text); score > 0 {
				hits = append(hits, s.noteHit(f, i, score))
			}
		}
	}
	return oneEach(newestFirst(hits, len(hits)), s.q.Limit, s.q.Text, func(session.ID) bool { return true })
}

// scanSessions looks for the query in the transcripts, literally, the sessions
// used last first, and says if it did not go through all of them.
func (s *search) scanSessions(ctx context.Context) ([]Hit, error) {
	var hits []Hit
	infos := map[session.ID]session.Info{}
	scanned, whole := 0, true
	for in, err := range s.q.sessions(ctx, s.o.Store) {
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
		calls := toolCalls{}
		for r, err := range session.Joined(s.o.Store.Read(ctx, in.ID, from)) {
			var d *session.Damage
			if errors.As(err, &d) || errors.Is(err, session.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			scanned++
			text, ok := speak(r)
			text.tools, _ = calls.of(r)
			if !ok || !s.q.wants(text) || r.Seq == s.q.seq && in.ID == s.q.without {
				continue
			}
			if score := s.literal.fits(text.text); score > 0 {
				h := text.hit(in, r.ID)
				h.Score = score
				hits = append(hits, h)
			}
		}
		if len(hits) > 20*MaxLimit {
			hits = newestFirst(hits, 10*MaxLimit)
		}
	}
	if !whole {
		s.res.Incomplete = append(s.res.Incomplete, fmt.Sprintf("no word of the query is in the index: it was looked for as it stands, in the newest %d records", scanned))
	}
	hits = oneEach(newestFirst(hits, len(hits)), s.q.Limit, s.q.Text, func(id session.ID) bool { return !infos[id].Mirror() })
	for i, h := range hits {
		hits[i].Title = s.title(ctx, infos[h.Session])
	}
	return hits, nil
}

// newestFirst returns the best n, of equals the newest.
func newestFirst(hits []Hit, n int) []Hit {
	sort.SliceStable(hits, func(i, j int) bool {
		a, b := &hits[i], &hits[j]
		return a.Score > b.Score || a.Score == b.Score && a.Time.After(b.Time)
	})
	return hits[:min(n, len(hits))]
}
