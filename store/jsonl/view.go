package jsonl

import (
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

// view is what is known of a log: what its bytes add up to, from the first to
// next, and the state of the file at that time. The zero view knows nothing.
type view struct {
	known bool
	stat  stat
	gen   uint64 // changes when the file is written anew instead of growing
	next  int64  // where the first line begins that is not counted: the end, or a torn line
	lines int    // line ends before next, and one more if bare
	bare  bool   // the last record lacks its line end
	sums  sums

	version int  // of a native log
	keyless bool // the log does not say whose it is

	info    session.Info
	keep    mark // the record info.KeepFrom; off < 0 if unknown
	keepSum uint32
	ids     ids

	// Not in the index.
	marks   []mark           // a record here and there
	outline *session.Outline // for logs, or appends, that need all of it
	places  []place          // with outline: where each record begins
}

type place struct {
	off  int64
	line int32
}

// sums are checksums of the beginning and of the end of what is known, to
// tell a log that has grown from one that was written anew.
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

// markSum is a checksum of how the line at off begins, and of the line end
// before it: what a reader that begins there can be sure of.
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
	// Only this line: what follows may be written later.
	start := 0
	if off > 0 {
		start = 1
	}
	for i := start; i < len(b); i++ {
		if b[i] == '\n' {
			b = b[:i]
		}
	}
	return checksum(b), nil
}

// ids knows, without remembering them all, that most new ids are new: an id
// begins with the time at which it was made, and the time goes on. Where it
// does not, or where the id has another form, ids is not sure.
type ids struct {
	max  int64    // the latest time in an id
	at   []string // the ids of that time
	full bool     // there are more
}

const maxAt = 64

// fresh reports that no id so far equals id. False says nothing.
func (s *ids) fresh(id string) bool {
	ms, ok := session.Record{ID: id}.IDTime()
	switch {
	case !ok || ms < s.max:
		return false
	case ms > s.max:
		return true
	}
	return !s.full && !slices.Contains(s.at, id)
}

func (s *ids) add(id string) {
	ms, ok := session.Record{ID: id}.IDTime()
	switch {
	case !ok || ms < s.max:
	case ms > s.max:
		s.max, s.at, s.full = ms, append(s.at[:0:0], id), false
	case len(s.at) < maxAt:
		s.at = append(s.at, id)
	default:
		s.full = true
	}
}

// apart is how many records lie between two marks.
const apart = 512

// add counts r, which begins at m. It reports false if that takes an outline
// of the whole log; v is as before then. find looks for an id in the records
// from v.keep on, and says if it found it.
func (v *view) add(r session.Record, m mark, find func(id string) (mark, bool)) bool {
	r.Seq = v.info.Last + 1
	m.seq = r.Seq
	var found mark
	if v.outline != nil {
		// Apply refuses a gap only, and there is none.
		if err := v.outline.Apply(r); err != nil {
			panic(fmt.Sprintf("jsonl: %v", err))
		}
		v.info = v.outline.Info
		v.places = append(v.places, place{m.off, int32(m.line)})
	} else {
		was, sure := v.info, true
		ok := v.info.Add(r, func(id string) session.Seq {
			if id == r.ID {
				if sure = sure && v.ids.fresh(id); sure {
					return 0
				}
				return r.Seq
			}
			var ok bool
			found, ok = find(id)
			sure = sure && ok
			return found.seq
		})
		if !ok || !sure {
			v.info = was
			return false
		}
	}
	v.ids.add(r.ID)
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
			v.keep = mark{seq: 1, line: 1}
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

// seal notes the state of the file that v now knows.
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

// continues reports whether the file f, now st, has what v knows and more.
func (v *view) continues(f io.ReaderAt, st stat) bool {
	if !v.known || v.whole() || st.ino != v.stat.ino || st.size <= v.stat.size {
		return false
	}
	if v.bare {
		end := make([]byte, 1)
		if _, err := f.ReadAt(end, v.next); err != nil || end[0] != '\n' {
			return false
		}
	}
	s, err := sumsOf(f, v.next)
	return err == nil && s == v.sums
}

// whole reports whether the log can be read from its beginning only: in old
// versions and in claw0's form, lines mean what the ones before them say.
func (v *view) whole() bool { return v.version < session.Version }

// start returns where a reader of what lies behind after begins.
func (v *view) start(after session.Seq) mark {
	from := mark{seq: 1, line: 1}
	if v.whole() {
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
	if !v.bare {
		better(mark{v.info.Last + 1, v.next, v.lines + 1})
	}
	return from
}
