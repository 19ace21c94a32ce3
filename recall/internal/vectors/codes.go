package vectors

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"

	"goclaw/internal/sqlx"
	"goclaw/recall/internal/cores"
	"goclaw/recall/internal/postings"
)

// Codes are the vectors of all messages, in memory: 36 bytes for each. The
// zero value is empty; Refresh fills it.
type Codes struct {
	of      string // the model whose vectors they are, and their length
	version int64  // the state of the file that they were read from
	by      map[int64]*coded
	order   []*coded // the sessions as they lie in memory; nil: not known
	room    arena    // of those that were there at first
	settled int      // how many were read into room, and how many came since
	loose   int
}

// Close gives back the memory. c is empty then.
func (c *Codes) Close() {
	c.room.free()
	*c = Codes{}
}

// coded is the vectors of one session, in the order of its records.
type coded struct {
	n     uint32 // the session
	count int64  // as recall_sessions says
	seqs  []uint32
	signs []Signs // none: the model gives it none
}

// none is what a message has that the model gives no vector.
var none Signs

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

// From how many vectors on that are on the heap all are read into one room
// again: some, and a share of the others.
var looseMost = 16 << 10 // a test sets it

const looseShare = 16

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
	if c.by == nil || c.of != of || c.loose > looseMost+c.settled/looseShare {
		return c.load(t, version, of)
	}
	if c.version == version {
		return nil
	}
	changed := map[int64]int64{}
	there := map[int64]bool{}
	err = t.DB.Each(func(r sqlx.Row) error {
		n, count := r.Int(0), r.Int(1)
		there[n] = true
		if b := c.by[n]; b == nil || b.count != count {
			changed[n] = count
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
	c.order = nil
	for n, count := range changed {
		b := &coded{n: uint32(n), count: count}
		err := t.DB.Each(func(r sqlx.Row) error {
			b.add(r.Int(0), r.Bytes(1))
			return nil
		}, "SELECT pos, data FROM recall_codes WHERE pos >= ? AND pos < ?", n<<32, (n+1)<<32)
		if err != nil {
			return err
		}
		c.by[n] = b
		c.loose += len(b.seqs)
	}
	c.version = version
	return nil
}

// load reads all.
func (c *Codes) load(t Table, version int64, of string) error {
	c.Close()
	by, most := map[int64]*coded{}, int64(0)
	err := t.DB.Each(func(r sqlx.Row) error {
		by[r.Int(0)] = &coded{n: uint32(r.Int(0)), count: r.Int(1)}
		most += r.Int(1)
		return nil
	}, "SELECT n, coded FROM recall_sessions WHERE coded > 0")
	if err != nil {
		return err
	}
	c.room = newArena(int(most))
	var now *coded // the vectors of one session follow each other
	last := int64(0)
	keep := func() {
		if b := by[last]; b != nil && now != nil {
			c.room.end(now)
			b.seqs, b.signs = now.seqs, now.signs
			c.settled += len(b.seqs)
		}
		now = c.room.part()
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
		c.Close()
		return err
	}
	keep()
	c.by, c.version, c.of = by, version, of
	return nil
}

// put notes vectors of session n that were written to the file by this process:
// added new ones, after which it has count.
func (c *Codes) put(n, added, count int64, made *coded) {
	if c.by == nil {
		return
	}
	b := c.by[n]
	if b == nil {
		b = &coded{n: uint32(n)}
		c.by[n], c.order = b, nil
	}
	if b.count+added == count { // else another process wrote too: Refresh reads that
		b.count = count
	}
	var news coded
	for i, seq := range made.seqs {
		if _, known := slices.BinarySearch(b.seqs, seq); !known {
			news.seqs, news.signs = append(news.seqs, seq), append(news.signs, made.signs[i])
		}
	}
	b.merge(news)
	c.loose += len(news.seqs)
}

// merge adds all of news at once, which has none that c has: they are often
// older than those there are.
func (c *coded) merge(news coded) {
	i, j := len(c.seqs)-1, len(news.seqs)-1
	c.seqs, c.signs = append(c.seqs, news.seqs...), append(c.signs, news.signs...)
	for at := len(c.seqs) - 1; j >= 0; at-- {
		if i >= 0 && c.seqs[i] > news.seqs[j] {
			c.seqs[at], c.signs[at] = c.seqs[i], c.signs[i]
			i--
		} else {
			c.seqs[at], c.signs[at] = news.seqs[j], news.signs[j]
			j--
		}
	}
}

// Missing calls late for each of docs, which are in their order in a segment,
// whose vector was not made yet: the last of them first.
func (c *Codes) Missing(docs []postings.Doc, late func(postings.Doc)) {
	var seqs []uint32 // of the session, up to d
	group := ^uint32(0)
	for _, d := range slices.Backward(docs) {
		if d.Group != group {
			group, seqs = d.Group, nil
			if b := c.by[int64(group)]; b != nil {
				seqs = b.seqs
			}
		}
		for len(seqs) > 0 && seqs[len(seqs)-1] > d.Seq {
			seqs = seqs[:len(seqs)-1]
		}
		if len(seqs) == 0 || seqs[len(seqs)-1] != d.Seq {
			late(d)
		}
	}
}

// Code returns the vector of a message, nil if there is none yet.
func (c *Codes) Code(d postings.Doc) Code {
	if b := c.by[int64(d.Group)]; b != nil {
		if i, ok := slices.BinarySearch(b.seqs, d.Seq); ok && b.signs[i] != none {
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

// atOnce is how many sessions a core goes through at once.
const atOnce = 64

// Nearest returns the k messages of segs nearest to query, of those that allow
// allows, nil for all. Several goroutines call allow.
func (c *Codes) Nearest(query Vector, segs []*postings.Segment, allow func(postings.Doc) bool, k int) []Place {
	if len(query) != codeBits || k <= 0 {
		return nil
	}
	if c.order == nil {
		c.order = slices.SortedFunc(maps.Values(c.by), func(a, b *coded) int { return cmp.Compare(a.n, b.n) })
	}
	signs := signsOf(query)
	sieves := cores.Each((len(c.order)+atOnce-1)/atOnce, func(s *sieve, i int) {
		if s.want == 0 {
			s.want, s.most = rough*k, codeBits
		}
		for _, b := range c.order[i*atOnce : min((i+1)*atOnce, len(c.order))] {
			s.sift(b, signs, segs, allow)
		}
	})
	type near struct {
		Place
		cosine float64
	}
	var all []near
	for _, p := range together(sieves) {
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

// group is where the docs of one session are.
type group struct {
	found bool
	runs  []run
}

// run is docs of one segment, the first and the one after the last.
type run struct{ seg, from, to int }

func (g *group) find(segs []*postings.Segment, n uint32) {
	g.found, g.runs = true, g.runs[:0]
	for i, s := range segs {
		if docs := s.Docs; len(docs) > 0 && docs[0].Group <= n && n <= docs[len(docs)-1].Group {
			from, _ := slices.BinarySearchFunc(docs, postings.Doc{Group: n}, postings.ByPlace)
			to := from
			for to < len(docs) && docs[to].Group == n {
				to++
			}
			if from < to {
				g.runs = append(g.runs, run{i, from, to})
			}
		}
	}
}

// at returns where the doc of a record is.
func (g *group) at(segs []*postings.Segment, seq uint32) (Place, bool) {
	for _, r := range g.runs {
		docs := segs[r.seg].Docs[r.from:r.to]
		if i, ok := slices.BinarySearchFunc(docs, seq, func(d postings.Doc, seq uint32) int { return cmp.Compare(d.Seq, seq) }); ok {
			return Place{r.seg, r.from + i}, true
		}
	}
	return Place{}, false
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
	in     group // the session that is being sifted
}

// sift adds the messages of b that are near to query and allowed.
func (s *sieve) sift(b *coded, query Signs, segs []*postings.Segment, allow func(postings.Doc) bool) {
	s.in.found = false
	for j := range b.signs {
		d := query.apart(&b.signs[j])
		if d > s.most || b.signs[j] == none {
			continue
		}
		if !s.in.found {
			s.in.find(segs, b.n)
		}
		if p, ok := s.in.at(segs, b.seqs[j]); ok && (allow == nil || allow(segs[p.Seg].Docs[p.At])) {
			s.add(p, d)
		}
	}
}

// together returns what a sieve would keep of all that sieves have kept.
func together(sieves []sieve) []Place {
	if len(sieves) == 0 {
		return nil
	}
	s := &sieves[0]
	for i := range sieves[1:] {
		other := &sieves[1+i]
		for j, p := range other.places {
			if a := other.apart[j]; a <= s.most && a <= other.most {
				s.add(p, a)
			}
		}
	}
	return s.kept()
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
