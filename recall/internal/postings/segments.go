package postings

import (
	"encoding/binary"
	"errors"
	"sort"

	"goclaw/internal/sqlx"
	"goclaw/session"
)

// Small segments are joined when there are this many of one size.
const maxSmall = 8

// Session is what the file knows of a session.
type Session struct {
	ID   session.ID
	N    int64       // its number here; the group of its docs
	Have session.Seq // how many of its records are in segments
	Gen  int64       // which version of its log that was
}

// Part is a range of a session's records in a segment.
type Part struct {
	ID       session.ID
	N        int64
	From, To session.Seq
}

// Append appends p to parts, or extends the last one if p continues it.
func Append(parts []Part, p Part) []Part {
	if n := len(parts); n > 0 && parts[n-1].N == p.N && parts[n-1].To+1 == p.From {
		parts[n-1].To = p.To
		return parts
	}
	return append(parts, p)
}

// Sessions returns the sessions that the file knows.
func (d *DB) Sessions() (map[session.ID]Session, error) {
	known := map[session.ID]Session{}
	err := d.Each(func(r sqlx.Row) error {
		s := Session{session.ID(r.ColumnText(0)), r.Int(1), session.Seq(r.Int(2)), r.Int(3)}
		known[s.ID] = s
		return nil
	}, "SELECT id, n, have, gen FROM recall_sessions")
	return known, err
}

