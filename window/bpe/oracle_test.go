package bpe

import (
	"sync"

	"github.com/dlclark/regexp2/v2"
	"github.com/tiktoken-go/tokenizer/codec"
)

// An oracle tokenises by the definition: the pattern is run by a regular
// expression engine, and the pair of lowest rank is merged until there is none.
//
// The library whose vocabulary it uses cannot be the oracle by itself: its
// pattern is compiled to Go, and that code ends a piece of space at the first
// line ("\n" "  \n") where the pattern says the last ("\n  \n").
type oracle struct {
	encoding *Encoding
	library  *codec.Codec
	pattern  *regexp2.Regexp
	ranks    map[string]uint32
}

const (
	cl100kPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	o200kPattern  = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?` +
		`|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

var oracles = sync.OnceValue(func() []*oracle {
	return []*oracle{
		newOracle(CL100K(), codec.NewCl100kBase(), cl100kPattern),
		newOracle(O200K(), codec.NewO200kBase(), o200kPattern),
	}
})

func newOracle(e *Encoding, library *codec.Codec, pattern string) *oracle {
	o := &oracle{
		encoding: e,
		library:  library,
		// The group keeps the engine from finding the library's compiled code.
		pattern: regexp2.MustCompile("(?:"+pattern+")", regexp2.None),
		ranks:   make(map[string]uint32),
	}
	for {
		t, err := library.Decode([]uint{uint(len(o.ranks))})
		if err != nil {
			return o
		}
		o.ranks[t] = uint32(len(o.ranks))
	}
}

// fatal is what the oracle needs of a testing.TB or a rapid.T.
type fatal interface{ Fatal(...any) }

func (o *oracle) pieces(t fatal, text string) []string {
	var pieces []string
	m, err := o.pattern.FindStringMatch(text)
	for ; m != nil && err == nil; m, err = o.pattern.FindNextMatch(m) {
		pieces = append(pieces, m.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	return pieces
}

func (o *oracle) tokens(t fatal, text string) []uint32 {
	var tokens []uint32
	for _, p := range o.pieces(t, text) {
		tokens = append(tokens, o.merge(p)...)
	}
	return tokens
}

func (o *oracle) merge(piece string) []uint32 {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		at, best := -1, uint32(none)
		for i := range len(parts) - 1 {
			if r, ok := o.ranks[parts[i]+parts[i+1]]; ok && r < best {
				at, best = i, r
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = append(parts[:at+1], parts[at+2:]...)
	}
	tokens := make([]uint32, len(parts))
	for i, p := range parts {
		tokens[i] = o.ranks[p]
	}
	return tokens
}
