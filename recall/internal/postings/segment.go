// Package postings keeps, for each term, which messages hold it. A Builder
// makes a Segment of texts; DB keeps segments in a file.
package postings

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Doc is a message or a note as the index knows it, in 16 bytes: all of them
// are in memory.
type Doc struct {
	Group    uint32 // the session or the file; only those of one group are neighbours
	Seq      uint32 // the record, or the line
	timeLow  uint32
	Words    uint16 // or more, if it is maxWords
	timeHigh int8
	Flags    Flags
}

// maxWords is how many words of a doc are counted.
const maxWords = math.MaxUint16

// Time returns when it was said, in seconds since 1970.
func (d Doc) Time() int64 { return int64(d.timeHigh)<<32 | int64(d.timeLow) }

// At returns d with another time, within 17,000 years.
func (d Doc) At(seconds int64) Doc {
	const most = 1<<39 - 1
	seconds = min(max(seconds, -most), most)
	d.timeLow, d.timeHigh = uint32(seconds), int8(seconds>>32)
	return d
}

// Flags say what kind of a text a doc is.
type Flags uint8

const (
	Asks       Flags = 1 << iota // it ends in a question
	MostlyAsks                   // it is a question, most of it
	User
	Tool
	Summary
	Named  // it begins with what could be its speaker's name
	Others // a note that names others than its subject, whom notes beside it are about
)

// ByPlace orders docs as segments do.
func ByPlace(a, b Doc) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Seq, b.Seq))
}

// Segment is a part of the index: docs in the order of their groups and
// places, and for each term where it is. It does not change.
type Segment struct {
	ID    int64 // its number in the database; 0: it is in memory only
	Docs  []Doc
	Words int // in all docs

	firsts []string                    // the first term of each block
	block  func(n int) ([]byte, error) // reads a block
	talks  []talk                      // made when they are first asked for
	briefs []Brief                     // the same
}

// Brief is what scoring must know of a doc, in two bytes: a table of them stays
// in the processor's cache.
type Brief uint16

const (
	// MaxLength is the number of words from which on texts are equally long.
	MaxLength = 1 << 12

	briefAsks  Brief = MaxLength
	briefFirst Brief = 2 * MaxLength
)

// Length is how many words it has, less than MaxLength.
func (b Brief) Length() int { return int(b % MaxLength) }

// Asks is 1 if it ends in a question, else 0.
func (b Brief) Asks() int { return int(b / briefAsks % 2) }

// First reports whether it is the first of its group in the segment.
func (b Brief) First() bool { return b&briefFirst != 0 }

// Briefs returns what scoring must know of each doc.
func (s *Segment) Briefs() []Brief {
	if s.briefs == nil {
		s.briefs = make([]Brief, len(s.Docs))
		for i := range s.Docs {
			d := &s.Docs[i]
			b := Brief(min(d.Words, MaxLength-1))
			if d.Flags&Asks != 0 {
				b |= briefAsks
			}
			if i == 0 || s.Docs[i-1].Group != d.Group {
				b |= briefFirst
			}
			s.briefs[i] = b
		}
	}
	return s.briefs
}

// Posting is one doc of a list, and how often it has the term.
type Posting struct {
	At    int32
	Count uint32
}

// List returns the list of term, nil if there is none, and how many docs it
// has.
func (s *Segment) List(term string) (list []byte, n int, err error) {
	at, ok := slices.BinarySearch(s.firsts, term)
	if !ok {
		at--
	}
	if at < 0 {
		return nil, 0, nil
	}
	block, err := s.block(at)
	if err != nil {
		return nil, 0, err
	}
	if list, err = listOf(block, term); err != nil || list == nil {
		return nil, 0, s.damage(err)
	}
	count, size := binary.Uvarint(list)
	if size <= 0 || count > uint64(len(s.Docs)) {
		return nil, 0, s.damage(errPostings)
	}
	return list, int(count), nil
}

// Tools returns the names of the tools that the docs call, in lower case.
func (s *Segment) Tools() (names []string, err error) {
	at, ok := slices.BinarySearch(s.firsts, toolMark)
	if !ok {
		at--
	}
	for at = max(at, 0); at < len(s.firsts); at++ {
		block, err := s.block(at)
		if err != nil {
			return nil, err
		}
		past := false
		err = eachList(block, func(term, _ []byte) bool {
			if name, ok := strings.CutPrefix(string(term), toolMark); ok {
				names = append(names, name)
			}
			past = string(term) > toolMark+"\xff"
			return !past
		})
		if err != nil || past {
			return names, s.damage(err)
		}
	}
	return names, nil
}

