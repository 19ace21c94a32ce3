package sqlite

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/session/sessiontest"
	"goclaw/store/memory"
)

// corpus is a database, and what was written to it.
type corpus struct {
	file, wal []byte
	lines     map[session.ID][]string
	marks     map[session.ID][]string // a text that is on every page that a record is on
	trashed   map[session.ID]bool
	rng       *rand.Rand
}

// newCorpus makes a database of n sessions, short ones, one long one and some
// with records of many pages. One of ten is in the trash. Others were purged. If
// wal, the last appends are in the write-ahead log.
func newCorpus(t *testing.T, n int, wal bool) *corpus {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	c := &corpus{lines: map[session.ID][]string{}, marks: map[session.ID][]string{}, trashed: map[session.ID]bool{}, rng: rand.New(rand.NewPCG(1, 2))}
	var purged []session.ID
	for i := range n {
		id := session.ID(fmt.Sprintf("session-%03d", i))
		records := 2 + i%7
		if i == n/2 {
			records = 120
		}
		if wal && i == n/2 {
			must(t, s.Close())
			sql(t, path, "PRAGMA wal_checkpoint(TRUNCATE)")
			s = at(t, path)
		}
		c.append(t, s, id, records)
		switch {
		case i%10 == 3:
			must(t, s.Delete(bg, id))
			c.trashed[id] = true
		case i%10 == 7:
			purged = append(purged, id)
		}
	}
	for _, id := range purged {
		must(t, s.Delete(bg, id))
		if wal {
			continue
		}
		must(t, s.Purge(bg, id))
		delete(c.lines, id)
		delete(c.marks, id)
	}
	for _, id := range purged {
		c.trashed[id] = wal
	}
	for id := range c.lines {
		c.lines[id] = nil
		for r, err := range s.Read(bg, id, 0) {
			must(t, err)
			c.lines[id] = append(c.lines[id], string(r.Raw))
		}
	}
	var err error
	if wal {
		c.file, err = os.ReadFile(path)
		must(t, err)
		c.wal, err = os.ReadFile(path + "-wal")
		must(t, err)
		if len(c.wal) < 20*pageSize {
			t.Fatalf("the write-ahead log has %d bytes", len(c.wal))
		}
		must(t, s.Close())
		return c
	}
	c.file = closeFile(t, s)
	return c
}

// append appends a session to s. Each record says in every part of its text
// which one it is.
func (c *corpus) append(t *testing.T, s *Store, id session.ID, records int) {
	t.Helper()
	recs := []session.Record{{Seq: 1, Time: sessiontest.Start, Body: session.Header{ID: id, Key: session.Key("k:" + id), Version: session.Version}}}
	c.lines[id], c.marks[id] = nil, []string{`{"type":"session"` + `,"version":3,"id":"` + string(id)}
	for i := range records {
		mark := fmt.Sprintf("<%s.%d>", id, i+2)
		repeat := 3
		switch c.rng.IntN(12) {
		case 0:
			repeat = c.rng.IntN(300)
		case 1:
			repeat = c.rng.IntN(1500)
		}
		r := session.Record{Seq: session.Seq(i + 2), ID: fmt.Sprintf("e%03d", i+1), Time: sessiontest.Start, Body: sessiontest.User(strings.Repeat(mark, 1+repeat))}
		if i > 0 {
			r.Parent = recs[i].ID
		}
		recs = append(recs, r)
		c.marks[id] = append(c.marks[id], mark)
	}
	must(t, s.Append(bg, id, recs...))
}

// wreck is the corpus with some damage.
type wreck struct {
	what      string
	file, wal []byte
	hit       func(id session.ID, seq session.Seq) bool // whether the record may be lost
	flipped   bool                                      // some bits are wrong, the rest is there
}

// pagesOf returns the pages of the database that a record is on.
func (c *corpus) pagesOf(id session.ID, seq session.Seq) map[int]bool {
	on := map[int]bool{}
	mark := []byte(c.marks[id][seq-1])
	for at := 0; ; {
		i := bytes.Index(c.file[at:], mark)
		if i < 0 {
			return on
		}
		on[(at+i)/pageSize], on[(at+i+len(mark)-1)/pageSize] = true, true
		at += i + 1
	}
}

// onPages returns hit for the records on the pages that are bad.
func (c *corpus) onPages(bad func(page int) bool) func(session.ID, session.Seq) bool {
	type key struct {
		id  session.ID
		seq session.Seq
	}
	hit := map[key]bool{}
	for id := range c.lines {
		for i := range c.lines[id] {
			k := key{id, session.Seq(i + 1)}
			for p := range c.where(k.id, k.seq) {
				hit[k] = hit[k] || bad(p)
			}
		}
	}
	return func(id session.ID, seq session.Seq) bool { return hit[key{id, seq}] }
}

