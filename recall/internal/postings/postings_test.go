package postings

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// put adds a doc with these terms.
func (b *Builder) put(d Doc, terms map[string]uint32) {
	b.docs = append(b.docs, d)
	b.words += int(d.Words)
	for t, n := range terms {
		id := b.lex.ID(t)
		if id == len(b.lists) {
			b.lists = append(b.lists, list{})
		}
		b.size += b.lists[id].post(int32(len(b.docs)), n)
	}
}

// TestFull: a segment has no more postings than memory is set aside for, be
// its messages many or long.
func TestFull(t *testing.T) {
	many := &Builder{}
	for range maxDocs {
		if many.Full() {
			t.Fatalf("full with %d messages", len(many.docs))
		}
		many.put(Doc{}, nil)
	}
	if !many.Full() {
		t.Errorf("not full with %d messages", len(many.docs))
	}
	long := &Builder{}
	terms := map[string]uint32{}
	for i := range 20_000 {
		terms[fmt.Sprint(i)] = 2
	}
	for !long.Full() {
		long.put(Doc{}, terms)
	}
	size := 0
	for _, l := range long.lists {
		size += len(l.data)
	}
	if size != long.size || size < maxBytes || size > maxBytes+3*len(terms) {
		t.Errorf("full with %d bytes, of which it knows %d", size, long.size)
	}
}

// TestReset: a Builder that is used again makes the segment that a new one
// would.
func TestReset(t *testing.T) {
	dump := func(b *Builder) (out []string) {
		_ = b.blocks(func(first string, data []byte) error { out = append(out, first, string(data)); return nil })
		return append(out, fmt.Sprint(b.docs, b.words, b.size))
	}
	add := func(b *Builder, texts ...string) {
		for i, text := range texts {
			b.Add(Doc{Group: 1, Seq: uint32(i)}, text, "Ann", "bash")
		}
	}
	again, fresh := &Builder{}, &Builder{}
	add(again, "a cat and a cat", "parseHTTPRequest --no-ff", "only here")
	again.Reset()
	if got := dump(again); len(got) != 1 {
		t.Errorf("an empty Builder has %q", got)
	}
	texts := []string{"the dog", "a cat, a dog and fly_api_token", "parseHTTPRequest"}
	add(again, texts...)
	add(fresh, texts...)
	if d := cmp.Diff(dump(fresh), dump(again)); d != "" {
		t.Error(d)
	}
}

