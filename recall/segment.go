package recall

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// segment is a part of the index: docs in the order of their groups and
// places, and for each term where it is. It does not change.
type segment struct {
	seg      int64 // its number in the database; 0: it is in memory only
	docs     []doc
	words    int                               // in all docs
	postings func(term string) ([]byte, error) // as encoded, nil if there is none
	talks    []talk                            // by group; made when it is first asked for
}

// talk counts what people and models say in a group, and how much of it begins
// with what could be a name.
type talk struct {
	group       uint32
	named, said int
}

// talkOf counts what is said in a group.
func (s *segment) talkOf(group uint32) talk {
	if s.talks == nil {
		for i := range s.docs {
			d := &s.docs[i]
			if d.flags&(flagTool|flagSummary) != 0 {
				continue
			}
			if n := len(s.talks); n == 0 || s.talks[n-1].group != d.group {
				s.talks = append(s.talks, talk{group: d.group})
			}
			t := &s.talks[len(s.talks)-1]
			t.said++
			if d.flags&flagNamed != 0 {
				t.named++
			}
		}
	}
	i, ok := slices.BinarySearchFunc(s.talks, group, func(t talk, group uint32) int { return cmp.Compare(t.group, group) })
	if !ok {
		return talk{}
	}
	return s.talks[i]
}

// builder makes a segment.
type builder struct {
	lex   lexer // its terms are the segment's
	docs  []doc
	words int
	bytes int // of all lists

	said []*list // by the doc that is being added, word for word
}

// list is the encoded postings of one term: how many docs have it, then for
// each the distance to the one before, with a bit that tells whether a count
// follows.
type list struct {
	term string
	data []byte
	n    int32
	last int32 // doc, plus 1

	at    int32  // the doc, plus 1, that count is of
	count uint32 // how often that doc has the term
}

func newBuilder() *builder { return &builder{} }

// add adds what is behind all that was added: groups and places ascend.
func (b *builder) add(group uint32, s said) {
	at := int32(len(b.docs) + 1)
	b.said = b.said[:0]
	d := b.lex.digest(s, func(t *list) { b.said = append(b.said, t) })
	d.group = group
	b.docs = append(b.docs, d)
	b.words += int(d.words)
	// The words first and then their lists: neither waits for the other to
	// come into the cache.
	once := b.said[:0]
	for _, l := range b.said {
		if l.at != at {
			l.at, l.count = at, 0
			once = append(once, l)
		}
		l.count++
	}
	for _, l := range once {
		b.bytes += l.post(int(at), l.count)
	}
}

func (b *builder) put(d doc, terms map[string]uint32) {
	b.docs = append(b.docs, d)
	b.words += int(d.words)
	for t, n := range terms {
		b.bytes += b.lex.list(t).post(len(b.docs), n)
	}
}

// full reports whether b is as large as a segment may be.
func (b *builder) full() bool { return len(b.docs) >= maxDocs || b.bytes >= maxBytes }

// post adds the doc at, counted from 1, that has the term n times, and returns
// how many bytes that takes.
func (l *list) post(at int, n uint32) int {
	before := len(l.data)
	gap := uint64(at-int(l.last)) << 1
	if n > 1 {
		l.data = binary.AppendUvarint(l.data, gap|1)
		l.data = binary.AppendUvarint(l.data, uint64(n))
	} else {
		l.data = binary.AppendUvarint(l.data, gap)
	}
	l.last = int32(at)
	l.n++
	return len(l.data) - before
}

// segment returns what was built, in memory.
func (b *builder) segment() *segment {
	return &segment{docs: b.docs, words: b.words, postings: func(t string) ([]byte, error) {
		if l := b.lex.terms[t]; l != nil {
			return l.append(nil), nil
		}
		return nil, nil
	}}
}

// size is how many bytes append appends.
func (l *list) size() int { return uvarintLen(uint64(l.n)) + len(l.data) }

// append appends the list as it is stored.
func (l *list) append(b []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(l.n)), l.data...)
}