var whereCache = map[string]map[int]bool{}

// where is pagesOf, remembered.
func (c *corpus) where(id session.ID, seq session.Seq) map[int]bool {
	k := fmt.Sprintf("%p %s %d", c, id, seq)
	if whereCache[k] == nil {
		whereCache[k] = c.pagesOf(id, seq)
	}
	return whereCache[k]
}

// zeroed is the corpus without page n; 0 is the first.
func (c *corpus) zeroed(n int) wreck {
	b := bytes.Clone(c.file)
	clear(b[n*pageSize : (n+1)*pageSize])
	return wreck{what: fmt.Sprint("page ", n+1), file: b, hit: c.onPages(func(p int) bool { return p == n })}
}

// cut is the first size bytes of the corpus.
func (c *corpus) cut(size int) wreck {
	return wreck{what: fmt.Sprint("cut to ", size), file: c.file[:size], hit: c.onPages(func(p int) bool { return (p+1)*pageSize > size })}
}

// flip is the corpus with one bit changed.
func (c *corpus) flip(bit int) wreck {
	b := bytes.Clone(c.file)
	b[bit/8] ^= 1 << (bit % 8)
	return wreck{what: fmt.Sprintf("bit %d of byte %d (page %d)", bit%8, bit/8, bit/8/pageSize+1), file: b, flipped: true,
		hit: c.onPages(func(p int) bool { return p == bit/8/pageSize })}
}

// tally counts what became of the records.
type tally struct{ damages, kept, lost, doubted, silent int }

func (n *tally) String() string {
	return fmt.Sprintf("%d times damaged: %d records kept, %d lost, %d kept and reported, %d changed in silence", n.damages, n.kept, n.lost, n.doubted, n.silent)
}

// check recovers d and fails unless every record that was not hit is in the new
// store under its number, and nothing is there that was never written.
func (c *corpus) check(t *testing.T, d wreck, n *tally) {
	t.Helper()
	n.damages++
	path := filepath.Join(t.TempDir(), "sessions.db")
	must(t, os.WriteFile(path, d.file, 0o600))
	if d.wal != nil {
		must(t, os.WriteFile(path+"-wal", d.wal, 0o600))
	}
	dst := memory.New()
	reports := map[session.ID]string{}
	got, err := Recover(bg, path, dst, func(id session.ID, err error) { reports[id] += err.Error() + "\n" })
	if err != nil {
		t.Errorf("%s: %v", d.what, err)
		return
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, d.file) {
		t.Errorf("%s: the file was changed (%v)", d.what, err)
	}
	sessions, records := 0, 0
	for _, trash := range []bool{false, true} {
		for in, err := range dst.List(bg, session.Query{Trash: trash}) {
			must(t, err)
			sessions++
			want, known := c.lines[in.ID]
			if !known && !strings.Contains(fmt.Sprint(reports), "lost") {
				t.Errorf("%s: there was no session %s", d.what, in.ID)
			}
			for r, err := range dst.Read(bg, in.ID, 0) {
				must(t, err)
				placeholder := string(r.Raw) == "null" || r.Seq == 1 && r.Raw == nil
				switch {
				case placeholder:
				case known && int(r.Seq) <= len(want) && string(r.Raw) == want[r.Seq-1]:
					records++
				case !known && strings.HasPrefix(string(in.ID), "recovered-"):
					records++
				case d.flipped && d.hit(in.ID, r.Seq) && strings.Contains(reports[in.ID], fmt.Sprintf("record %d ", r.Seq)):
					n.doubted++
					records++
				case d.flipped && d.hit(in.ID, r.Seq):
					n.silent++
					records++
				default:
					t.Errorf("%s: record %d of %s was never written: %.200s", d.what, r.Seq, in.ID, r.Raw)
				}
			}
		}
	}
	if got.Sessions != sessions || got.Records != records {
		t.Errorf("%s: it says %+v, %d sessions and %d records are there", d.what, got, sessions, records)
	}
	n.kept += records
	for id := range c.lines {
		c.checkOne(t, d, n, dst, id, reports)
	}
}

