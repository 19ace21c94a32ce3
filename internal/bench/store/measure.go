package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"goclaw/llm"
	"goclaw/session"
	"goclaw/store/storetest"
)

var bg = context.Background()

// lengths are the sizes of the sessions that appends are compared on.
func lengths(full bool) []int {
	if full {
		return []int{100, 10_000, 100_000, 1_000_000}
	}
	return []int{100, 10_000, 100_000}
}

// restoreLengths are the sizes of the sessions that restoring is compared on.
func restoreLengths(full bool) []int {
	if full {
		return []int{1_000, 100_000, 1_000_000}
	}
	return []int{1_000, 100_000}
}

// manyCounts are the numbers of sessions in the stores that appends are
// compared on.
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

// talk appends the records of a conversation to a log, one at a time.
type talk struct {
	st    session.Store
	id    session.ID
	last  session.Seq
	leaf  string
	late  time.Duration // added to the times of the conversation
	brief bool          // every record is one short sentence
	next  func() (session.Record, bool)
	stop  func()
	n     int

	ready []session.Record // made by prepare
}

// newTalk continues the log id of st with the conversation seed.
func newTalk(st session.Store, id session.ID, seed uint64) (*talk, error) {
	in, err := session.Stat(bg, st, id)
	if err != nil {
		return nil, err
	}
	t := &talk{st: st, id: id, last: in.Last, leaf: in.Leaf}
	t.next, t.stop = iter.Pull(storetest.Conversation(seed, 1<<40))
	if h, _ := t.next(); in.Updated.After(h.Time) {
		t.late = in.Updated.Sub(h.Time)
	}
	return t, nil
}

