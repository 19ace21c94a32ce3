package pages

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// The kinds of pages that are of use here.
const (
	tableLeaf     = 0x0d
	tableInterior = 0x05
)

// Row is a row of some table.
type Row struct {
	ID    int64
	Types []Type
	// Page is the number of its page, to name it by.
	Page uint32
	// Apart says that the file contradicts itself: the row is not within the
	// range that its page is for.
	Apart bool
	// Later says that it is from a frame of the write-ahead log that is damaged
	// or not committed.
	Later bool

	in   source
	cell cell
}

// Bare returns r without what Values does not need, for a program that keeps
// many.
func (r Row) Bare() Row {
	r.Types = nil
	return r
}

// source is where a page is: in the database or in its log.
type source struct {
	wal bool
	at  int64
}

// cell is where on its page a row is, and how long.
type cell struct {
	id       int64
	at       int   // of the first byte of its payload
	local    int   // how much of it is on the page
	size     int64 // all of it
	overflow uint32
}

// Type says what a value is: its kind and, in the file, its length.
type Type uint64

// Null, Int, Text and Blob report which kind of value it is.
func (t Type) Null() bool { return t == 0 }
func (t Type) Int() bool  { return t >= 1 && t <= 6 || t == 8 || t == 9 }
func (t Type) Text() bool { return t >= 13 && t%2 == 1 }
func (t Type) Blob() bool { return t >= 12 && t%2 == 0 }

// size is the length of the value in bytes.
func (t Type) size() int64 {
	switch {
	case t >= 12:
		return int64((t - 12) / 2)
	case t <= 4:
		return int64(t)
	case t == 5:
		return 6
	case t == 6, t == 7:
		return 8
	}
	return 0
}

// Value is one value of a row.
type Value struct {
	Null  bool
	Int   int64
	Bytes []byte // of a text or a blob
}

// bound is the range of rows that a page is for: over, up to and including upTo.
type bound struct{ over, upTo int64 }

// Rows calls visit with the rows of each page, in their order. A page is visited
// more than once if the log has several versions of it that may count. Every page is read as if it were a leaf of a table, so that
// a damaged mark hides none; pages on the list of free pages are left out, for
// they may hold what was deleted. A page that an interior page leads to is in
// use, whatever that list says.
func (f *File) Rows(visit func(rows []Row) error) error {
	free := f.freePages()
	f.bounds = map[uint32]bound{}
	_ = f.each(func(n uint32, in source, later bool) error {
		if !later && !free[n] {
			f.interior(f.at(in), head(n))
		}
		return nil
	})
	for n := range f.bounds {
		delete(free, n)
	}
	return f.each(func(n uint32, in source, later bool) error {
		if free[n] {
			return nil
		}
		if rows := f.rows(n, in, later); len(rows) > 0 {
			return visit(rows)
		}
		return nil
	})
}

// each calls do with every version of every page that may count, the best
// version of a page first.
func (f *File) each(do func(n uint32, in source, later bool) error) error {
	pages := f.pages()
	for n := uint32(1); n <= pages; n++ {
		if err := f.versions(n, do); err != nil {
			return err
		}
	}
	for _, n := range f.log.pages() {
		if n == 0 || n > pages { // 0: a frame that does not say whose it is
			if err := f.versions(n, do); err != nil {
				return err
			}
		}
	}
	return nil
}

// head returns where on page n its own header is.
func head(n uint32) int {
	if n == 1 {
		return headerSize
	}
	return 0
}

// versions calls do with every version of page n.
func (f *File) versions(n uint32, do func(n uint32, in source, later bool) error) error {
	at, logged := f.log.whole[n]
	var err error
	switch {
	case logged:
		err = do(n, source{true, at}, false)
	case n > 0 && n <= f.pages():
		err = do(n, source{false, int64(n-1) * f.size}, false)
	}
	later := f.log.later[n]
	for i := len(later) - 1; i >= 0 && err == nil; i-- {
		err = do(n, source{true, later[i]}, true)
	}
	return err
}

func (f *File) at(in source) []byte {
	if in.wal {
		return f.read(f.wal, in.at, f.size)
	}
	return f.read(f.db, in.at, f.size)
}

// rows returns the rows on one page.
func (f *File) rows(n uint32, in source, later bool) []Row {
	p := f.at(in)
	within, known := f.bounds[n]
	var rows []Row
	for _, c := range f.cells(p, head(n)) {
		types, _, ok := types(p[c.at : c.at+c.local])
		if !ok {
			continue
		}
		apart := known && (c.id <= within.over || c.id > within.upTo)
		rows = append(rows, Row{ID: c.id, Types: types, Page: n, Apart: apart, Later: later, in: in, cell: c})
	}
	return rows
}

// cells returns the cells of a leaf page that are inside it.
func (f *File) cells(p []byte, head int) []cell {
	at := head + 8
	n := min(int(binary.BigEndian.Uint16(p[head+3:])), (len(p)-at)/2)
	var cells []cell
	for i := range n {
		off := int(binary.BigEndian.Uint16(p[at+2*i:]))
		if off < at || off >= len(p) {
			continue
		}
		size, a := varint(p[off:])
		id, b := varint(p[off+a:])
		if a == 0 || b == 0 || size == 0 || size > uint64(f.largest()) {
			continue
		}
		c := cell{id: int64(id), at: off + a + b, local: f.local(int64(size)), size: int64(size)}
		end := c.at + c.local
		if int64(c.local) < c.size {
			if end+4 > len(p) {
				continue
			}
			c.overflow = binary.BigEndian.Uint32(p[end:])
		}
		if end <= len(p) {
			cells = append(cells, c)
		}
	}
	return cells
}

