package vectors

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"goclaw/recall/internal/postings"
	"goclaw/session"
)

func random(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// TestCosine: vectors as they are kept are about as near to each other as they
// were.
func TestCosine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 256, 384, 512} {
		a, other := random(rng, n), random(rng, n)
		if got := decode(encode(Unit(a))).Cosine(Unit(a)); math.Abs(got-1) > 0.01 {
			t.Errorf("%d numbers: a note and itself: %.3f", n, got)
		}
		if self, far := signsOf(Reduce(a)).Cosine(Reduce(a)), signsOf(Reduce(a)).Cosine(Reduce(other)); n > 2 && (self < 0.7 || math.Abs(far) > 0.3) {
			t.Errorf("%d numbers: a message and itself: %.2f, and another: %.2f", n, self, far)
		}
	}
	if got := Unit(make([]float32, 4)); got != nil {
		t.Errorf("no length: %v", got)
	}
	if got := Unit([]float32{1, 2}).Cosine(Unit([]float32{1, 2, 3})); got != 0 {
		t.Errorf("of another length: %v", got)
	}
}

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	db, err := postings.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	sessions := []postings.Session{{ID: "a"}}
	if err := db.Number(sessions); err != nil {
		t.Fatal(err)
	}
	n := sessions[0].N
	rng := rand.New(rand.NewPCG(3, 4))
	v := random(rng, 512)
	table := Table{DB: db}
	code := func(seq session.Seq) Code {
		t.Helper()
		var codes Codes
		if err := codes.Refresh(table); err != nil {
			t.Fatal(err)
		}
		return codes.Code(postings.Doc{Group: uint32(n), Seq: uint32(seq)})
	}
	if dropped, err := table.SetLength(512); dropped || err != nil {
		t.Fatalf("the first vectors: dropped %v, %v", dropped, err)
	}
	if err := table.Put([]Made{{n, 2, v}, {n, 35, random(rng, 512)}, {n, 5, nil}, {n + 1, 3, v}}); err != nil {
		t.Fatal(err)
	}
	if err := table.Put([]Made{{n, 2, random(rng, 512)}}); err != nil { // another was faster
		t.Fatal(err)
	}
	if code(2) != Code(signsOf(Reduce(v))) || code(35) == nil || code(3) != nil {
		t.Errorf("read %v, %v and %v", code(2), code(35), code(3))
	}
	var codes Codes
	if err := codes.Refresh(table); err != nil {
		t.Fatal(err)
	}
	missing := func() (late []uint32) {
		var docs []postings.Doc
		for _, seq := range []uint32{1, 2, 5, 35, 36} {
			docs = append(docs, postings.Doc{Group: uint32(n), Seq: seq})
		}
		codes.Missing(append(docs, postings.Doc{Group: uint32(n + 1), Seq: 3}), func(d postings.Doc) { late = append(late, d.Seq) })
		return late
	}
	if got := missing(); !slices.Equal(got, []uint32{3, 36, 1}) || code(5) != nil {
		t.Errorf("%v are missing, and 5 is %v", got, code(5))
	}
	// Another process and this one write: this one sees both.
	other, err := postings.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := (Table{DB: other}).Put([]Made{{n, 1, v}}); err != nil {
		t.Fatal(err)
	}
	if err := (Table{db, &codes}).Put([]Made{{n, 36, v}}); err != nil {
		t.Fatal(err)
	}
	if err := codes.Refresh(table); err != nil {
		t.Fatal(err)
	}
	if got := missing(); !slices.Equal(got, []uint32{3}) {
		t.Errorf("%v are missing after two processes wrote", got)
	}
	if dropped, err := table.SetLength(384); !dropped || err != nil || code(2) != nil {
		t.Errorf("vectors of another length: dropped %v, %v, and read %v", dropped, err, code(2))
	}
}
