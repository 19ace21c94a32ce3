package vectors

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"goclaw/internal/sqlx"
	"goclaw/recall/internal/postings"
	"goclaw/session"
)

// Codes are the vectors of all messages, in memory: 36 bytes for each. The
// zero value is empty; Refresh fills it.
type Codes struct {
	of      string // the model whose vectors they are, and their length
	version int64  // the state of the file that they were read from
	by      map[int64]*coded
}

// coded is the vectors of one session, in the order of its records.
type coded struct {
	upto  session.Seq // as recall_sessions says
	seqs  []uint32
	signs []Signs
}

// add adds the vectors of one chunk.
func (c *coded) add(pos int64, data []byte) {
	first := uint32(pos) << chunkBits
	for ; len(data) >= entrySize; data = data[entrySize:] {
		var s Signs
		for i := range s {
			s[i] = binary.LittleEndian.Uint64(data[1+8*i:])
		}
		c.put(first+uint32(data[0]), s)
	}
}

// put adds one vector, mostly at the end.
func (c *coded) put(seq uint32, s Signs) {
	at, known := len(c.seqs), false
	if at > 0 && c.seqs[at-1] >= seq {
		at, known = slices.BinarySearch(c.seqs, seq)
	}
	if known {
		c.signs[at] = s
		return
	}
	c.seqs, c.signs = slices.Insert(c.seqs, at, seq), slices.Insert(c.signs, at, s)
}

// Refresh makes c what is in the file. Sessions whose vectors have not changed
// are not read again.
func (c *Codes) Refresh(t Table) error {
	version, err := t.DB.Int("PRAGMA data_version")
	if err != nil {
		return err
	}
	of, err := t.owner()
	if err != nil {
		return err
	}
	if c.by != nil && c.version == version && c.of == of {
		return nil
	}
	if c.by == nil || c.of != of {
		return c.load(t, version, of)
	}
	changed := map[int64]session.Seq{}
	there := map[int64]bool{}
	err = t.DB.Each(func(r sqlx.Row) error {
		n, upto := r.Int(0), session.Seq(r.Int(1))
		there[n] = true
		if b := c.by[n]; b == nil || b.upto != upto {
			changed[n] = upto
		}
		return nil
	}, "SELECT n, coded FROM recall_sessions WHERE coded > 0")
	if err != nil {
		return err
	}
	for n := range c.by {
		if !there[n] {
			delete(c.by, n)
		}
	}
	for n, upto := range changed {
		b := &coded{upto: upto}
		err := t.DB.Each(func(r sqlx.Row) error {
			b.add(r.Int(0), r.Bytes(1))
			return nil
		}, "SELECT pos, data FROM recall_codes WHERE pos >= ? AND pos < ?", n<<32, (n+1)<<32)
		if err != nil {
			return err
		}
		c.by[n] = b
	}
	c.version = version
	return nil
}

// load reads all.
func (c *Codes) load(t Table, version int64, of string) error {
	by := map[int64]*coded{}
	err := t.DB.Each(func(r sqlx.Row) error {
		by[r.Int(0)] = &coded{upto: session.Seq(r.Int(1))}
		return nil
	}, "SELECT n, coded FROM recall_sessions WHERE coded > 0")
	if err != nil {
		return err
	}
	// The vectors of one session follow each other: collected first, they take
	// no more room than they need.
	var now coded
	last := int64(-1)
	keep := func() {
		if b := by[last]; b != nil {
			b.seqs, b.signs = slices.Clone(now.seqs), slices.Clone(now.signs)
		}
		now.seqs, now.signs = now.seqs[:0], now.signs[:0]
	}
	err = t.DB.Each(func(r sqlx.Row) error {
		if n := r.Int(0) >> 32; n != last {
			keep()
			last = n
		}
		now.add(r.Int(0), r.Bytes(1))
		return nil
	}, "SELECT pos, data FROM recall_codes ORDER BY pos")
	if err != nil {
		return err
	}
	keep()
	c.by, c.version, c.of = by, version, of
	return nil
}

