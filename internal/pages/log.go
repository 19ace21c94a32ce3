package pages

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
)

const (
	logHeader   = 32
	frameHeader = 24
)

// log is what is known of a write-ahead log. Its frames hold newer versions of
// pages. SQLite stops at the first frame that is damaged; here only that frame
// is doubted, because the checksum of the next one continues the number that
// the damaged one holds.
type log struct {
	whole map[uint32]int64   // the last version of each page that is whole and committed
	later map[uint32][]int64 // versions after it that are damaged or not committed, oldest first

	damaged  bool // the header or a frame of the current round is damaged
	followed bool // and a frame after it is whole: SQLite would drop that
}

// frame returns where in the log the version of page n is that counts; if fresh,
// the last of all.
func (l log) frame(n uint32, fresh bool) (at int64, ok bool) {
	if later := l.later[n]; fresh && len(later) > 0 {
		return later[len(later)-1], true
	}
	at, ok = l.whole[n]
	return at, ok
}

// pages returns the pages that have versions in the log.
func (l log) pages() []uint32 {
	all := maps.Clone(l.whole)
	if all == nil {
		all = map[uint32]int64{}
	}
	for n := range l.later {
		all[n] = 0
	}
	return slices.Sorted(maps.Keys(all))
}

// logPage returns the size of a page according to the header of a write-ahead
// log, 0 if there is none.
func logPage(h []byte) int64 {
	if binary.BigEndian.Uint32(h)&^1 != 0x377f0682 {
		return 0
	}
	return sane(int64(binary.BigEndian.Uint32(h[8:])))
}

// readLog reads the frames of the current round: those that have the salts of
// the header, or of the first frame if the header is damaged.
func (f *File) readLog() log {
	l := log{whole: map[uint32]int64{}, later: map[uint32][]int64{}}
	h := f.read(f.wal, 0, logHeader)
	big := h[3]&1 == 1 // its numbers are summed as big-endian ones
	salts, known := h[16:24], false
	a, b := sum(big, 0, 0, h[:24])
	if logPage(h) == f.size && a == binary.BigEndian.Uint32(h[24:]) && b == binary.BigEndian.Uint32(h[28:]) {
		known = true
	}
	l.damaged = !known
	frame := frameHeader + f.size
	pending, buf := map[uint32]int64{}, make([]byte, frame)
	for at := int64(logHeader); at+frameHeader < f.written[1].size; at += frame {
		clear(buf) // what cannot be read is zero
		_, _ = f.wal.ReadAt(buf, at)
		h := buf[:frameHeader]
		if !known && at == logHeader {
			salts = bytes.Clone(h[8:16])
		}
		n := binary.BigEndian.Uint32(h)
		page := at + frameHeader
		whole := false
		if bytes.Equal(h[8:16], salts) {
			a, b = sum(big, a, b, h[:8])
			a, b = sum(big, a, b, buf[frameHeader:])
			whole = a == binary.BigEndian.Uint32(h[16:]) && b == binary.BigEndian.Uint32(h[20:])
		} else if !f.salted(at+frame, salts) {
			break // what follows is of an earlier round
		}
		a, b = binary.BigEndian.Uint32(h[16:]), binary.BigEndian.Uint32(h[20:])
		if !whole {
			l.damaged = true
			l.later[n] = append(l.later[n], page)
			continue
		}
		l.followed = l.followed || l.damaged
		pending[n] = page
		if binary.BigEndian.Uint32(h[4:]) > 0 { // a commit
			for n, page := range pending {
				l.commit(n, page)
			}
			clear(pending)
		}
	}
	for n, page := range pending {
		l.later[n] = append(l.later[n], page)
		slices.Sort(l.later[n])
	}
	return l
}

// commit makes page the version of n that counts, and forgets those before it.
func (l log) commit(n uint32, page int64) {
	l.whole[n] = page
	l.later[n] = slices.DeleteFunc(l.later[n], func(at int64) bool { return at < page })
	if len(l.later[n]) == 0 {
		delete(l.later, n)
	}
}

// salted reports whether one of the next frames is of the round with salts.
func (f *File) salted(at int64, salts []byte) bool {
	for range 64 {
		if at+frameHeader < f.written[1].size && bytes.Equal(f.read(f.wal, at+8, 8), salts) {
			return true
		}
		at += frameHeader + f.size
	}
	return false
}

// sum continues the checksum of a write-ahead log.
func sum(big bool, a, b uint32, data []byte) (uint32, uint32) {
	for ; len(data) >= 8; data = data[8:] {
		x, y := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		if big {
			x, y = bits.ReverseBytes32(x), bits.ReverseBytes32(y)
		}
		a += x + b
		b += y + a
	}
	return a, b
}
