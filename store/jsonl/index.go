package jsonl

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"

	"goclaw/session"
)

// The index file remembers what each log adds up to, and the state of the log
// that it was computed from. It is a list of entries, of which the last for a
// path holds, so that saving costs what changed. It is never trusted against
// a log: an entry that does not fit its log, or that is damaged, is computed
// again.
//
//	"goclaw index 1\n", then for each entry: length, CRC-32C, payload

const indexMagic = "goclaw index 1\n"

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
// it: one walk cannot disagree with itself.
type coder struct {
	b    []byte
	read bool
	bad  bool
}

func (c *coder) i64(p *int64) {
	if !c.read {
		c.b = binary.AppendVarint(c.b, *p)
		return
	}
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.bad = true
		return
	}
	*p, c.b = v, c.b[n:]
}

func (c *coder) text(p *string) {
	n := int64(len(*p))
	c.i64(&n)
	if !c.read {
		c.b = append(c.b, *p...)
		return
	}
	if c.bad || n < 0 || n > int64(len(c.b)) {
		c.bad = true
		return
	}
	*p, c.b = string(c.b[:n]), c.b[n:]
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
	num(c, &v.next)
	num(c, &v.lines)
	c.bool(&v.bare)
	num(c, &v.version)
	c.bool(&v.keyless)
	num(c, &v.sums.head)
	num(c, &v.sums.tail)
	num(c, &v.keep.seq)
	num(c, &v.keep.off)
	num(c, &v.keep.line)
	num(c, &v.keepSum)
	num(c, &v.ids.max)
	c.bool(&v.ids.full)
	n := len(v.ids.at)
	num(c, &n)
	if c.read {
		if n < 0 || n > maxAt {
			c.bad = true
			return
		}
		v.ids.at = make([]string, n)
	}
	for i := range v.ids.at {
		c.text(&v.ids.at[i])
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
	num(c, &in.Folds)
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
	num(c, &in.Crook)
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

// parseIndex returns the entries that b holds, the last for each path, and how
// many there were. Damage ends the reading: what follows is computed again,
// and clean is false.
func parseIndex(b []byte) (all map[string]entry, n int, clean bool) {
	all = map[string]entry{}
	b, ok := bytes.CutPrefix(b, []byte(indexMagic))
	for ok && len(b) >= 8 {
		size, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if uint64(size) > uint64(len(b)-8) {
			break
		}
		payload := b[8 : 8+size]
		if checksum(payload) != sum {
			break
		}
		b = b[8+size:]
		var e entry
		c := coder{b: payload, read: true}
		if c.entry(&e); c.bad {
			break
		}
		e.view.known = true
		all[e.rel] = e
		n++
	}
	return all, n, ok && len(b) == 0
}

func (s *Store) indexPath() string { return filepath.Join(s.dir, own, "index") }

// loadIndex takes over what the index file says. It is read once; whatever it
// says is held against the logs when they are used.
func (s *Store) loadIndex() {
	b, _, err := readFile(s.disk, s.indexPath())
	if err != nil {
		return // there is none, or it cannot be read: the logs tell
	}
	all, n, clean := parseIndex(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries = n; !clean {
		s.entries = math.MaxInt32 // to be written anew
	}
	for rel, e := range all {
		if filepath.Base(rel) == indexName {
			s.tables[rel] = &table{stat: e.view.stat}
			continue
		}
		l := &log{id: e.id, rel: rel, key: e.key, view: e.view}
		l.live, l.trashed = rel, time.Time{}
		if live, at, ok := fromTrash(rel); ok {
			l.live, l.trashed = live, at
		}
		s.register(l)
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