func uvarintLen(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

var errPostings = errors.New("recall: postings that cannot be read")

// posting is one doc of a list, and how often it has the term.
type posting struct {
	at int32
	n  uint32
}

// decode appends what data holds to ps. at is the number of docs that there
// are.
func decode(data []byte, docs int, ps []posting) ([]posting, error) {
	count, size := binary.Uvarint(data)
	if size <= 0 || count > uint64(docs) {
		return ps, errPostings
	}
	data = data[size:]
	at := -1
	for len(data) > 0 {
		gap := uint64(data[0])
		size := 1
		if gap >= 0x80 {
			if gap, size = binary.Uvarint(data); size <= 0 {
				return ps, errPostings
			}
		}
		data = data[size:]
		n := uint64(1)
		if gap&1 == 1 {
			if n, size = binary.Uvarint(data); size <= 0 || n > 1<<31 {
				return ps, errPostings
			}
			data = data[size:]
		}
		if gap>>1 == 0 || gap>>1 > uint64(docs-1-at) {
			return ps, errPostings
		}
		at += int(gap >> 1)
		count--
		ps = append(ps, posting{int32(at), uint32(n)})
	}
	if count != 0 {
		return ps, errPostings
	}
	return ps, nil
}

// encodeDocs writes docs: columns of differences, which are small.
func encodeDocs(docs []doc) []byte {
	b := binary.AppendUvarint(nil, uint64(len(docs)))
	var last doc
	for _, d := range docs {
		if d.group != last.group {
			last.seq = 0
		}
		b = binary.AppendUvarint(b, uint64(d.group-last.group))
		b = binary.AppendUvarint(b, uint64(d.seq-last.seq))
		b = binary.AppendVarint(b, d.time-last.time)
		b = binary.AppendUvarint(b, uint64(d.words))
		b = append(b, d.flags)
		last = d
	}
	return b
}

var errDocs = errors.New("recall: a table of messages that cannot be read")

func decodeDocs(b []byte) ([]doc, error) {
	bad := false
	num := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	n := num()
	if n > uint64(len(b)) { // each takes more than a byte
		return nil, errDocs
	}
	docs := make([]doc, 0, n)
	var last doc
	for range n {
		g := uint32(num())
		if g != 0 {
			last.seq = 0
		}
		last.group += g
		last.seq += uint32(num())
		t, size := binary.Varint(b)
		if size <= 0 {
			return nil, errDocs
		}
		b = b[size:]
		last.time += t
		last.words = uint32(num())
		if bad || len(b) == 0 {
			return nil, errDocs
		}
		last.flags = b[0]
		b = b[1:]
		docs = append(docs, last)
	}
	if len(b) != 0 {
		return nil, errDocs
	}
	return docs, nil
}

// blockSize is how much of a page of the database a row can have.
const blockSize = 4000

// blocks calls f for the lists of b, packed: each block has the lists of some
// terms, ascending, with length and bytes of the term and of the list. first
// is the first term of the block. data is valid until f returns.
func (b *builder) blocks(f func(first string, data []byte) error) error {
	terms := make([]string, 0, len(b.lex.terms))
	for t := range b.lex.terms {
		terms = append(terms, t)
	}
	slices.Sort(terms)
	first, data := "", make([]byte, 0, 2*blockSize)
	for _, t := range terms {
		l := b.lex.terms[t]
		if size := len(t) + len(l.data) + 3*binary.MaxVarintLen32; len(data) > 0 && len(data)+size > blockSize {
			if err := f(first, data); err != nil {
				return err
			}
			data = data[:0]
		}
		if len(data) == 0 {
			first = t
		}
		data = binary.AppendUvarint(data, uint64(len(t)))
		data = append(data, t...)
		data = binary.AppendUvarint(data, uint64(l.size()))
		data = l.append(data)
	}
	if len(data) == 0 {
		return nil
	}
	return f(first, data)
}

// cut returns the first n bytes of b, where n stands before them, and the rest.
func cut(b []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// listOf returns the list of term in a block, nil if it has none.
func listOf(block []byte, term string) ([]byte, error) {
	for len(block) > 0 {
		t, rest, ok := cut(block)
		if !ok {
			return nil, errPostings
		}
		list, rest, ok := cut(rest)
		if !ok {
			return nil, errPostings
		}
		if string(t) >= term {
			if string(t) == term {
				return list, nil
			}
			return nil, nil
		}
		block = rest
	}
	return nil, nil
}

// decodeFirsts reads the first terms of blocks: they ascend.
func decodeFirsts(b []byte) (firsts []string, err error) {
	for len(b) > 0 {
		t, rest, ok := cut(b)
		if !ok || len(firsts) > 0 && string(t) <= firsts[len(firsts)-1] {
			return nil, errPostings
		}
		firsts, b = append(firsts, string(t)), rest
	}
	return firsts, nil
}
