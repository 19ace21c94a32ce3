package storetest

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// Bench measures a store. Every figure that has a limit is a ratio of two
// things measured in turns within one run, because the machine is busy:
//
//	append       one durable append; x-raw: of a raw write+fdatasync of the same bytes
//	group        64 writers on 64 sessions; x-one: of the records per second of one writer
//	length=N     one append to a session of N records; x-100: of one to a session of 100
//	sessions=N   one append in a store of N sessions; x-1: of one in a store of one
//	restore=N    open and session.Open of N records, folded near the end; x-1k: of 1,000
//	list         all of 10,000 sessions
//
// Sessions of a million records are measured if full.
func Bench(b *testing.B, open Opener, full bool) {
	b.Run("append", func(b *testing.B) {
		one, raw, err := benchAppend(open, b.TempDir(), b.N)
		report(b, err, median(one), ratio(median(one), median(raw)), "x-raw")
	})
	b.Run("group", func(b *testing.B) {
		one, many, err := benchGroup(open, b.TempDir(), b.N, true)
		report(b, err, time.Duration(float64(time.Second)/many), many/one, "x-one")
	})
	b.Run("length", func(b *testing.B) {
		lengths := Lengths(full)
		took, err := benchLength(open, b.TempDir(), lengths, max(b.N, 50))
		for i, n := range lengths {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-100") })
		}
	})
	b.Run("sessions", func(b *testing.B) {
		took, list, _, err := benchSessions(open, b.TempDir(), manyCounts, max(b.N, 50))
		for i, n := range manyCounts {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-1") })
		}
		b.Run("list", func(b *testing.B) { report(b, err, list, float64(list)/float64(time.Millisecond), "ms") })
	})
	b.Run("restore", func(b *testing.B) {
		lengths := RestoreLengths(full)
		took, err := benchRestore(open, b.TempDir(), lengths)
		for i, n := range lengths {
			b.Run(fmt.Sprint(n), func(b *testing.B) { report(b, err, took[i], ratio(took[i], took[0]), "x-1k") })
		}
	})
}

func report(b *testing.B, err error, took time.Duration, figure float64, unit string) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(took), "ns/op")
	b.ReportMetric(figure, unit)
}

// Lengths are the sessions that appends are compared on.
func Lengths(full bool) []int {
	if full {
		return []int{100, 10_000, 100_000, 1_000_000}
	}
	return []int{100, 10_000, 100_000}
}

// RestoreLengths are the sessions that restoring is compared on.
func RestoreLengths(full bool) []int {
	if full {
		return []int{1_000, 100_000, 1_000_000}
	}
	return []int{1_000, 100_000}
}

// manyCounts are the stores that appends are compared on.
var manyCounts = []int{1, 10_000}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

