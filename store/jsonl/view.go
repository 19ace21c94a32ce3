package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"goclaw/session"
)

// mark is where a record begins.
type mark struct {
	seq  session.Seq
	off  int64
	line int
}

var firstMark = mark{seq: 1, line: 1}

// view is what is known of a log: the sum of its bytes before next, and the
// state of the file when they were read. The zero view knows nothing.
type view struct {
	known bool
	stat  stat
	gen   uint64 // changes when the file is rewritten instead of growing
	next  int64  // the first byte that is not part of the sum: the end, or an incomplete line
	lines int    // line ends before next, and one more if open
	open  bool   // the last record has no line end yet
	sums  sums

	version int  // of a native log
	keyless bool // the log has no key

	info    session.Info
	keep    mark // the record info.KeepFrom; off < 0 if unknown
	keepSum uint32
	newest  newest

	// Not in the index.
	marks   []mark           // every 32nd record or so
	outline *session.Outline // of a log that is not a straight line
	places  []place          // with outline: where each record begins
}

type place struct {
	off  int64
	line int32
}

// sums are checksums of the beginning and of the end of the known bytes. They
// tell a log that has grown from one that was rewritten.
type sums struct{ head, tail uint32 }

const sumSize = 256

func sumsOf(f io.ReaderAt, next int64) (sums, error) {
	n := min(next, sumSize)
	b := make([]byte, 2*n)
	if _, err := f.ReadAt(b[:n], 0); err != nil && err != io.EOF {
		return sums{}, err
	}
	if _, err := f.ReadAt(b[n:], next-n); err != nil && err != io.EOF {
		return sums{}, err
	}
	return sums{head: checksum(b[:n]), tail: checksum(b[n:])}, nil
}

// markSum is a checksum of the beginning of the line at off, and of the line
// end before it. It tells whether a reader may begin there.
func markSum(f io.ReaderAt, off int64) (uint32, error) {
	b := make([]byte, sumSize)
	n, err := f.ReadAt(b, max(off-1, 0))
	if err != nil && err != io.EOF {
		return 0, err
	}
	b = b[:n]
	if off > 0 && (n == 0 || b[0] != '\n') {
		return 0, errors.New("jsonl: no line begins here")
	}
	// Only this line: the next one may be written later.
	skip := int(min(off, 1))
	if i := bytes.IndexByte(b[skip:], '\n'); i >= 0 {
		b = b[:skip+i]
	}
	return checksum(b), nil
}

// newest are the ids with the latest time. An id begins with the time at which
// it was made, so that an id with a later time is new to the log, and the other
// ids need not be remembered.
type newest struct {
	ms  int64    // the time
	ids []string // at most maxNewest
}

const maxNewest = 64

// exclude reports whether no record has id. If it is false, one may have it.
func (n *newest) exclude(id string) bool {
	ms, ok := session.Record{ID: id}.IDTime()
	if !ok || ms < n.ms {
		return false
	}
	return ms > n.ms || len(n.ids) < maxNewest && !slices.Contains(n.ids, id)
}

func (n *newest) add(id string) {
	ms, ok := session.Record{ID: id}.IDTime()
	switch {
	case !ok || ms < n.ms:
	case ms > n.ms:
		n.ms, n.ids = ms, []string{id}
	case len(n.ids) < maxNewest:
		n.ids = append(n.ids, id)
	}
}

// apart is the distance of two marks in records.
const apart = 32

// add adds r, which begins at m. It reports false, and leaves v as it is, if
// that takes an outline of the whole log. find looks for an id in the records
// from v.keep on and reports whether it is there.
func (v *view) add(r session.Record, m mark, find func(id string) (mark, bool)) bool {
	r.Seq = v.info.Last + 1
	m.seq = r.Seq
	var found mark
	if v.outline != nil {
		// Apply refuses only a gap, and there is none.
		if err := v.outline.Apply(r); err != nil {
			panic(fmt.Sprintf("jsonl: %v", err))
		}
		v.info = v.outline.Info
		v.places = append(v.places, place{m.off, int32(m.line)})
	} else {
		next, sure := v.info, true
		ok := next.Add(r, func(id string) session.Seq {
			if id == r.ID {
				sure = sure && v.newest.exclude(id)
				return 0
			}
			var ok bool
			found, ok = find(id)
			sure = sure && ok
			return found.seq
		})
		if !ok || !sure {
			return false
		}
		v.info = next
	}
	v.newest.add(r.ID)
	if r.Seq == 1 {
		h, _ := r.Body.(session.Header)
		v.keyless = h.Key == ""
	}
	if b, ok := r.Body.(session.Moved); ok && b.Key != "" {
		v.keyless = false
	}
	if n := len(v.marks); n == 0 || m.seq-v.marks[n-1].seq >= apart {
		v.marks = append(v.marks, m)
	}
	if at := v.info.KeepFrom; at != v.keep.seq {
		switch {
		case at == r.Seq:
			v.keep = m
		case at == found.seq:
			v.keep = found
		case at <= 1:
			v.keep = firstMark
		case v.outline != nil:
			p := v.places[at-1]
			v.keep = mark{at, p.off, int(p.line)}
		default:
			v.keep = mark{seq: at, off: -1}
		}
		v.keepSum = 0
	}
	return true
}

// seal notes that v knows the file f in the state st.
func (v *view) seal(f io.ReaderAt, st stat) error {
	s, err := sumsOf(f, v.next)
	if err != nil {
		return err
	}
	if v.keep.off > 0 && v.keepSum == 0 {
		if v.keepSum, err = markSum(f, v.keep.off); err != nil {
			return err
		}
	}
	v.sums, v.stat, v.known = s, st, true
	return nil
}

// continues reports whether f, now in the state st, has the bytes that v knows
// and more.
func (v *view) continues(f io.ReaderAt, st stat) bool {
	if !v.known || v.readWhole() || st.ino != v.stat.ino || st.size <= v.stat.size {
		return false
	}
	if v.open {
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, v.next); err != nil || end[0] != '\n' {
			return false
		}
	}
	s, err := sumsOf(f, v.next)
	return err == nil && s == v.sums
}

// readWhole reports whether the log can only be read from its beginning: in old
// versions and in claw0's form, a line depends on those before it.
func (v *view) readWhole() bool { return v.version < session.Version }

// beginsAt reports whether a record of f still begins at from, if that comes
// from the index.
func (v *view) beginsAt(f io.ReaderAt, from mark) bool {
	if from != v.keep || v.keep.off <= 0 {
		return true
	}
	sum, err := markSum(f, v.keep.off)
	return err == nil && sum == v.keepSum
}

// start returns the best place to begin reading the records after seq after.
func (v *view) start(after session.Seq) mark {
	from := firstMark
	if v.readWhole() {
		return from
	}
	better := func(m mark) {
		if m.off > 0 && m.seq <= after+1 && m.seq > from.seq {
			from = m
		}
	}
	better(v.keep)
	if i, ok := slices.BinarySearchFunc(v.marks, after+1, func(m mark, seq session.Seq) int { return int(m.seq - seq) }); ok {
		better(v.marks[i])
	} else if i > 0 {
		better(v.marks[i-1])
	}
	if !v.open {
		better(mark{v.info.Last + 1, v.next, v.lines + 1})
	}
	return from
}
