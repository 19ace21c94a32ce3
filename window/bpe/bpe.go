// Package bpe counts tokens with the vocabularies cl100k_base and o200k_base,
// which are embedded: nothing is read or fetched at run time.
//
// Text is cut into pieces by the vocabulary's pattern (split.go, written by
// hand for speed) and each piece is merged by the vocabulary's ranks (merge.go,
// in time linear in the piece). The result is the one that the pattern and the
// ranks define. Special tokens such as <|endoftext|> are counted as the text
// that they are made of.
//
// A byte that is no part of valid UTF-8 counts as U+FFFD, which is what
// encoding/json makes of it on the way to a model.
package bpe

import (
	"strings"
	"sync"
	"unicode/utf8"
)

//go:generate go run gen.go

// An Encoding is a vocabulary with its pattern. It never changes once built and
// is safe for concurrent use.
type Encoding struct {
	name  string
	split func(text string, i int) int
	vocabulary
}

// CL100K returns the encoding cl100k_base, built by the first call.
func CL100K() *Encoding { return cl100k() }

// O200K returns the encoding o200k_base, built by the first call.
func O200K() *Encoding { return o200k() }

var (
	cl100k = sync.OnceValue(func() *Encoding { return build("cl100k_base", splitCL100K, cl100kData) })
	o200k  = sync.OnceValue(func() *Encoding { return build("o200k_base", splitO200K, o200kData) })
)

// Lazy is an encoding that is built when it first counts: Lazy(O200K) costs
// nothing until then.
type Lazy func() *Encoding

// Count returns the number of tokens in text.
func (l Lazy) Count(text string) int { return l().Count(text) }

func build(name string, split func(string, int) int, data []byte) *Encoding {
	buildClasses()
	return &Encoding{name, split, decodeVocabulary(data)}
}

// String is the name of the vocabulary.
func (e *Encoding) String() string { return e.name }

// Count returns the number of tokens in text. It does not allocate, unless text
// is invalid UTF-8 or a single piece of it is longer than any piece before.
func (e *Encoding) Count(text string) int {
	text = valid(text)
	m := mergers.Get().(*merger)
	count := 0
	for i := 0; i < len(text); {
		end := e.split(text, i)
		piece := text[i:end]
		if t, n := e.longest(piece); n == len(piece) {
			count++
		} else {
			count += len(m.merge(&e.vocabulary, piece, t))
		}
		i = end
	}
	m.release()
	return count
}

// Tokens returns the ranks of the tokens in text.
func (e *Encoding) Tokens(text string) []uint32 {
	text = valid(text)
	m := mergers.Get().(*merger)
	var tokens []uint32
	for i := 0; i < len(text); {
		end := e.split(text, i)
		piece := text[i:end]
		if t, n := e.longest(piece); n == len(piece) {
			tokens = append(tokens, t)
		} else {
			tokens = append(tokens, m.merge(&e.vocabulary, piece, t)...)
		}
		i = end
	}
	m.release()
	return tokens
}

// Prefix returns the first n tokens of text, or a little less: the cut is moved
// back to where a rune begins and the result, counted by itself, has at most n
// tokens. (A cut can change how the text before it is tokenised.)
func (e *Encoding) Prefix(text string, n int) string {
	if n <= 0 {
		return ""
	}
	if !utf8.ValidString(text) {
		// Runes correspond one to one, bytes do not.
		cut := 0
		for range e.Prefix(valid(text), n) {
			_, w := utf8.DecodeRuneInString(text[cut:])
			cut += w
		}
		return text[:cut]
	}
	cut := e.cut(text, n)
	for cut < len(text) && (!utf8.RuneStart(text[cut]) || e.Count(text[:cut]) > n) {
		cut--
	}
	return text[:cut]
}

// cut is the end of the n-th token of text, or of text if that is shorter.
func (e *Encoding) cut(text string, n int) int {
	m := mergers.Get().(*merger)
	defer m.release()
	for i := 0; i < len(text); {
		end := e.split(text, i)
		piece := text[i:end]
		if t, l := e.longest(piece); l == len(piece) {
			n--
		} else if tokens := m.merge(&e.vocabulary, piece, t); len(tokens) < n {
			n -= len(tokens)
		} else {
			for _, t := range tokens[:n] {
				i += int(e.lengths[t])
			}
			return i
		}
		if n == 0 {
			return end
		}
		i = end
	}
	return len(text)
}

// valid is text with every invalid byte replaced by U+FFFD. It is byte by byte,
// where strings.ToValidUTF8 replaces a run of them with one.
func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/2)
	for _, r := range text {
		b.WriteRune(r)
	}
	return b.String()
}