func total(d []time.Duration) (sum time.Duration) {
	for _, d := range d {
		sum += d
	}
	return sum
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// fill appends recs in batches.
func fill(st session.Store, id session.ID, recs iter.Seq[session.Record]) error {
	var batch []session.Record
	flush := func() error {
		err := st.Append(bg, id, batch...)
		batch = batch[:0]
		return err
	}
	for r := range recs {
		if batch = append(batch, r); len(batch) == 1000 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// talk appends what follows a conversation, one record at a time.
type talk struct {
	st    session.Store
	id    session.ID
	last  session.Seq
	leaf  string
	late  time.Duration // of this log, behind what is said in it
	brief bool          // it says one short sentence
	next  func() (session.Record, bool)
	stop  func()
	n     int

	thoughts []session.Record // to be said
}

// newTalk goes on with the log id of st, saying what the conversation seed
// says.
func newTalk(st session.Store, id session.ID, seed uint64) (*talk, error) {
	in, err := session.Stat(bg, st, id)
	if err != nil {
		return nil, err
	}
	t := &talk{st: st, id: id, last: in.Last, leaf: in.Leaf}
	t.next, t.stop = iter.Pull(Conversation(seed, 1<<40))
	if h, _ := t.next(); in.Updated.After(h.Time) {
		t.late = in.Updated.Sub(h.Time)
	}
	return t, nil
}

// think makes up the next n records, so that no one who measures what is said
// waits for it.
func (t *talk) think(n int) error {
	for range n {
		r, ok := t.next()
		if !ok {
			return errors.New("storetest: nothing left to say")
		}
		t.n++
		if c, ok := r.Body.(session.Compaction); ok {
			c.FirstKept = t.leaf
			r.Body = c
		}
		if t.brief {
			r.Body = session.Message{Message: llm.UserText("one of many short messages, as people and agents write them all day"), At: r.Time}
		}
		r.Time = r.Time.Add(t.late)
		r.Seq, r.Parent, r.ID = t.last+1, t.leaf, fmt.Sprintf("%d_%08x", r.Time.UnixMilli(), t.n)
		t.last, t.leaf = r.Seq, r.ID
		t.thoughts = append(t.thoughts, r)
	}
	return nil
}

// say appends one record and returns how long that took.
func (t *talk) say() (time.Duration, error) {
	if len(t.thoughts) == 0 {
		if err := t.think(1); err != nil {
			return 0, err
		}
	}
	r := t.thoughts[0]
	t.thoughts = t.thoughts[1:]
	start := time.Now()
	err := t.st.Append(bg, t.id, r)
	return time.Since(start), err
}

// begin appends the header of the conversation seed and goes on with it.
func begin(st session.Store, seed uint64) (*talk, error) {
	id := ConversationID(seed)
	if err := fill(st, id, Conversation(seed, 1)); err != nil {
		return nil, err
	}
	return newTalk(st, id, seed)
}

// benchAppend measures n appends and, in turns with them, n raw writes with
// fdatasync of the very lines that were written.
func benchAppend(open Opener, dir string, n int) (one, raw []time.Duration, err error) {
	st, err := open(filepath.Join(dir, "store"))
	if err != nil {
		return nil, nil, err
	}
	defer st.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "raw"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	t, err := begin(st, 1)
	if err != nil {
		return nil, nil, err
	}
	defer t.stop()
	const turn = 20
	for len(one) < n {
		before := t.last
		for range turn {
			took, err := t.say()
			if err != nil {
				return nil, nil, err
			}
			one = append(one, took)
		}
		for r, err := range st.Read(bg, t.id, before) {
			if err != nil {
				return nil, nil, err
			}
			line := r.Raw
			if line == nil {
				line = []byte(book[:400])
			}
			start := time.Now()
			if _, err := f.Write(append(line[:len(line):len(line)], '\n')); err != nil {
				return nil, nil, err
			}
			if err := datasync(f); err != nil {
				return nil, nil, err
			}
			raw = append(raw, time.Since(start))
		}
	}
	return one, raw, nil
}

// groupRounds is how often one writer and a crowd take turns.
const groupRounds = 5

// benchGroup measures the records per second of one writer and, in turns with
// it, of 64 writers on 64 sessions.
func benchGroup(open Opener, dir string, n int, brief bool) (one, many float64, err error) {
	st, err := open(dir)
	if err != nil {
		return 0, 0, err
	}
	defer st.Close()
	// The one has a store of its own, as large as a store of one writer is.
	alone, err := open(dir + "-one")
	if err != nil {
		return 0, 0, err
	}
	defer alone.Close()
	single, err := begin(alone, 1)
	if err != nil {
		return 0, 0, err
	}
	defer single.stop()
	single.brief = brief
	const crowd = 64
	talks := make([]*talk, crowd)
	for i := range talks {
		if talks[i], err = begin(st, uint64(i)+1); err != nil {
			return 0, 0, err
		}
		defer talks[i].stop()
		talks[i].brief = brief
	}
	each := max(n/crowd/groupRounds, 20)
	var ones, manys []float64
	for range groupRounds {
		rate, err := speak([]*talk{single}, each*4)
		if err != nil {
			return 0, 0, err
		}
		ones = append(ones, rate)
		if rate, err = speak(talks, each); err != nil {
			return 0, 0, err
		}
		manys = append(manys, rate)
	}
	slices.Sort(ones)
	slices.Sort(manys)
	return ones[groupRounds/2], manys[groupRounds/2], nil
}

// speak lets every talk say n records at once and returns records per second.
func speak(talks []*talk, n int) (float64, error) {
	for _, t := range talks {
		if err := t.think(n); err != nil {
			return 0, err
		}
	}
	errs := make([]error, len(talks))
	var wg sync.WaitGroup
	start := time.Now()
	for i, t := range talks {
		wg.Go(func() {
			for range n {
				if _, err := t.say(); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return float64(n*len(talks)) / time.Since(start).Seconds(), errors.Join(errs...)
}

// benchLength measures an append to sessions of the lengths, in turns.
func benchLength(open Opener, dir string, lengths []int, n int) ([]time.Duration, error) {
	st, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var talks []*talk
	for i, length := range lengths {
		seed := uint64(i) + 1
		if err := fill(st, ConversationID(seed), Conversation(seed, length)); err != nil {
			return nil, err
		}
		t, err := newTalk(st, ConversationID(seed), 99) // all say the same
		if err != nil {
			return nil, err
		}
		defer t.stop()
		talks = append(talks, t)
	}
	return inTurns(talks, n)
}

// inTurns returns the median of n records that each talk says.
func inTurns(talks []*talk, n int) ([]time.Duration, error) {
	took := make([][]time.Duration, len(talks))
	for range n {
		for i, t := range talks {
			d, err := t.say()
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], d)
		}
	}
	var out []time.Duration
	for _, d := range took {
		out = append(out, median(d))
	}
	return out, nil
}

// benchSessions measures an append in stores with so many sessions, in turns,
// and listing the largest: opened, and with opening it.
func benchSessions(open Opener, dir string, counts []int, n int) (took []time.Duration, list, cold time.Duration, err error) {
	var talks []*talk
	for i, count := range counts {
		st, err := open(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, 0, 0, err
		}
		defer st.Close()
		if err := crowd(st, count); err != nil {
			return nil, 0, 0, err
		}
		t, err := newTalk(st, ConversationID(1), 99)
		if err != nil {
			return nil, 0, 0, err
		}
		defer t.stop()
		talks = append(talks, t)
	}
	if took, err = inTurns(talks, n); err != nil {
		return nil, 0, 0, err
	}
	big, want := talks[len(talks)-1].st, counts[len(counts)-1]
	if list, err = listing(9, func() (int, error) { return countList(big) }, want); err != nil {
		return nil, 0, 0, err
	}
	if err := big.Close(); err != nil {
		return nil, 0, 0, err
	}
	cold, err = listing(5, func() (int, error) {
		st, err := open(filepath.Join(dir, fmt.Sprint(len(counts)-1)))
		if err != nil {
			return 0, err
		}
		defer st.Close()
		return countList(st)
	}, want)
	return took, list, cold, err
}

// listing returns the median time of f, which must count want sessions.
func listing(times int, f func() (int, error), want int) (time.Duration, error) {
	var took []time.Duration
	for range times {
		start := time.Now()
		n, err := f()
		took = append(took, time.Since(start))
		if err != nil {
			return 0, err
		}
		if n != want {
			return 0, fmt.Errorf("storetest: %d of %d sessions are listed", n, want)
		}
	}
	return median(took), nil
}

func countList(st session.Store) (int, error) {
	n := 0
	for _, err := range st.List(bg, session.Query{}) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// crowd begins n sessions of five records each, many at once.
func crowd(st session.Store, n int) error {
	seeds, errs := make(chan uint64), make(chan error, 64)
	var wg sync.WaitGroup
	for range cap(errs) {
		wg.Go(func() {
			for seed := range seeds {
				if err := fill(st, ConversationID(seed), Conversation(seed, 5)); err != nil {
					errs <- err
					for range seeds { // let the others end
					}
					return
				}
			}
		})
	}
	for seed := range uint64(n) {
		seeds <- seed + 1
	}
	close(seeds)
	wg.Wait()
	close(errs)
	return <-errs
}

// benchRestore measures opening a store and a session of each length in it,
// in turns.
func benchRestore(open Opener, dir string, lengths []int) ([]time.Duration, error) {
	for i, n := range lengths {
		st, err := open(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(fill(st, ConversationID(1), folded(1, n)), st.Close()); err != nil {
			return nil, err
		}
	}
	took := make([][]time.Duration, len(lengths))
	for range 15 {
		for i, n := range lengths {
			start := time.Now()
			st, err := open(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				return nil, err
			}
			s, err := session.Open(bg, st, ConversationID(1))
			took[i] = append(took[i], time.Since(start))
			if err := errors.Join(err, st.Close()); err != nil {
				return nil, err
			}
			if s.Records != n || s.Leaf == "" {
				return nil, fmt.Errorf("storetest: a session of %d records is restored with %d", n, s.Records)
			}
		}
	}
	var out []time.Duration
	for _, d := range took {
		out = append(out, median(d))
	}
	return out, nil
}