// prepare makes the next n records, so that making them is not measured.
func (t *talk) prepare(n int) error {
	for range n {
		r, ok := t.next()
		if !ok {
			return errors.New("the conversation has ended")
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
		t.ready = append(t.ready, r)
	}
	return nil
}

// say appends one record and returns how long that took.
func (t *talk) say() (time.Duration, error) {
	if len(t.ready) == 0 {
		if err := t.prepare(1); err != nil {
			return 0, err
		}
	}
	r := t.ready[0]
	t.ready = t.ready[1:]
	start := time.Now()
	err := t.st.Append(bg, t.id, r)
	return time.Since(start), err
}

// begin starts the log of the conversation seed with its header.
func begin(st session.Store, seed uint64) (*talk, error) {
	id := storetest.ConversationID(seed)
	if err := fill(st, id, storetest.Conversation(seed, 1)); err != nil {
		return nil, err
	}
	return newTalk(st, id, seed)
}

// benchAppend measures n appends and, alternating with them, n raw writes with
// fdatasync of the same lines.
func benchAppend(open storetest.Opener, dir string, n int) (one, raw []time.Duration, err error) {
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
				line = []byte(strings.Repeat("words ", 66))
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

// groupRounds is how often one writer and a crowd alternate.
const groupRounds = 5

// benchGroup measures the records per second of one writer and, alternating
// with it, of 64 writers on 64 sessions.
func benchGroup(open storetest.Opener, dir string, n int, brief bool) (one, many float64, err error) {
	st, err := open(dir)
	if err != nil {
		return 0, 0, err
	}
	defer st.Close()
	// The one writer has its own store, which stays as small as its work.
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

// speak has all talks append n records at the same time and returns the
// records per second.
func speak(talks []*talk, n int) (float64, error) {
	for _, t := range talks {
		if err := t.prepare(n); err != nil {
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

// benchLength measures an append to sessions of the given sizes, alternating.
func benchLength(open storetest.Opener, dir string, sizes []int, n int) ([]time.Duration, error) {
	st, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var talks []*talk
	for i, length := range sizes {
		seed := uint64(i) + 1
		if err := fill(st, storetest.ConversationID(seed), storetest.Conversation(seed, length)); err != nil {
			return nil, err
		}
		t, err := newTalk(st, storetest.ConversationID(seed), 99) // the same records for all
		if err != nil {
			return nil, err
		}
		defer t.stop()
		talks = append(talks, t)
	}
	return inTurns(talks, n)
}

// inTurns appends n records of each talk, alternating, and returns the median
// of each.
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

// benchSessions measures an append in stores with the given numbers of
// sessions, alternating, and listing the largest: open, and from opening it.
func benchSessions(open storetest.Opener, dir string, counts []int, n int) (took, list, cold []time.Duration, err error) {
	var talks []*talk
	for i, count := range counts {
		st, err := open(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, nil, nil, err
		}
		defer st.Close()
		if err := crowd(st, count); err != nil {
			return nil, nil, nil, err
		}
		t, err := newTalk(st, storetest.ConversationID(1), 99)
		if err != nil {
			return nil, nil, nil, err
		}
		defer t.stop()
		talks = append(talks, t)
	}
	if took, err = inTurns(talks, n); err != nil {
		return nil, nil, nil, err
	}
	big, want := talks[len(talks)-1].st, counts[len(counts)-1]
	if list, err = listing(9, func() (int, error) { return countList(big) }, want); err != nil {
		return nil, nil, nil, err
	}
	if err := big.Close(); err != nil {
		return nil, nil, nil, err
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

// listing returns the times of f, which must count want sessions.
func listing(times int, f func() (int, error), want int) (took []time.Duration, err error) {
	for range times {
		start := time.Now()
		n, err := f()
		took = append(took, time.Since(start))
		if err != nil {
			return nil, err
		}
		if n != want {
			return nil, fmt.Errorf("%d of %d sessions are listed", n, want)
		}
	}
	return took, nil
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

// crowd writes n sessions of five records each, 64 at a time.
func crowd(st session.Store, n int) error {
	seeds, errs := make(chan uint64), make(chan error, 64)
	var wg sync.WaitGroup
	for range cap(errs) {
		wg.Go(func() {
			for seed := range seeds {
				if err := fill(st, storetest.ConversationID(seed), storetest.Conversation(seed, 5)); err != nil {
					errs <- err
					for range seeds { // so that the sender does not block
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

// benchRestore measures opening a store and the one session in it, for
// sessions of the given sizes, alternating.
func benchRestore(open storetest.Opener, dir string, sizes []int) ([]time.Duration, error) {
	for i, n := range sizes {
		st, err := open(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return nil, err
		}
		if err := errors.Join(fill(st, storetest.ConversationID(1), compacted(1, n)), st.Close()); err != nil {
			return nil, err
		}
	}
	took := make([][]time.Duration, len(sizes))
	for range 15 {
		for i, n := range sizes {
			start := time.Now()
			st, err := open(filepath.Join(dir, fmt.Sprint(i)))
			if err != nil {
				return nil, err
			}
			s, err := session.Open(bg, st, storetest.ConversationID(1))
			took[i] = append(took[i], time.Since(start))
			if err := errors.Join(err, st.Close()); err != nil {
				return nil, err
			}
			if s.Records != n || s.Leaf == "" {
				return nil, fmt.Errorf("a session of %d records is restored with %d", n, s.Records)
			}
		}
	}
	var out []time.Duration
	for _, d := range took {
		out = append(out, median(d))
	}
	return out, nil
}

// compacted yields a conversation of n records with a compaction near its end:
// its context has the same size for every n.
func compacted(seed uint64, n int) iter.Seq[session.Record] {
	const kept, after = 60, 20
	return func(yield func(session.Record) bool) {
		var first string
		var last session.Record
		for r := range storetest.Conversation(seed, n-1) {
			switch {
			case r.Seq <= session.Seq(n-after-1):
				if first == "" && r.Seq >= session.Seq(n-after-kept) && session.IsTurn(r.Body) {
					first = r.ID
				}
			default:
				if r.Seq == session.Seq(n-after) {
					c := session.Compaction{Summary: strings.Repeat("what was said ", 286), FirstKept: first, TokensBefore: 150_000}
					made := session.Record{Seq: r.Seq, ID: "compaction", Parent: last.ID, Time: r.Time, Body: c}
					if !yield(made) {
						return
					}
					r.Parent = made.ID
				}
				r.Seq++
			}
			last = r
			if !yield(r) {
				return
			}
		}
	}
}