// checkOne fails unless the session has all its records that were not hit.
func (c *corpus) checkOne(t *testing.T, d wreck, n *tally, dst session.Store, id session.ID, reports map[session.ID]string) {
	t.Helper()
	have := map[session.Seq]string{}
	in, err := session.Stat(bg, dst, id)
	if err == nil {
		for r, err := range dst.Read(bg, id, 0) {
			must(t, err)
			have[r.Seq] = string(r.Raw)
		}
	}
	hits := 0
	for i, line := range c.lines[id] {
		seq := session.Seq(i + 1)
		switch {
		case have[seq] == line:
		case d.hit(id, seq):
			hits++
			if have[seq] == "" || have[seq] == "null" { // the others are kept and reported
				n.lost++
			}
		case len(in.ID) == 0 && d.hit(id, 1): // it is there under another id
		default:
			t.Errorf("%s: record %d of %s is lost, and its page is not damaged; reports: %s%s", d.what, seq, id, reports[id], reports[""])
			return
		}
	}
	if hits > 0 && !d.flipped && reports[id] == "" && in.ID != "" && have[session.Seq(len(c.lines[id]))] != "" {
		t.Errorf("%s: %d records of %s are lost, and nothing says so", d.what, hits, id)
	}
	if hits == 0 && in.ID != "" && len(reports) == 0 && !d.flipped && c.trashed[id] == in.Trashed.IsZero() {
		t.Errorf("%s: %s is in the trash: %v, want %v", d.what, id, !in.Trashed.IsZero(), c.trashed[id])
	}
}

// whole fails if the corpus itself, undamaged, is not recovered whole.
func (c *corpus) whole(t *testing.T) {
	t.Helper()
	var n tally
	c.check(t, wreck{what: "no damage", file: c.file, wal: c.wal, hit: func(session.ID, session.Seq) bool { return false }}, &n)
	if n.lost+n.doubted > 0 {
		t.Errorf("no damage: %v", &n)
	}
}

// soaking is set by make soak, which tests the long form.
func soaking() bool { return flag.Lookup("soak").Value.String() != "0s" }

// Whatever is damaged, Recover finds every record that is not on the damage, and
// makes up none.
func TestRecoverDamaged(t *testing.T) {
	sessions, cuts, flips := 12, 20, 60
	if soaking() {
		sessions, cuts, flips = 120, 200, 1000
	}
	c := newCorpus(t, sessions, false)
	c.whole(t)
	rng := rand.New(rand.NewPCG(3, 4))
	size := len(c.file)
	for _, m := range []struct {
		name string
		n    int
		one  func(i int) wreck
	}{
		{"every page zeroed in turn", size / pageSize, c.zeroed},
		{"the end cut off", cuts, func(i int) wreck {
			if i == 0 {
				return c.cut(size - 1)
			}
			return c.cut(rng.IntN(size))
		}},
		{"a bit flipped", flips, func(int) wreck { return c.flip(rng.IntN(size * 8)) }},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			var n tally
			for i := range m.n {
				c.check(t, m.one(i), &n)
			}
			t.Logf("%d pages, %v", size/pageSize, &n)
			if n.silent > 0 {
				t.Errorf("%d records were changed, and nothing says so", n.silent)
			}
			if n.kept == 0 || n.lost == 0 {
				t.Errorf("too little was damaged or left: %v", &n)
			}
		})
	}
}

// What is in the write-ahead log only is found there, around damaged frames. A
// record that is on a damaged frame may be lost.
func TestRecoverLog(t *testing.T) {
	sessions, flips := 12, 20
	if soaking() {
		sessions, flips = 20, 1000
	}
	c := newCorpus(t, sessions, true)
	c.whole(t)
	rng := rand.New(rand.NewPCG(5, 6))
	var n tally
	for range flips {
		bit := rng.IntN(len(c.wal) * 8)
		wal := bytes.Clone(c.wal)
		wal[bit/8] ^= 1 << (bit % 8)
		const frame = 24 + pageSize
		from := 32 + max(bit/8-32, 0)/frame*frame
		bad := wal[from:min(from+frame, len(wal))]
		c.check(t, wreck{what: fmt.Sprintf("bit %d of byte %d of the log", bit%8, bit/8), file: c.file, wal: wal, flipped: true,
			hit: func(id session.ID, seq session.Seq) bool {
				mark := c.marks[id][seq-1]
				return bytes.Contains(bad, []byte(mark[:len(mark)-1])) || bytes.Contains(bad, []byte(mark[1:])) || bytes.Contains(c.wal[from:min(from+frame, len(wal))], []byte(mark))
			}}, &n)
	}
	t.Log(&n)
	if n.silent > 0 {
		t.Errorf("%d records were changed, and nothing says so", n.silent)
	}
}

