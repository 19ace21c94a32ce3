package ranking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
)

// slowly ranks as Rank does, one doc after the other and without any short cut.
func slowly(t *testing.T, c *Corpus, q *Question, k int, near []vectors.Place) []Candidate {
	t.Helper()
	var best, meant []Candidate
	weights := c.near()
	for si, s := range c.Segs {
		x := &scratch{}
		x.fit(len(s.Docs))
		scored := make([]bool, len(s.Docs))
		for i, term := range c.terms {
			count := make([][]uint32, len(term.by[si])) // of each variant, by doc
			for v, of := range term.by[si] {
				ps, err := s.Decode(of.list, nil)
				if err != nil {
					t.Fatal(err)
				}
				count[v] = make([]uint32, len(s.Docs))
				for _, p := range ps {
					if c.Mute == nil || postings.ByPlace(*c.Mute, s.Docs[p.At]) != 0 {
						count[v][p.At] = p.Count
						x.holds[p.At] |= 1 << i
					}
				}
			}
			for j, d := range s.Docs {
				kind, tf, hit := c.kind(d.Group), float32(0), false
				for v, of := range term.by[si] {
					for at := max(j-2, 0); at <= min(j+2, len(s.Docs)-1); at++ {
						from := s.Docs[at]
						weight := weights[kind][from.Flags&postings.Asks][at-j+2]
						if count[v][at] == 0 || from.Group != d.Group || weight == 0 {
							continue
						}
						b := c.kinds[kind].b
						if term.code {
							b = c.kinds[kind].flat
						}
						length := float32(1 / (1 - b + b*float64(min(from.Words, postings.MaxLength-1))/c.avg))
						tf += weight * (of.factor * float32(count[v][at]) * length)
						hit = true
					}
				}
				if k1 := float32(c.kinds[kind].k1); hit {
					x.score[j] += term.value[kind]*tf*(k1+1)/(tf+k1) + math.SmallestNonzeroFloat32
					scored[j] = true
				}
			}
			if term.speakers != nil && term.speakers[si] != nil {
				ps, err := s.Decode(term.speakers[si], nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range ps {
					x.named[p.At] = c.kind(s.Docs[p.At].Group) == 0
				}
			}
		}
		for at := range s.Docs {
			d := &s.Docs[at]
			kind, words := c.kind(d.Group), float64(x.score[at])
			w := c.kinds[kind]
			if w.cover > 0 {
				words *= 1 - w.cover + w.cover*float64(value(c.terms, kind, x.holds[at])/max(value(c.terms, kind, math.MaxUint64), 1e-9))
			}
			if w.wide != 0 {
				words += w.wide * float64(value(c.terms, kind, around(s.Docs, x.holds, at)))
			}
			if scored[at] && (c.Allow == nil || c.Allow(*d)) {
				best = append(best, Candidate{Seg: si, At: at, Doc: *d, Score: w.weigh(q, s.Docs, at, words, x.named[at]), Own: x.holds[at] != 0 || x.named[at], Dated: q.said(d.Time()) > 0,
					Share: share(c.terms, kind, x.holds[at]), w: w})
			}
		}
		for _, p := range near {
			if p.Seg == si {
				meant = append(meant, c.ranking(q).meant(piece{seg: si, docs: s.Docs}, p.At, x))
			}
		}
	}
	slices.SortFunc(best, byScore)
	return merge(best[:min(k, len(best))], meant)
}

// TestRankSlowly: the short cuts of Rank change nothing of what it finds.
func TestRankSlowly(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	vocabulary := strings.Fields("boat river harbour sail anchor storm captain parseConfig read_file budget garden recipe ticket Monday train window bottle music violin lesson")
	text := func() string {
		var b strings.Builder
		for range 1 + rng.IntN(30) {
			b.WriteString(vocabulary[min(rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)))] + " ")
		}
		return b.String() + []string{".", "?"}[rng.IntN(2)]
	}
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	flags := []postings.Flags{0, postings.User, postings.Tool, postings.Asks, postings.Asks | postings.MostlyAsks, postings.User | postings.Asks}
	var segs []*postings.Segment
	group := uint32(0)
	for n := range 5 {
		var b postings.Builder
		for range n * n * 4 { // the first has none
			group++
			people := group%3 == 0
			for seq := range 1 + rng.IntN(9) {
				speaker := ""
				if people {
					speaker = []string{"Ada", "Grace"}[rng.IntN(2)]
				}
				at := now.Add(-time.Duration(rng.IntN(60*24)) * time.Hour)
				b.Add(postings.Doc{Group: group, Seq: uint32(seq), Flags: flags[rng.IntN(len(flags))]}.At(at.Unix()), text(), speaker)
			}
		}
		segs = append(segs, b.Segment())
	}
	defer func(size int) { pieceSize = size }(pieceSize)
	pieceSize = 50
	people := postings.PeopleTalk(segs)
	muted := segs[4].Docs[17]
	tests := 0
	for name, c := range map[string]func() *Corpus{
		"both":   func() *Corpus { return Messages(segs, people) },
		"people": func() *Corpus { return Messages(segs, nil) },
		"models": func() *Corpus { return Messages(segs, map[uint32]bool{}) },
		"notes":  func() *Corpus { return Notes(segs) },
		"muted": func() *Corpus {
			c := Messages(segs, people)
			c.Mute = &muted
			return c
		},
		"some": func() *Corpus {
			c := Messages(segs, people)
			c.Allow = func(d postings.Doc) bool { return d.Seq%2 == 1 }
			return c
		},
	} {
		for _, ask := range []string{
			"What did Ada say about the boat?", "boat river", "parseConfig", "read_file in the harbour", "Which lesson was on Monday?", "When did we buy my violin last week?",
			"harbor strom", "sai", "garden recipe budget ticket train window bottle music?", "nothing of it", "",
		} {
			for _, k := range []int{1, 20, 5000} {
				c, q := c(), Ask(ask, now)
				if err := c.Look(q); err != nil {
					t.Fatal(err)
				}
				near := []vectors.Place{{Seg: 4, At: rng.IntN(len(segs[4].Docs))}, {Seg: 2, At: rng.IntN(len(segs[2].Docs))}}
				got, err := c.Rank(q, k, near)
				if err != nil {
					t.Fatal(err)
				}
				want := slowly(t, c, q, k, near)
				// Those that are near come in the order of the segments, or that of the cores.
				for _, cands := range [][]Candidate{got, want} {
					slices.SortStableFunc(cands, func(a, b Candidate) int {
						if !a.Meant || !b.Meant {
							return 0
						}
						return a.Seg - b.Seg
					})
				}
				if len(want) > 2 {
					tests++
				}
				if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
					t.Fatalf("%s, %q, %d: got %d: %.300s\nwant %d: %.300s", name, ask, k, len(got), g, len(want), w)
				}
			}
		}
	}
	if tests < 100 {
		t.Errorf("only %d searches found something", tests)
	}
}
