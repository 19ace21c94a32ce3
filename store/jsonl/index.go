package jsonl

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strings"
	"time"

	"goclaw/session"
	"goclaw/session/storekit"
)

// The index has the list row of each log, and the state of the file that it was
// computed from. It is a sequence of entries; the last one of a path counts, so
// that saving costs no more than what has changed. An entry that is damaged or
// does not fit its log is computed again.
//
//	"goclaw index 3\n", then for each entry: length, CRC-32C, payload

const indexMagic = "goclaw index 3\n"

// otherVersion reports whether in is the index of another version: it is not
// used, but it is not damaged.
func otherVersion(in string) bool {
	var n int
	_, err := fmt.Sscanf(in, "goclaw index %d\n", &n)
	return err == nil && !strings.HasPrefix(in, indexMagic)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// entry is a log in the index, or the state of a sessions.json.
type entry struct {
	rel  string
	id   session.ID
	key  session.Key // from sessions.json, for a log that has none
	view view
}

func (e *entry) isTable() bool { return filepath.Base(e.rel) == indexName }

// coder visits the fields of an entry and either writes them to b or reads them
// from in, so that reading and writing cannot differ. The texts it reads are
// parts of in.
type coder struct {
	b    []byte
	in   string
	read bool
	bad  bool
}

func (c *coder) i64(p *int64) {
	if !c.read {
		c.b = binary.AppendVarint(c.b, *p)
		return
	}
	var u uint64
	for i := 0; i < len(c.in) && i < binary.MaxVarintLen64; i++ {
		u |= uint64(c.in[i]&0x7f) << (7 * i)
		if c.in[i] < 0x80 {
			c.in = c.in[i+1:]
			*p = int64(u>>1) ^ -int64(u&1)
			return
		}
	}
	c.bad = true
}

func (c *coder) text(p *string) {
	n := int64(len(*p))
	c.i64(&n)
	if !c.read {
		c.b = append(c.b, *p...)
		return
	}
	if c.bad || n < 0 || n > int64(len(c.in)) {
		c.bad = true
		return
	}
	*p, c.in = c.in[:n], c.in[n:]
}

func (c *coder) bool(p *bool) {
	v := int64(0)
	if *p {
		v = 1
	}
	c.i64(&v)
	*p = v == 1
}

func (c *coder) time(p *time.Time) {
	zero := p.IsZero()
	c.bool(&zero)
	if zero {
		*p = time.Time{}
		return
	}
	sec, ns := p.Unix(), int64(p.Nanosecond())
	c.i64(&sec)
	c.i64(&ns)
	if c.read {
		*p = time.Unix(sec, ns).UTC()
	}
}

func num[T ~int | ~int64 | ~uint32 | ~uint64](c *coder, p *T) {
	v := int64(*p)
	c.i64(&v)
	*p = T(v)
}

func text[T ~string](c *coder, p *T) {
	v := string(*p)
	c.text(&v)
	*p = T(v)
}

func (c *coder) entry(e *entry) {
	text(c, &e.rel)
	text(c, &e.id)
	text(c, &e.key)
	v := &e.view
	num(c, &v.stat.ino)
	num(c, &v.stat.size)
	num(c, &v.stat.mtime)
	num(c, &v.gen)
	num(c, &v.next)
	num(c, &v.lines)
	c.bool(&v.open)
	num(c, &v.version)
	c.bool(&v.keyless)
	num(c, &v.sums.head)
	num(c, &v.sums.tail)
	num(c, &v.keep.seq)
	num(c, &v.keep.off)
	num(c, &v.keep.line)
	num(c, &v.keepSum)
	num(c, &v.newest.ms)
	n := len(v.newest.ids)
	full := n == maxNewest
	c.bool(&full)
	num(c, &n)
	if c.read {
		if n < 0 || n > maxNewest {
			c.bad = true
			return
		}
		v.newest.ids = make([]string, n)
	}
	for i := range v.newest.ids {
		c.text(&v.newest.ids[i])
	}
	c.info(&v.info)
}

func (c *coder) info(in *session.Info) {
	text(c, &in.ID)
	text(c, &in.Key)
	c.text(&in.Title)
	program := storekit.ProgramOf(in.Origin)
	c.text(&program)
	storekit.SetProgram(&in.Origin, program)
	c.text(&in.Origin.Path)
	text(c, &in.Origin.Key)
	text(c, &in.Origin.ID)
	num(c, &in.Origin.Seq)
	c.text(&in.Parent)
	c.text(&in.CWD)
	c.time(&in.Created)
	c.time(&in.Updated)
	c.time(&in.Trashed)
	num(c, &in.Records)
	num(c, &in.Last)
	num(c, &in.Compactions)
	num(c, &in.Spent.Input)
	num(c, &in.Spent.Output)
	num(c, &in.Spent.CacheRead)
	num(c, &in.Spent.CacheWrite)
	num(c, &in.Turns)
	c.text(&in.Provider)
	c.text(&in.Model)
	c.text(&in.Thinking)
	num(c, &in.Used)
	c.text(&in.Leaf)
	num(c, &in.KeepFrom)
	num(c, &in.LastBend)
}

// appendEntries adds entries to the bytes of an index.
func appendEntries(b []byte, entries []entry) []byte {
	for _, e := range entries {
		b = appendEntry(b, e)
	}
	return b
}

func appendEntry(b []byte, e entry) []byte {
	c := coder{b: append(b, 0, 0, 0, 0, 0, 0, 0, 0)}
	c.entry(&e)
	payload := c.b[len(b)+8:]
	binary.LittleEndian.PutUint32(c.b[len(b):], uint32(len(payload)))
	binary.LittleEndian.PutUint32(c.b[len(b)+4:], checksum(payload))
	return c.b
}

// parseIndex calls f with each entry of an index. It stops at the first damage,
// and then clean is false.
func parseIndex(in string, f func(*entry)) (clean bool) {
	in, ok := strings.CutPrefix(in, indexMagic)
	for ok && len(in) >= 8 {
		var b [8]byte
		copy(b[:], in)
		size, sum := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
		if uint64(size) > uint64(len(in)-8) {
			break
		}
		payload := in[8 : 8+size]
		if checksum([]byte(payload)) != sum {
			break
		}
		in = in[8+size:]
		var e entry
		c := coder{in: payload, read: true}
		if c.entry(&e); c.bad {
			return false
		}
		e.view.known = true
		f(&e)
	}
	return ok && in == ""
}
