package jsonl

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/session"
)

// The index file remembers what each log adds up to, and the state of the log
// that it was computed from. It is a list of entries, of which the last for a
// path holds, so that saving costs what changed. It is never trusted against
// a log: an entry that does not fit its log, or that is damaged, is computed
// again.
//
//	"goclaw index 3\n", then for each entry: length, CRC-32C, payload

const indexMagic = "goclaw index 3\n"

// otherVersion reports whether in is an index that another version wrote: as
// good as none, and nothing is wrong with it.
func otherVersion(in string) bool {
	var n int
	_, err := fmt.Sscanf(in, "goclaw index %d\n", &n)
	return err == nil && !strings.HasPrefix(in, indexMagic)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// entry is what the index keeps of one log, or, if rel is a sessions.json, of
// that.
type entry struct {
	rel  string
	id   session.ID
	key  session.Key // from sessions.json, for a log that does not tell
	view view
}

// coder walks the fields of an entry, writing them to b or reading them from
// in: one walk cannot disagree with itself. What is read are parts of in, not
// copies.
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
	c.text(&in.Origin.Program)
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

// appendEntry adds e to the bytes of an index.
func appendEntry(b []byte, e entry) []byte {
	c := coder{b: append(b, 0, 0, 0, 0, 0, 0, 0, 0)}
	c.entry(&e)
	payload := c.b[len(b)+8:]
	binary.LittleEndian.PutUint32(c.b[len(b):], uint32(len(payload)))
	binary.LittleEndian.PutUint32(c.b[len(b)+4:], checksum(payload))
	return c.b
}

// parseIndex calls f with each entry of an index, of which the last for a path
// holds. Damage ends the reading: what follows is computed again, and clean is
// false.
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

func (s *Store) indexPath() string { return s.own("index") }

// loadIndex takes over what the index file says. It is read once; whatever it
// says is held against the logs when they are used.
func (s *Store) loadIndex() {
	b, _, err := readFile(s.disk, s.indexPath())
	if err != nil {
		return // there is none, or it cannot be read: the logs tell
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	clean := parseIndex(string(b), func(e *entry) {
		s.entries++
		if filepath.Base(e.rel) == indexName {
			s.tables[e.rel] = &table{stat: e.view.stat}
			return
		}
		if l := s.files[e.rel]; l != nil && l.id == e.id {
			l.view = e.view
			l.at().key = e.key // nobody else knows of it yet
			return
		}
		l := s.newLog(e.id, e.rel)
		l.view, l.at().key = e.view, e.key
		s.register(l)
	})
	if !clean {
		s.entries = math.MaxInt32 // to be written anew
	}
}

// saveIndex writes the entries of changed logs, or all if the file holds more
// old entries than good ones.
func (s *Store) saveIndex(changed, all []entry) error {
	if len(changed) == 0 {
		return nil
	}
	unlock, err := s.flock(bgContext, "index")
	if err != nil {
		return err
	}
	defer unlock()
	_, err = s.disk.lstat(s.indexPath())
	s.mu.Lock()
	rewrite := err != nil || s.entries+len(changed) > 2*len(all)+64
	s.mu.Unlock()
	if rewrite {
		b := []byte(indexMagic)
		for _, e := range all {
			b = appendEntry(b, e)
		}
		if err := replaceFile(s.disk, s.indexPath(), b, false); err != nil {
			return err
		}
		s.mu.Lock()
		s.entries = len(all)
		s.mu.Unlock()
		return nil
	}
	var b []byte
	for _, e := range changed {
		b = appendEntry(b, e)
	}
	f, err := s.disk.open(s.indexPath(), os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	s.mu.Lock()
	s.entries += len(changed)
	s.mu.Unlock()
	return nil
}
