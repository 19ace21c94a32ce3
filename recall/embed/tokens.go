package embed

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// reserved is how many pieces at the beginning of the vocabulary are in no text.
const reserved = 6

// unknown is the piece for characters that are in no other.
const unknown = 0

// space is how the vocabulary writes the beginning of a word.
const space = '▁'

// trie is the vocabulary by its characters.
type trie struct {
	next  map[rune]*trie
	id    int // of the piece that ends here, 0 if none does
	score float32
}

func (t *trie) insert(piece string, score float32, id int) {
	for _, r := range piece {
		if t.next == nil {
			t.next = map[rune]*trie{}
		}
		if t.next[r] == nil {
			t.next[r] = &trie{}
		}
		t = t.next[r]
	}
	t.id, t.score = id, score
}

// tokens cuts text into the pieces that are most likely together, as
// SentencePiece does with a unigram model, and returns their numbers.
func (m *Model) tokens(text string) []int {
	text = norm.NFKC.String(clip(text))
	if text == "" {
		return nil
	}
	chars := append([]rune{space}, []rune(strings.ReplaceAll(text, " ", string(space)))...)
	// best is the score of the likeliest way to a place, id the piece it ends in.
	best, id := make([]float32, len(chars)+1), make([]int, len(chars)+1)
	from := make([]int, len(chars)+1)
	arrive := func(start, end int, score float32, piece int) {
		score += best[start]
		if best[end] == 0 || score >= best[end] {
			best[end], id[end], from[end] = score, piece, start
		}
	}
	for i := range chars {
		found := false
		node := m.pieces
		for j := i; j < len(chars); j++ {
			if node = node.next[chars[j]]; node == nil {
				break
			}
			if node.id != 0 {
				found = true
				arrive(i, j+1, node.score, node.id)
			}
		}
		if !found {
			arrive(i, i+1, 0, unknown)
		}
	}
	var back []int
	for at := len(chars); at > 0; at = from[at] {
		if id[at] == unknown && len(back) > 0 && back[len(back)-1] == unknown {
			continue // one for all that are adjacent
		}
		back = append(back, id[at])
	}
	slices.Reverse(back)
	return back[:min(len(back), maxTokens)]
}

// clip keeps as much of a text as can count.
func clip(text string) string {
	const enough = 16 * maxTokens
	if len(text) <= enough {
		return text
	}
	return strings.ToValidUTF8(text[:enough], "")
}