// largest returns the size that a row can have: it is in the file, and a record
// has a limit.
func (f *File) largest() int64 {
	return min(maxPayload, f.written[0].size+f.written[1].size)
}

// local returns how much of a payload is on the leaf itself.
func (f *File) local(size int64) int {
	if size <= f.size-35 {
		return int(size)
	}
	least := (f.size-12)*32/255 - 23
	if k := least + (size-least)%(f.size-4); k <= f.size-35 {
		return int(k)
	}
	return int(least)
}

// types returns the types of the values of a row, and where the values begin.
func types(payload []byte) (t []Type, at int, ok bool) {
	size, n := varint(payload)
	if n == 0 || size < uint64(n) || size > uint64(len(payload)) {
		return nil, 0, false
	}
	for at = n; at < int(size); {
		v, n := varint(payload[at:int(size)])
		if n == 0 || v == 10 || v == 11 || v > 2*maxPayload+13 {
			return nil, 0, false
		}
		t, at = append(t, Type(v)), at+n
	}
	return t, at, true
}

// sound reports whether the values of a row of size bytes, which begins with
// payload, take as many bytes as there are.
func sound(payload []byte, size int64) bool {
	types, at, ok := types(payload)
	for _, t := range types {
		size -= t.size()
	}
	return ok && len(types) > 0 && size == int64(at)
}

var errCut = errors.New("it continues on a page that is not there")

// Values reads the values of r.
func (f *File) Values(r Row) ([]Value, error) {
	p := f.at(r.in)
	payload := slices.Clone(p[r.cell.at : r.cell.at+r.cell.local])
	next := r.cell.overflow
	for int64(len(payload)) < r.cell.size {
		p := f.page(next, r.Later)
		if p == nil {
			return nil, errCut
		}
		next = binary.BigEndian.Uint32(p)
		payload = append(payload, p[4:min(f.size, 4+r.cell.size-int64(len(payload)))]...)
	}
	types, at, _ := types(payload)
	values := make([]Value, len(types))
	for i, t := range types {
		size := t.size()
		if int64(len(payload)-at) < size {
			return nil, errors.New("its values are longer than it is")
		}
		b := payload[at : at+int(size)]
		at += int(size)
		switch {
		case t.Null():
			values[i].Null = true
		case t >= 12:
			values[i].Bytes = b
		case t == 9:
			values[i].Int = 1
		case t.Int():
			values[i].Int = integer(b)
		}
	}
	return values, nil
}

// integer returns the signed number in b.
func integer(b []byte) (v int64) {
	for i, c := range b {
		if i == 0 {
			v = int64(int8(c))
			continue
		}
		v = v<<8 | int64(c)
	}
	return v
}

// interior notes the range of each page below an interior page of a table.
func (f *File) interior(p []byte, head int) {
	if p[head] != tableInterior {
		return
	}
	at := head + 12
	n := min(int(binary.BigEndian.Uint16(p[head+3:])), (len(p)-at)/2)
	over := int64(math.MinInt64)
	for i := range n {
		off := int(binary.BigEndian.Uint16(p[at+2*i:]))
		if off < at || off+4 >= len(p) {
			continue
		}
		if id, n := varint(p[off+4:]); n > 0 {
			f.bounds[binary.BigEndian.Uint32(p[off:])] = bound{over, int64(id)}
			over = int64(id)
		}
	}
	f.bounds[binary.BigEndian.Uint32(p[head+8:])] = bound{over, math.MaxInt64}
}

// freePages returns the pages on the list of free pages, none if that list is
// damaged. Of a list that is cut off with the end of the file, the rest counts.
func (f *File) freePages() map[uint32]bool {
	first := f.page(1, false)
	if f.Header == nil || first == nil {
		return nil
	}
	end := max(f.pages(), binary.BigEndian.Uint32(first[28:]))
	free, cut := map[uint32]bool{}, false
	add := func(n uint32) bool {
		ok := n > 1 && n <= end && !free[n]
		free[n] = true
		return ok
	}
	for trunk := binary.BigEndian.Uint32(first[32:]); trunk != 0; {
		if !add(trunk) {
			return nil
		}
		p := f.page(trunk, false)
		if p == nil {
			cut = true
			break
		}
		n := int64(binary.BigEndian.Uint32(p[4:]))
		if n > f.size/4-2 {
			return nil
		}
		for i := range n {
			if !add(binary.BigEndian.Uint32(p[8+4*i:])) {
				return nil
			}
		}
		trunk = binary.BigEndian.Uint32(p)
	}
	if n := binary.BigEndian.Uint32(first[36:]); uint32(len(free)) != n && !cut {
		return nil
	}
	return free
}

// varint returns a number as SQLite writes it, and its length: 0 if it is cut
// off.
func varint(b []byte) (v uint64, n int) {
	for i, c := range b {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