// Put notes vectors that were written to the file by this process.
func (c *Codes) Put(n int64, upto session.Seq, seqs []session.Seq, vs [][]float32) {
	if c.by == nil {
		return
	}
	b := c.by[n]
	if b == nil {
		b = &coded{}
		c.by[n] = b
	}
	b.upto = upto
	for i, v := range vs {
		b.put(uint32(seqs[i]), SignsOf(Reduce(v)))
	}
}

// Code returns the vector of a message, nil if there is none yet.
func (c *Codes) Code(d postings.Doc) Code {
	if b := c.by[int64(d.Group)]; b != nil {
		if i, ok := slices.BinarySearch(b.seqs, d.Seq); ok {
			return b.signs[i]
		}
	}
	return nil
}

// Sessions returns the numbers of the sessions that have vectors.
func (c *Codes) Sessions() []int64 { return slices.Collect(maps.Keys(c.by)) }

// Place is where a doc is: the segment, and its place there.
type Place struct{ Seg, At int }

// rough is how many messages are compared exactly for each that is wanted. The
// others are farther away by the number of signs that differ.
const rough = 4

// Nearest returns the k messages of segs nearest to query, of those that allow
// allows, nil for all.
func (c *Codes) Nearest(query Vector, segs []*postings.Segment, allow func(postings.Doc) bool, k int) []Place {
	if len(query) != codeBits || len(c.by) == 0 || k <= 0 {
		return nil
	}
	s := sieve{want: rough * k, most: codeBits}
	signs := SignsOf(query)
	for si, seg := range segs {
		docs := seg.Docs
		for at := 0; at < len(docs); {
			group := docs[at].Group
			b := c.by[int64(group)]
			if b == nil {
				for at < len(docs) && docs[at].Group == group {
					at++
				}
				continue
			}
			j, _ := slices.BinarySearch(b.seqs, docs[at].Seq)
			for ; at < len(docs) && docs[at].Group == group; at++ {
				for j < len(b.seqs) && b.seqs[j] < docs[at].Seq {
					j++
				}
				if j == len(b.seqs) || b.seqs[j] != docs[at].Seq {
					continue
				}
				if d := signs.apart(&b.signs[j]); d <= s.most && (allow == nil || allow(docs[at])) {
					s.add(Place{si, at}, d)
				}
			}
		}
	}
	type near struct {
		Place
		cosine float64
	}
	var all []near
	for _, p := range s.kept() {
		all = append(all, near{p, c.Code(segs[p.Seg].Docs[p.At]).Cosine(query)})
	}
	slices.SortFunc(all, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.Seg, b.Seg), cmp.Compare(a.At, b.At))
	})
	var out []Place
	for _, n := range all[:min(k, len(all))] {
		out = append(out, n.Place)
	}
	return out
}

// apart returns how many signs differ.
func (s *Signs) apart(o *Signs) int {
	return bits.OnesCount64(s[0]^o[0]) + bits.OnesCount64(s[1]^o[1]) + bits.OnesCount64(s[2]^o[2]) + bits.OnesCount64(s[3]^o[3])
}

// sieve keeps the nearest of many: want, and those as far as the last.
type sieve struct {
	want   int
	most   int // what is farther is not wanted
	n      int // kept
	counts [codeBits + 1]int
	places []Place
	apart  []int
}

func (s *sieve) add(p Place, apart int) {
	s.places, s.apart = append(s.places, p), append(s.apart, apart)
	s.counts[apart]++
	s.n++
	for s.most > 0 && s.n-s.counts[s.most] >= s.want {
		s.n -= s.counts[s.most]
		s.counts[s.most] = 0
		s.most--
	}
	if len(s.places) > 8*s.want+s.n {
		s.kept()
	}
}

// kept drops what is too far, and returns the rest.
func (s *sieve) kept() []Place {
	n := 0
	for i, a := range s.apart {
		if a <= s.most {
			s.places[n], s.apart[n] = s.places[i], a
			n++
		}
	}
	s.places, s.apart = s.places[:n], s.apart[:n]
	return s.places
}