// Decode appends what a list holds to ps.
func (s *Segment) Decode(list []byte, ps []Posting) ([]Posting, error) {
	ps, err := decode(list, len(s.Docs), ps)
	return ps, s.damage(err)
}

func (s *Segment) damage(err error) error {
	if err == nil {
		return nil
	}
	return &SegmentError{s.ID, err}
}

// SegmentError is damage of one segment.
type SegmentError struct {
	ID  int64
	Err error
}

func (e *SegmentError) Error() string { return fmt.Sprintf("segment %d of the index: %v", e.ID, e.Err) }
func (e *SegmentError) Unwrap() error { return e.Err }

// talk counts the messages of people and models in a group, and those that
// begin with what could be a name.
type talk struct {
	group       uint32
	named, said int
}

// countTalks counts them by group, in the order of the groups.
func (s *Segment) countTalks() []talk {
	if s.talks == nil {
		s.talks = []talk{}
		for i := range s.Docs {
			d := &s.Docs[i]
			if d.Flags&(Tool|Summary) != 0 {
				continue
			}
			if n := len(s.talks); n == 0 || s.talks[n-1].group != d.Group {
				s.talks = append(s.talks, talk{group: d.Group})
			}
			t := &s.talks[len(s.talks)-1]
			t.said++
			if d.Flags&Named != 0 {
				t.named++
			}
		}
	}
	return s.talks
}

// PeopleTalk returns the groups in which people talk to each other: three of
// four messages of people and models begin with a name. "Warning: ..." now and
// then is no name.
func PeopleTalk(segs []*Segment) map[uint32]bool {
	all := map[uint32]talk{}
	for _, s := range segs {
		for _, t := range s.countTalks() {
			sum := all[t.group]
			all[t.group] = talk{t.group, sum.named + t.named, sum.said + t.said}
		}
	}
	people := map[uint32]bool{}
	for group, t := range all {
		if t.named > 0 && 4*t.named >= 3*t.said {
			people[group] = true
		}
	}
	return people
}

var (
	errPostings = errors.New("recall: postings that cannot be read")
	errDocs     = errors.New("recall: a table of messages that cannot be read")
)

// decode appends what a list holds to ps. docs is how many there are.
func decode(list []byte, docs int, ps []Posting) ([]Posting, error) {
	c, err := newCursor(list, docs)
	if err != nil {
		return ps, err
	}
	return c.upto(0, docs, ps)
}

// Cursor reads a list step by step.
type Cursor struct {
	seg  *Segment
	list []byte // the rest
	left uint64 // how many docs that is
	at   int    // the doc before
	docs int    // of the segment
}

// Cursor returns one for a list.
func (s *Segment) Cursor(list []byte) (Cursor, error) {
	c, err := newCursor(list, len(s.Docs))
	c.seg = s
	return c, s.damage(err)
}

// Upto appends to ps the docs before end that were not read yet. Their places
// are counted from first.
func (c *Cursor) Upto(first, end int, ps []Posting) ([]Posting, error) {
	ps, err := c.upto(first, end, ps)
	return ps, c.seg.damage(err)
}

func newCursor(list []byte, docs int) (Cursor, error) {
	count, size := binary.Uvarint(list)
	if size <= 0 || count > uint64(docs) {
		return Cursor{}, errPostings
	}
	return Cursor{list: list[size:], left: count, at: -1, docs: docs}, nil
}

func (c *Cursor) upto(first, end int, ps []Posting) ([]Posting, error) {
	list, at := c.list, c.at
	for len(list) > 0 {
		gap, size := uint64(list[0]), 1
		if gap >= 0x80 {
			if gap, size = binary.Uvarint(list); size <= 0 {
				return ps, errPostings
			}
		}
		if gap>>1 == 0 || gap>>1 > uint64(c.docs-1-at) {
			return ps, errPostings
		}
		if at+int(gap>>1) >= end {
			break
		}
		list = list[size:]
		n := uint64(1)
		if gap&1 == 1 {
			if n, size = binary.Uvarint(list); size <= 0 || n > 1<<31 {
				return ps, errPostings
			}
			list = list[size:]
		}
		at += int(gap >> 1)
		c.left--
		ps = append(ps, Posting{int32(at - first), uint32(n)})
	}
	c.list, c.at = list, at
	if len(list) == 0 && c.left != 0 {
		return ps, errPostings
	}
	return ps, nil
}

