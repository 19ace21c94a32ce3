package recall

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/storetest"
)

// TestLexer holds what a lexer remembers against what it would find out anew:
// words of every length, alike in their first bytes or in all but one, and
// more of them than it remembers.
func TestLexer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var all []string
	for len(all) < 2*maxSeen {
		w := strings.Repeat("abcdefgh", 3)[:1+rng.IntN(20)]
		at := rng.IntN(len(w))
		w = w[:at] + string(rune('a'+rng.IntN(26))) + w[at+1:]
		if rng.IntN(4) > 0 {
			w += fmt.Sprint(rng.IntN(maxSeen))
		}
		all = append(all, w, "ö"+w)
	}
	var l lexer
	for range 2 {
		for _, w := range all {
			text := ("x " + w + " y")[:2+len(w)+rng.IntN(3)] // also at its end
			got := l.look(text, 2, 2+len(w))
			if want := term(w); got.list != l.terms[want] || want != "" && got.list.term != want {
				t.Fatalf("%q is %+v, want %q", w, got.list, want)
			}
		}
	}
	if 2*l.n > len(l.short) || len(l.short) > 2*maxSeen || len(l.long) > maxSeen {
		t.Errorf("%d short words in %d places and %d long ones are remembered", l.n, len(l.short), len(l.long))
	}
}

// TestFull: a segment has no more postings than memory is set aside for, be
// its messages many or long.
func TestFull(t *testing.T) {
	many := newBuilder()
	for range maxDocs {
		if many.full() {
			t.Fatalf("full with %d messages", len(many.docs))
		}
		many.put(doc{}, nil)
	}
	if !many.full() {
		t.Errorf("not full with %d messages", len(many.docs))
	}
	long := newBuilder()
	terms := map[string]uint32{}
	for i := range 20_000 {
		terms[fmt.Sprint(i)] = 2
	}
	for !long.full() {
		long.put(doc{}, terms)
	}
	size := 0
	for _, l := range long.lex.terms {
		size += len(l.data)
	}
	if size != long.bytes || size < maxBytes || size > maxBytes+3*len(terms) {
		t.Errorf("full with %d bytes, of which it knows %d", size, long.bytes)
	}
}

// TestReadParts: what is read at once is bounded, and nothing is left out or
// read twice.
func TestReadParts(t *testing.T) {
	st := session.NewMemory()
	long := strings.Repeat("word ", partBytes/15) // a third
	var lines []string
	for range 7 {
		lines = append(lines, "user: "+long)
	}
	for range 2 * partSize {
		lines = append(lines, "user: short")
	}
	say(t, st, "s", lines...)
	last := session.Seq(1 + len(lines))
	for _, from := range []session.Seq{1, 2, 9} {
		next, n, largest := from, 0, 0
		err := readSaid(t.Context(), st, part{lag{id: "s", n: 4}, from, last}, func(p part, ss []said) error {
			if p.from != next || p.to < p.from || p.n != 4 {
				t.Errorf("from %d: the records %d to %d come after %d", from, p.from, p.to, next-1)
			}
			next = p.to + 1
			size := 0
			for _, s := range ss {
				size += len(s.text)
			}
			n, largest = n+len(ss), max(largest, size)
			return nil
		})
		want := len(lines)
		if from == 9 {
			want -= 7
		}
		if err != nil || next != last+1 || n != want || largest > partBytes+len(long) {
			t.Errorf("from %d: read up to %d, %d messages, at most %d bytes at once, %v; want %d and %d", from, next-1, n, largest, err, last, want)
		}
	}
}

// TestBlocks: every list is found in the block that its term leads to, and no
// other.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	b := newBuilder()
	for i := range 3000 {
		terms := map[string]uint32{"everywhere": 1, "": 1 + rng.Uint32N(300)}
		for range 10 {
			terms[fmt.Sprint(rng.IntN(1+i*i))] = 1 + rng.Uint32N(3)
		}
		b.put(doc{}, terms)
	}
	var firsts []string
	var blocks [][]byte
	err := b.blocks(func(first string, data []byte) error {
		if len(data) > blockSize {
			_, rest, _ := cut(data)
			if _, rest, ok := cut(rest); !ok || len(rest) > 0 {
				t.Errorf("a block of %d bytes holds more than one list", len(data))
			}
		}
		firsts, blocks = append(firsts, first), append(blocks, bytes.Clone(data))
		return nil
	})
	if err != nil || len(blocks) < 10 || len(blocks) > len(b.lex.terms)/20 {
		t.Fatalf("%d terms in %d blocks, %v", len(b.lex.terms), len(blocks), err)
	}
	for term, l := range b.lex.terms {
		n, ok := slices.BinarySearch(firsts, term)
		if !ok {
			n--
		}
		got, err := listOf(blocks[n], term)
		if want := l.append(nil); err != nil || !bytes.Equal(got, want) || l.size() != len(want) {
			t.Fatalf("%q: %v, %v, want %v", term, got, err, want)
		}
		if got, err := listOf(blocks[n], term+"x"); got != nil || err != nil {
			t.Fatalf("%qx: %v, %v", term, got, err)
		}
	}
}

// BenchmarkBuild measures how fast texts become postings.
func BenchmarkBuild(b *testing.B) {
	var all []said
	size := int64(0)
	for r := range storetest.Conversation(1, 4000) {
		if s, ok := speak(r); ok {
			all = append(all, s)
			size += int64(len(s.text))
		}
	}
	b.SetBytes(size)
	bl := newBuilder()
	for b.Loop() {
		if bl.full() {
			bl = newBuilder()
		}
		for _, s := range all {
			bl.add(1, s)
		}
	}
}
