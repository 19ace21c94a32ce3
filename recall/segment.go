package recall

import (
	"encoding/binary"
	"errors"
	"slices"
)

// segment is a part of the index: docs in the order of their groups and
// places, and for each term where it is. It does not change.
type segment struct {
	docs     []doc
	words    int                               // in all docs
	postings func(term string) ([]byte, error) // as encoded, nil if there is none
}

// builder makes a segment.
type builder struct {
	docs  []doc
	words int
	terms map[string]*list
}

// list is the encoded postings of one term: for each doc the distance to the
// one before, with a bit that tells whether a count follows.
type list struct {
	data []byte
	last int // doc, plus 1
	n    int
}

func newBuilder() *builder { return &builder{terms: map[string]*list{}} }

// add adds what is behind all that was added: groups and places ascend.
func (b *builder) add(group uint32, s said) {
	d, terms := digest(s)
	d.group = group
	b.put(d, terms)
}

func (b *builder) put(d doc, terms map[string]uint32) {
	at := len(b.docs)
	b.docs = append(b.docs, d)
	b.words += int(d.words)
	for t, n := range terms {
		l := b.terms[t]
		if l == nil {
			l = &list{}
			b.terms[t] = l
		}
		gap := uint64(at+1-l.last) << 1
		if n > 1 {
			l.data = binary.AppendUvarint(l.data, gap|1)
			l.data = binary.AppendUvarint(l.data, uint64(n))
		} else {
			l.data = binary.AppendUvarint(l.data, gap)
		}
		l.last = at + 1
		l.n++
	}
}

// segment returns what was built, in memory.
func (b *builder) segment() *segment {
	return &segment{docs: b.docs, words: b.words, postings: func(t string) ([]byte, error) {
		if l := b.terms[t]; l != nil {
			return l.data, nil
		}
		return nil, nil
	}}
}

var errPostings = errors.New("recall: postings that cannot be read")

// eachPosting calls f for each doc in data.
func eachPosting(data []byte, docs int, f func(doc int, n uint32)) error {
	at := -1
	for len(data) > 0 {
		gap, size := binary.Uvarint(data)
		if size <= 0 || gap>>1 == 0 || gap>>1 > uint64(docs) {
			return errPostings
		}
		data = data[size:]
		n := uint64(1)
		if gap&1 == 1 {
			if n, size = binary.Uvarint(data); size <= 0 {
				return errPostings
			}
			data = data[size:]
		}
		if at += int(gap >> 1); at >= docs {
			return errPostings
		}
		f(at, uint32(n))
	}
	return nil
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

// cmpTerms orders terms by their bytes.
func (b *builder) sorted() []string {
	terms := make([]string, 0, len(b.terms))
	for t := range b.terms {
		terms = append(terms, t)
	}
	slices.Sort(terms)
	return terms
}