// encodeDocs writes docs: columns of differences, which are small.
func encodeDocs(docs []Doc) []byte {
	b := binary.AppendUvarint(nil, uint64(len(docs)))
	var last Doc
	for _, d := range docs {
		if d.Group != last.Group {
			last.Seq = 0
		}
		b = binary.AppendUvarint(b, uint64(d.Group-last.Group))
		b = binary.AppendUvarint(b, uint64(d.Seq-last.Seq))
		b = binary.AppendVarint(b, d.Time()-last.Time())
		b = binary.AppendUvarint(b, uint64(d.Words))
		b = append(b, byte(d.Flags))
		last = d
	}
	return b
}

func decodeDocs(b []byte) ([]Doc, error) {
	bad := false
	number := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	n := number()
	if n > uint64(len(b)) { // each takes more than a byte
		return nil, errDocs
	}
	docs := make([]Doc, 0, n)
	var last Doc
	at := int64(0)
	for range n {
		g := uint32(number())
		if g != 0 {
			last.Seq = 0
		}
		last.Group += g
		last.Seq += uint32(number())
		t, size := binary.Varint(b)
		if size <= 0 {
			return nil, errDocs
		}
		b = b[size:]
		at += t
		last = last.At(at)
		last.Words = uint16(min(number(), maxWords))
		if bad || len(b) == 0 {
			return nil, errDocs
		}
		last.Flags = Flags(b[0])
		b = b[1:]
		docs = append(docs, last)
	}
	if len(b) != 0 {
		return nil, errDocs
	}
	return docs, nil
}

// cut returns the first n bytes of b, where n precedes them, and the rest.
func cut(b []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	return b[size : size+int(n)], b[size+int(n):], true
}

// appendTerm appends a term of a block to b: how many of its first bytes are
// those of last, the term before it, how many others it has, and these. Both
// numbers are in one byte; a long rest has what is more in a number after it.
func appendTerm(b []byte, last, term string) []byte {
	same := 0
	for same < min(len(last), len(term), maxNibble) && last[same] == term[same] {
		same++
	}
	rest := term[same:]
	b = append(b, byte(same<<4|min(len(rest), maxNibble)))
	if len(rest) >= maxNibble {
		b = binary.AppendUvarint(b, uint64(len(rest)-maxNibble))
	}
	return append(b, rest...)
}

// maxNibble is the largest number that fits into half a byte.
const maxNibble = 15

// cutTerm makes of term, the one before, the term that b begins with, and
// returns what follows it.
func cutTerm(b, term []byte) (next, rest []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	same, n := int(b[0]>>4), uint64(b[0]&maxNibble)
	b = b[1:]
	if n == maxNibble {
		more, size := binary.Uvarint(b)
		if size <= 0 || more > uint64(len(b)) {
			return nil, nil, false
		}
		n, b = n+more, b[size:]
	}
	if same > len(term) || n > uint64(len(b)) {
		return nil, nil, false
	}
	return append(term[:same], b[:n]...), b[n:], true
}

// eachList calls f for the lists of a block until it returns false. The term is
// valid until f returns.
func eachList(block []byte, f func(term, list []byte) bool) error {
	var buf [64]byte
	term := buf[:0]
	for len(block) > 0 {
		var list []byte
		var ok bool
		if term, block, ok = cutTerm(block, term); !ok {
			return errPostings
		}
		if list, block, ok = cut(block); !ok {
			return errPostings
		}
		if !f(term, list) {
			return nil
		}
	}
	return nil
}

// listOf returns the list of term in a block, nil if it has none.
func listOf(block []byte, term string) (found []byte, err error) {
	err = eachList(block, func(t, list []byte) bool {
		order := strings.Compare(string(t), term)
		if order == 0 {
			found = list
		}
		return order < 0
	})
	return found, err
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
