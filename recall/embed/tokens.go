package embed

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// unknown is the piece for characters that are in no other.
const unknown = 0

// space is how the vocabulary writes the beginning of a word. No piece has it
// anywhere else.
const space = "▁"

// vocabulary is the pieces as a trie in an array. A place holds the label of
// the byte that leads to it, in its lowest 8 bits, and where its children are:
// that of byte b is b places further. gen.go makes it.
type vocabulary struct {
	places []uint32
	ids    []uint16 // of the piece that ends in a place, 0 if none does
	scores []float32
}

// tokens cuts text into the pieces that are most likely together, as
// SentencePiece does with a unigram model, and returns their numbers: at most so
// many.
func (v *vocabulary) tokens(text string, most int) []int {
	text = norm.NFKC.String(clip(text, 16*most))
	if text == "" {
		return nil
	}
	text = space + strings.ReplaceAll(text, " ", space)
	var w word
	var ids []int
	for text != "" && len(ids) < most {
		end := len(text)
		if i := strings.Index(text[len(space):], space); i >= 0 {
			end = i + len(space)
		}
		ids = w.cut(v, text[:end], ids)
		text = text[end:]
	}
	return ids[:min(len(ids), most)]
}

// word is the ways to cut a word.
type word struct {
	ends  []end
	score float32 // of all words before
}

// end is the likeliest way to a place in a word.
type end struct {
	score float32
	from  int32
	piece uint16
}

// cut appends the pieces of a word to ids.
func (w *word) cut(v *vocabulary, text string, ids []int) []int {
	if cap(w.ends) <= len(text) {
		w.ends = make([]end, len(text)+64)
	}
	ends := w.ends[:len(text)+1]
	clear(ends)
	ends[0].score = w.score
	arrive := func(start, stop int, score float32, piece uint16) {
		score += ends[start].score
		if e := &ends[stop]; e.score == 0 || score >= e.score {
			*e = end{score, int32(start), piece}
		}
	}
	for i := 0; i < len(text); {
		_, size := utf8.DecodeRuneInString(text[i:])
		found := false
		for at, j := uint32(0), i; j < len(text); j++ {
			b := uint32(text[j])
			at = v.places[at]>>8 + b
			if b == 0 || v.places[at]&0xff != b {
				break
			}
			if id := v.ids[at]; id != 0 {
				found = true
				arrive(i, j+1, v.scores[id], id)
			}
		}
		if !found {
			arrive(i, i+size, 0, unknown)
		}
		i += size
	}
	w.score = ends[len(text)].score
	first := len(ids)
	for at := len(text); at > 0; at = int(ends[at].from) {
		ids = append(ids, int(ends[at].piece))
	}
	for i, j := first, len(ids)-1; i < j; i, j = i+1, j-1 {
		ids[i], ids[j] = ids[j], ids[i]
	}
	// One for all unknown characters that are adjacent.
	kept := first
	for _, id := range ids[first:] {
		if id != unknown || kept == 0 || ids[kept-1] != unknown {
			ids[kept] = id
			kept++
		}
	}
	return ids[:kept]
}

// clip keeps as many bytes of a text as are enough.
func clip(text string, enough int) string {
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "")
}