// TestTerms: terms are read as they were written, however many bytes they have
// in common with the one before.
func TestTerms(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var terms []string
	for _, n := range []int{1, 14, 15, 16, 29, 30, 31, 101, 300} {
		for range 20 {
			w := []byte(strings.Repeat("a", n))
			w[rng.IntN(n)] = 'b'
			terms = append(terms, string(w))
		}
	}
	slices.Sort(terms)
	var data []byte
	last := ""
	for _, w := range terms {
		data = appendTerm(data, last, w)
		data = append(data, 1, 7)
		last = w
	}
	var got []string
	err := eachList(data, func(term, list []byte) bool {
		got = append(got, string(term))
		return string(list) == "\x07"
	})
	if d := cmp.Diff(terms, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	for n := range data {
		if err := eachList(data[:n], func(_, list []byte) bool { return string(list) == "\x07" }); err != nil && err != errPostings {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"\x11a\x00", "\x02a", "\x0f", "\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x01a"} {
		if err := eachList([]byte(bad), func(_, _ []byte) bool { return true }); err != errPostings {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestBlocks: every list is found in the block that its term leads to, and no
// other.
func TestBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	b := &Builder{}
	for i := range 3000 {
		terms := map[string]uint32{"everywhere": 1, "": 1 + rng.Uint32N(300)}
		for range 10 {
			terms[fmt.Sprint(rng.IntN(1+i*i))] = 1 + rng.Uint32N(3)
		}
		b.put(Doc{}, terms)
	}
	var firsts []string
	var blocks [][]byte
	err := b.blocks(func(first string, data []byte) error {
		if len(data) > blockSize {
			_, rest, _ := cutTerm(data, nil)
			if _, rest, ok := cut(rest); !ok || len(rest) > 0 {
				t.Errorf("a block of %d bytes holds more than one list", len(data))
			}
		}
		firsts, blocks = append(firsts, first), append(blocks, bytes.Clone(data))
		return nil
	})
	if err != nil || len(blocks) < 10 || len(blocks) > len(b.lists)/20 {
		t.Fatalf("%d terms in %d blocks, %v", len(b.lists), len(blocks), err)
	}
	for id, term := range b.lex.Terms {
		l := &b.lists[id]
		n, ok := slices.BinarySearch(firsts, term)
		if !ok {
			n--
		}
		got, err := listOf(blocks[n], term)
		if want := append(binary.AppendUvarint(nil, uint64(l.n)), l.data...); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q: %v, %v, want %v", term, got, err, want)
		}
		if got, err := listOf(blocks[n], term+"x"); got != nil || err != nil {
			t.Fatalf("%qx: %v, %v", term, got, err)
		}
	}
}

// TestDocs: docs are read as they were written, whenever they were said and
// however long they are.
func TestDocs(t *testing.T) {
	var docs []Doc
	for i, at := range []int64{0, 1_785_578_400, -1, -2_000_000_000, time.Time{}.Unix(), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Unix(), 1 << 32, 1<<39 - 1} {
		d := Doc{Group: uint32(i / 3), Seq: uint32(i), Words: maxWords - uint16(i), Flags: User}.At(at)
		if d.Time() != at {
			t.Errorf("%d: got %d", at, d.Time())
		}
		docs = append(docs, d)
	}
	if got := (Doc{}).At(math.MinInt64).Time(); got > -1<<38 {
		t.Errorf("long ago: got %d", got)
	}
	got, err := decodeDocs(encodeDocs(docs))
	if err != nil || !slices.Equal(got, docs) {
		t.Errorf("got %v, %v, want %v", got, err, docs)
	}
	if n := unsafe.Sizeof(Doc{}); n != 16 {
		t.Errorf("a doc has %d bytes", n)
	}
}

func FuzzDecode(f *testing.F) {
	b := &Builder{}
	for i := range 20 {
		b.Add(Doc{Group: uint32(i / 7), Seq: uint32(i + 1)}.At(1_785_578_400), fmt.Sprintf("one two two three%d", i), "")
	}
	f.Add(encodeDocs(b.docs))
	f.Add([]byte("\x02\x03\x02\x02"))
	b.blocks(func(_ string, data []byte) error { f.Add(bytes.Clone(data)); return nil })
	f.Fuzz(func(t *testing.T, data []byte) {
		if docs, err := decodeDocs(data); err == nil {
			again, err := decodeDocs(encodeDocs(docs))
			if d := cmp.Diff(docs, again, cmp.AllowUnexported(Doc{})); d != "" || err != nil {
				t.Fatalf("%v (-want +got):\n%s", err, d)
			}
		}
		var last []byte
		_ = eachList(data, func(term, _ []byte) bool {
			if n := len(term); n > len(last)+len(data) {
				t.Fatalf("a term of %d bytes", n)
			}
			last = bytes.Clone(term)
			return true
		})
		if ps, err := decode(data, 100, nil); err == nil {
			for _, p := range ps {
				if p.At < 0 || p.At >= 100 {
					t.Fatalf("a posting of doc %d of 100", p.At)
				}
			}
		}
	})
}

// Only the owner can read the files of an index, also of one that was damaged.
func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index.db")
	for _, content := range []string{"", strings.Repeat("not a database ", 1000)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []string{"", "-wal", "-shm"} {
			st, err := os.Stat(path + end)
			if err != nil {
				t.Fatal(err)
			}
			if got := st.Mode().Perm(); got != 0o600 {
				t.Errorf("index.db%s is %v", end, got)
			}
		}
		d.Close()
	}
}
