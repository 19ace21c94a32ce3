package vectors

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"goclaw/recall/internal/postings"
	"goclaw/session"
)

// TestNearest: what is found is what is nearest of all that is allowed,
// whatever was loaded, added by this process, or written by another one.
func TestNearest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	open := func() Table {
		db, err := postings.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return Table{DB: db, Codes: &Codes{}}
	}
	ours, theirs := open(), open()
	defer ours.Codes.Close()
	sessions := make([]postings.Session, 30)
	for i := range sessions {
		sessions[i].ID = session.ID(fmt.Sprint("s", i))
	}
	if err := ours.DB.Number(sessions); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 6))
	var docs []postings.Doc
	last := map[int64]session.Seq{} // of each session
	put := func(table Table, s *postings.Session, n int) {
		t.Helper()
		var made []Made
		upto := last[s.N] + session.Seq(2*n)
		for seq := last[s.N] + 2; seq <= upto; seq += 2 { // the others have none
			made = append(made, Made{s.N, seq, random(rng, 512)})
			docs = append(docs, postings.Doc{Group: uint32(s.N), Seq: uint32(seq) - 1}, postings.Doc{Group: uint32(s.N), Seq: uint32(seq)})
		}
		slices.Reverse(made) // the newest come first
		if err := table.Put(made[:n/2]); err != nil {
			t.Fatal(err)
		}
		if err := table.Put(made[n/2:]); err != nil {
			t.Fatal(err)
		}
		last[s.N] = upto
	}
	check := func(when string) {
		t.Helper()
		if err := ours.Codes.Refresh(ours); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(docs, postings.ByPlace)
		half := min(len(docs)/2+1, len(docs)) // a session is in both
		segs := []*postings.Segment{{Docs: docs[half:]}, {}, {Docs: docs[:half]}}
		for name, allow := range map[string]func(postings.Doc) bool{
			"all":         nil,
			"one session": func(d postings.Doc) bool { return int64(d.Group) == sessions[3].N },
			"some":        func(d postings.Doc) bool { return d.Seq%4 == 0 },
		} {
			query := Reduce(random(rng, 512))
			var want []float64
			for _, s := range segs {
				for _, d := range s.Docs {
					if c := ours.Codes.Code(d); c != nil && (allow == nil || allow(d)) {
						want = append(want, c.Cosine(query))
					}
				}
			}
			slices.SortFunc(want, func(a, b float64) int { return int(1e9 * (b - a)) })
			want = want[:min(3, len(want))]
			var got []float64
			for _, p := range ours.Codes.Nearest(query, segs, allow, 60)[:len(want)] {
				got = append(got, ours.Codes.Code(segs[p.Seg].Docs[p.At]).Cosine(query))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, %s: the nearest have %.3f, want %.3f", when, name, got, want)
			}
		}
	}
	if _, err := ours.SetLength(512); err != nil {
		t.Fatal(err)
	}
	check("at first")
	for i := range sessions[:20] {
		put(ours, &sessions[i], 40)
	}
	ours.Codes.Close()
	check("loaded")
	put(ours, &sessions[3], 20)
	put(ours, &sessions[25], 5)
	check("added")
	put(theirs, &sessions[3], 20)
	put(theirs, &sessions[26], 50)
	check("written by another")
	defer func(most int) { looseMost = most }(looseMost)
	looseMost = 0
	check("settled")
	if n := ours.Codes.loose; n != 0 {
		t.Errorf("%d vectors are on the heap", n)
	}
	put(ours, &sessions[3], 20)
	put(ours, &sessions[27], 5)
	check("added to those that settled")
	if err := theirs.DB.Forget([]int64{sessions[3].N, sessions[7].N}); err != nil {
		t.Fatal(err)
	}
	check("forgotten by another")
	if n := len(ours.Codes.Sessions()); n != 21 {
		t.Errorf("vectors of %d sessions, want 21", n)
	}
}