// Databases of older schemas are recovered as well, with what is in their
// inbox.
func TestRecoverOlder(t *testing.T) {
	recoverAll := func(path string) *memory.Store {
		dst := memory.New()
		_, err := Recover(bg, path, dst, func(id session.ID, err error) { t.Errorf("%s: %s: %v", path, id, err) })
		must(t, err)
		return dst
	}
	path, _ := older(t, 2)
	dst := recoverAll(path)
	for id, want := range map[session.ID]int{"straight": 8, "branched": 6, "trashed": 3} {
		in, err := session.Stat(bg, dst, id)
		if err != nil || in.Records != want || in.Trashed.IsZero() == (id == "trashed") {
			t.Errorf("%s is %+v (%v), want %d records", id, in, err, want)
		}
	}
	for _, name := range []string{"killed", "index", "half", "ahead"} {
		path, acked := unpack(t, name)
		dst := recoverAll(path)
		s := at(t, path)
		for id, n := range acked {
			want, err := sessiontest.Collect(s.Read(bg, id, 0))
			must(t, err)
			got, err := sessiontest.Collect(dst.Read(bg, id, 0))
			if err != nil || len(got) != len(want) || len(got) < n {
				t.Errorf("%s: %s has %d records (%v), want %d", name, id, len(got), err, len(want))
				continue
			}
			for i := range got {
				if !bytes.Equal(got[i].Raw, want[i].Raw) {
					t.Errorf("%s: record %d of %s is %s, want %s", name, i+1, id, got[i].Raw, want[i].Raw)
				}
			}
		}
	}
}

// What was purged does not come back, not even from a page that is no longer in
// use.
func TestRecoverNothingPurged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	for i := range 20 {
		talk(t, s, session.ID(fmt.Sprint("s", i)), 40)
	}
	must(t, s.Close())
	// Without secure_delete, as another program might do it.
	sql(t, path, "DELETE FROM records WHERE session > 5; DELETE FROM sessions WHERE n > 5; PRAGMA wal_checkpoint(TRUNCATE)")
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"key":"k:s15"`) {
		t.Fatal("nothing of it is left in the file to find")
	}
	dst := memory.New()
	got, err := Recover(bg, path, dst, func(id session.ID, err error) { t.Errorf("%s: %v", id, err) })
	if err != nil || got.Sessions != 5 || got.Records != 5*41 {
		t.Errorf("recovered %+v (%v), want 5 sessions of 41 records", got, err)
	}
}

// With no place to write to, Recover says what is lost. Both headers of a
// session may be gone.
func TestRecoverWithoutHeader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions.db")
	s := at(t, path)
	talk(t, s, "s1", 5)
	talk(t, s, "s2", 5)
	talk(t, s, "s3", 5)
	sql(t, path, `UPDATE records SET data = x'00' WHERE seq = 1 AND session < 3; DELETE FROM sessions WHERE n = 2; UPDATE sessions SET last = 9 WHERE n = 3`)
	must(t, s.Close())
	var said []string
	report := func(id session.ID, err error) { said = append(said, fmt.Sprint(id, ": ", err)) }
	if got, err := Recover(bg, path, nil, report); err != nil || got != (Recovered{3, 16, 5}) {
		t.Errorf("recovered %+v (%v)", got, err)
	}
	for _, want := range []string{
		`s1: ` + path + `: record 1 is lost: page `, `its key is "k:s1"`, `recovered-2: `, `its key is "recovered-2"`,
		`s3: ` + path + `: records 7 to 9 are lost`,
	} {
		if !strings.Contains(strings.Join(said, "\n"), want) {
			t.Errorf("the reports lack %q:\n%s", want, strings.Join(said, "\n"))
		}
	}
	dst := memory.New()
	_, err := Recover(bg, path, dst, func(session.ID, error) {})
	must(t, err)
	if in, err := session.Stat(bg, dst, "s1"); err != nil || in.Key != "k:s1" || in.Last != 6 {
		t.Errorf("s1 is %+v (%v)", in, err)
	}
	live, err := session.Open(bg, dst, "recovered-2")
	must(t, err)
	must(t, dst.Append(bg, "recovered-2", live.Next(sessiontest.User("more"), session.System{})))
}

// Files that are not databases give nothing, and no error that stops a program.
func TestRecoverNothing(t *testing.T) {
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"empty": nil, "text": bytes.Repeat([]byte("To be, or not to be.\n"), 5000), "zeros": make([]byte, 100_000),
		"json": bytes.Repeat([]byte(`{"type":"message"}`), 5000),
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, b, 0o600))
		got, err := Recover(bg, path, memory.New(), func(id session.ID, err error) { t.Errorf("%s: %v", id, err) })
		if err != nil || got != (Recovered{}) || HasRecords(path) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := Recover(bg, filepath.Join(dir, "none"), nil, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Recover(bg, dir, nil, nil); err == nil {
		t.Error("a folder is recovered")
	}
}