// Number gives a number to each of sessions that has none.
func (d *DB) Number(sessions []Session) error {
	return d.Within(func() error {
		for i := range sessions {
			s := &sessions[i]
			if s.N != 0 {
				continue
			}
			if err := d.Run("INSERT OR IGNORE INTO recall_sessions (id, gen) VALUES (?, ?)", string(s.ID), s.Gen); err != nil {
				return err
			}
			var err error
			if s.N, err = d.Int("SELECT n FROM recall_sessions WHERE id = ?", string(s.ID)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget removes sessions with their vectors, and every segment with words of
// theirs.
func (d *DB) Forget(numbers []int64) error {
	return d.Within(func() error {
		for _, n := range numbers {
			if err := d.Run("DELETE FROM recall_sessions WHERE n = ?", n); err != nil {
				return err
			}
		}
		return nil
	})
}

// Missing returns the records of s up to last that no segment holds.
func (d *DB) Missing(s Session, last session.Seq) (missing []Part, err error) {
	at := session.Seq(0)
	err = d.Each(func(r sqlx.Row) error {
		since, upto := session.Seq(r.Int(0)), session.Seq(r.Int(1))
		if since > at+1 {
			missing = append(missing, Part{s.ID, s.N, at + 1, since - 1})
		}
		at = max(at, upto)
		return nil
	}, "SELECT since, upto FROM recall_in WHERE session = ? ORDER BY since", s.N)
	if at < last {
		missing = append(missing, Part{s.ID, s.N, at + 1, last})
	}
	return missing, err
}

// errTaken says that another process has indexed the same.
var errTaken = errors.New("recall: indexed by another")

// Write writes one segment with parts, in the place of the segments old. If
// another process was faster, it writes nothing: the next search sees what is
// still missing.
func (d *DB) Write(b *Builder, parts []Part, old ...int64) error {
	err := d.Within(func() error {
		for _, seg := range old {
			if n, err := d.Int("SELECT count(*) FROM recall_segments WHERE seg = ?", seg); err != nil {
				return err
			} else if n == 0 {
				return errTaken
			}
			if err := d.Drop(seg); err != nil {
				return err
			}
		}
		for _, p := range parts {
			if err := d.free(p); err != nil {
				return err
			}
		}
		return d.insert(b, parts)
	})
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// free checks that p is still to be indexed.
func (d *DB) free(p Part) error {
	taken, err := d.Int("SELECT count(*) FROM recall_in WHERE session = ? AND since <= ? AND upto >= ?", p.N, int64(p.To), int64(p.From))
	if err != nil {
		return err
	}
	known, err := d.Int("SELECT count(*) FROM recall_sessions WHERE n = ?", p.N)
	if err != nil {
		return err
	}
	if taken > 0 || known == 0 {
		return errTaken
	}
	return nil
}

func (d *DB) insert(b *Builder, parts []Part) error {
	if err := d.Run("INSERT INTO recall_segments (size, words, docs) VALUES (?, ?, ?)", len(b.docs), b.words, encodeDocs(b.docs)); err != nil {
		return err
	}
	seg := d.LastInsertRowID()
	var firsts []byte
	pos := seg << 32
	err := b.blocks(func(first string, data []byte) error {
		firsts = append(binary.AppendUvarint(firsts, uint64(len(first))), first...)
		pos++
		return d.Run("INSERT INTO recall_terms VALUES (?, ?)", pos, data)
	})
	if err != nil {
		return err
	}
	if err := d.Run("INSERT INTO recall_terms VALUES (?, ?)", seg<<32, firsts); err != nil {
		return err
	}
	for _, p := range parts {
		if err := d.Run("INSERT INTO recall_in VALUES (?, ?, ?, ?)", p.N, int64(p.From), int64(p.To), seg); err != nil {
			return err
		}
		if err := d.Run("UPDATE recall_sessions SET have = have + ? WHERE n = ?", int64(p.To-p.From+1), p.N); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes a segment. What it held is missing from then on.
func (d *DB) Drop(seg int64) error { return d.Run("DELETE FROM recall_segments WHERE seg = ?", seg) }

// smallSizes are below how many docs segments are joined with others of their
// size.
var smallSizes = []int{2048, 16384}

// Small calls join for segments of one size that are to be joined, where there
// are many, with what they hold. A posting is a word or more and takes a byte
// or two, so that the number of words bounds the size of the result.
func (d *DB) Small(join func(segs []int64, parts []Part) error) error {
	for _, limit := range smallSizes {
		var segs []int64
		size, words := 0, 0
		err := d.Each(func(r sqlx.Row) error {
			docs, n := int(r.Int(1)), int(r.Int(2))
			if size+docs <= maxDocs && words+n <= maxBytes {
				segs, size, words = append(segs, r.Int(0)), size+docs, words+n
			}
			return nil
		}, "SELECT seg, size, words FROM recall_segments WHERE size < ? AND words < ? ORDER BY seg", limit, maxBytes/maxSmall)
		if err != nil {
			return err
		}
		if len(segs) < maxSmall {
			continue
		}
		parts, err := d.parts(segs)
		if err != nil {
			return err
		}
		if err := join(segs, parts); err != nil {
			return err
		}
	}
	return nil
}

// parts returns what segs hold, in order.
func (d *DB) parts(segs []int64) (parts []Part, err error) {
	for _, seg := range segs {
		err := d.Each(func(r sqlx.Row) error {
			parts = append(parts, Part{session.ID(r.ColumnText(0)), r.Int(1), session.Seq(r.Int(2)), session.Seq(r.Int(3))})
			return nil
		}, "SELECT id, session, since, upto FROM recall_in JOIN recall_sessions ON n = session WHERE seg = ?", seg)
		if err != nil {
			return nil, err
		}
	}
	sort.Slice(parts, func(i, j int) bool {
		a, b := parts[i], parts[j]
		return a.N < b.N || a.N == b.N && a.From < b.From
	})
	return parts, nil
}

// Refresh makes segs those that are in the file, by their numbers, and reports
// whether there are new ones.
func (d *DB) Refresh(segs map[int64]*Segment) (news bool, err error) {
	there := map[int64]bool{}
	err = d.Each(func(r sqlx.Row) error { there[r.Int(0)] = true; return nil }, "SELECT seg FROM recall_segments")
	if err != nil {
		return false, err
	}
	for id := range segs {
		if !there[id] {
			delete(segs, id)
		}
	}
	for id := range there {
		if segs[id] != nil {
			continue
		}
		if segs[id], err = d.load(id); err != nil {
			delete(segs, id)
			return false, err
		}
		news = true
	}
	return news, nil
}

// load reads a segment; its blocks are read as they are needed.
func (d *DB) load(id int64) (*Segment, error) {
	s := &Segment{ID: id}
	err := d.Each(func(r sqlx.Row) (err error) {
		s.Words = int(r.Int(0))
		s.Docs, err = decodeDocs(r.Bytes(1))
		return err
	}, "SELECT words, docs FROM recall_segments WHERE seg = ?", id)
	if err != nil {
		return nil, s.damage(err)
	}
	block := func(n int64) ([]byte, error) {
		data, err := d.Blob("SELECT data FROM recall_terms WHERE pos = ?", id<<32|n)
		if err == nil && (data == nil || n > 0 && len(data) == 0) {
			err = s.damage(errPostings)
		}
		return data, err
	}
	firsts, err := block(0)
	if err != nil {
		return nil, err
	}
	if s.firsts, err = decodeFirsts(firsts); err != nil {
		return nil, s.damage(err)
	}
	s.block = func(n int) ([]byte, error) { return block(int64(n) + 1) }
	return s, nil
}

// examine reads every list of s.
func (d *DB) examine(s *Segment) error {
	var ps []Posting
	return s.damage(d.Each(func(r sqlx.Row) (err error) {
		wrong := eachList(r.Bytes(0), func(_, list []byte) bool {
			ps, err = decode(list, len(s.Docs), ps[:0])
			return err == nil
		})
		return errors.Join(wrong, err)
	}, "SELECT data FROM recall_terms WHERE pos > ? AND pos < ?", s.ID<<32, (s.ID+1)<<32))
}
