package postings

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"goclaw/internal/text"
	"goclaw/recall/internal/words"
)

// How large a segment may be: this bounds the memory that building it takes.
const (
	maxDocs  = 128 << 10
	maxBytes = 6 << 20 // of lists
)

// Builder makes a segment of texts. The zero value is ready.
type Builder struct {
	lex   words.Lexer
	lists []list // by the ID of the term
	docs  []Doc
	words int
	size  int // of all lists, in bytes

	ids   []int  // of the terms of the text that is being added
	marks []mark // by the ID of the term
}

// mark counts a term in the text that is being added.
type mark struct {
	at    int32 // 1 + the doc that count belongs to
	count uint32
}

// list is the encoded postings of one term: for each doc the distance to the
// one before, with a bit that tells whether a count follows.
type list struct {
	data []byte
	n    int32 // docs
	last int32 // doc, plus 1
}

// maxTerms is how many terms a Builder may know that is used again.
const maxTerms = 64 << 10

// Reset makes b empty. It remembers the words that it has seen, which are most
// of those that it will see.
func (b *Builder) Reset() {
	if len(b.lex.Terms) > maxTerms {
		*b = Builder{}
		return
	}
	clear(b.lists)
	clear(b.marks)
	*b = Builder{lex: b.lex, lists: b.lists, ids: b.ids, marks: b.marks}
}

// SpeakerTerm returns the term for what a person says. No word of a text has
// it.
func SpeakerTerm(name string) string { return "@" + name }

// toolMark begins the terms for tools. No word of a text has it.
const toolMark = "\x01"

// ToolTerm returns the term for what calls a tool, and for its output.
func ToolTerm(name string) string { return toolMark + strings.ToLower(text.Head(name, maxTool)) }

// maxTool is how many bytes of a tool's name count.
const maxTool = 100

// Add adds a text; groups and places ascend. speaker is the name that it
// begins with, or that it is about; "": none. It calls tools, or is their
// output.
func (b *Builder) Add(d Doc, text, speaker string, tools ...string) {
	b.ids = b.ids[:0]
	n := b.lex.Each(text, func(w words.Word) { b.ids = append(b.ids, w.ID) })
	d.Words = uint16(min(n, maxWords))
	if t := words.Term(speaker); t != "" {
		b.ids = append(b.ids, b.lex.ID(SpeakerTerm(t)))
		d.Flags |= Named
	}
	for _, name := range tools {
		b.ids = append(b.ids, b.lex.ID(ToolTerm(name)))
	}
	b.lists = slices.Grow(b.lists, len(b.lex.Terms)-len(b.lists))[:len(b.lex.Terms)]
	b.marks = slices.Grow(b.marks, len(b.lex.Terms)-len(b.marks))[:len(b.lex.Terms)]
	b.docs = append(b.docs, d)
	b.words += n
	at := int32(len(b.docs))
	// The words first and then their lists: neither waits for the other to
	// come into the cache.
	once := b.ids[:0]
	for _, id := range b.ids {
		m := &b.marks[id]
		if m.at != at {
			*m = mark{at: at}
			once = append(once, id)
		}
		m.count++
	}
	for _, id := range once {
		b.size += b.lists[id].post(at, b.marks[id].count)
	}
}

// Full reports whether b is as large as a segment may be.
func (b *Builder) Full() bool { return len(b.docs) >= maxDocs || b.size >= maxBytes }

// post adds the doc at, counted from 1, that has the term n times, and returns
// how many bytes that takes.
func (l *list) post(at int32, n uint32) int {
	before := len(l.data)
	gap := uint64(at-l.last) << 1
	if n > 1 {
		l.data = binary.AppendUvarint(l.data, gap|1)
		l.data = binary.AppendUvarint(l.data, uint64(n))
	} else {
		l.data = binary.AppendUvarint(l.data, gap)
	}
	l.last = at
	l.n++
	return len(l.data) - before
}

// blockSize is how much of a page of the database a row can have.
const blockSize = pageSize - 60

// blocks calls f for the lists of b, packed: each block has the lists of some
// terms, ascending: the term as appendTerm writes it, and the length and the
// bytes of the list. A list begins with the number of its docs. first is the
// first term of the block. data is valid until f returns.
func (b *Builder) blocks(f func(first string, data []byte) error) error {
	ids := make([]int, 0, len(b.lists))
	for i := range b.lists {
		if b.lists[i].n > 0 {
			ids = append(ids, i)
		}
	}
	terms := b.lex.Terms
	slices.SortFunc(ids, func(x, y int) int { return strings.Compare(terms[x], terms[y]) })
	first, last, data, head := "", "", make([]byte, 0, 2*blockSize), []byte(nil)
	for _, id := range ids {
		t, l := terms[id], &b.lists[id]
		if size := len(t) + len(l.data) + 3*binary.MaxVarintLen32; len(data) > 0 && len(data)+size > blockSize {
			if err := f(first, data); err != nil {
				return err
			}
			data = data[:0]
		}
		if len(data) == 0 {
			first, last = t, ""
		}
		data = appendTerm(data, last, t)
		last = t
		head = binary.AppendUvarint(head[:0], uint64(l.n))
		data = binary.AppendUvarint(data, uint64(len(head)+len(l.data)))
		data = append(append(data, head...), l.data...)
	}
	if len(data) == 0 {
		return nil
	}
	return f(first, data)
}

// Segment returns what was built, in memory.
func (b *Builder) Segment() *Segment {
	var firsts []string
	var packed [][]byte
	_ = b.blocks(func(first string, data []byte) error { // it fails only if f does
		firsts, packed = append(firsts, first), append(packed, bytes.Clone(data))
		return nil
	})
	return &Segment{Docs: slices.Clip(b.docs), Words: b.words, firsts: firsts, block: func(n int) ([]byte, error) { return packed[n], nil }}
}
