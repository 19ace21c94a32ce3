package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// text is what the records of the benchmarks say: about 700 bytes a line.
var text = strings.Repeat("The quick brown fox jumps over the lazy dog. ", 12)

func line(seq session.Seq, parent string) session.Record {
	return session.Record{
		Seq: seq, ID: fmt.Sprintf("%d_%08x", 1763176543000+int64(seq), uint32(seq)*2654435761), Parent: parent,
		Time: time.UnixMilli(1763176543000 + int64(seq)).UTC(),
		Body: session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{llm.Text{Text: text}}}},
	}
}

// hand appends to one session.
type hand struct {
	id   session.ID
	seq  session.Seq
	leaf string
}

func (h *hand) begin(b *testing.B, s *Store) {
	h.seq = 1
	if err := s.Append(context.Background(), h.id, session.Record{Seq: 1, Time: time.UnixMilli(1763176543000).UTC(), Body: session.Header{ID: h.id, Key: session.Key("main:cli:" + h.id)}}); err != nil {
		b.Fatal(err)
	}
}

func (h *hand) append(b *testing.B, s *Store, n int) {
	recs := make([]session.Record, n)
	for i := range recs {
		h.seq++
		recs[i] = line(h.seq, h.leaf)
		h.leaf = recs[i].ID
	}
	if err := s.Append(context.Background(), h.id, recs...); err != nil {
		b.Error(err)
	}
}

func fresh(b *testing.B) *Store {
	s, err := Open(filepath.Join(b.TempDir(), "sessions.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func BenchmarkRaw(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := []byte(text + strings.Repeat("x", 160))
	for b.Loop() {
		f.Write(buf)
		if err := datasync(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, length := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprint("length=", length), func(b *testing.B) {
			s := fresh(b)
			h := &hand{id: "s"}
			h.begin(b, s)
			for int(h.seq) < length {
				h.append(b, s, min(1000, length-int(h.seq)))
			}
			for b.Loop() {
				h.append(b, s, 1)
			}
		})
	}
	for _, n := range []int{10_000} {
		b.Run(fmt.Sprint("sessions=", n), func(b *testing.B) {
			s := fresh(b)
			hands := many(b, s, n)
			i := 0
			for b.Loop() {
				hands[i%n].append(b, s, 1)
				i += 7
			}
		})
	}
}

// many begins n sessions.
func many(b *testing.B, s *Store, n int) []*hand {
	hands := make([]*hand, n)
	var wg sync.WaitGroup
	for i := range hands {
		hands[i] = &hand{id: session.ID(fmt.Sprintf("s%06d", i))}
	}
	for w := range 64 {
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				hands[i].begin(b, s)
			}
		})
	}
	wg.Wait()
	return hands
}

func BenchmarkCrowd(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("hands=", n), func(b *testing.B) {
			s := fresh(b)
			hands := many(b, s, n)
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range n {
				wg.Go(func() {
					for i := w; i < b.N; i += n {
						hands[w].append(b, s, 1)
					}
				})
			}
			wg.Wait()
		})
	}
}

func BenchmarkList(b *testing.B) {
	s := fresh(b)
	many(b, s, 10_000)
	for b.Loop() {
		n := 0
		for _, err := range s.List(context.Background(), session.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 10_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sessions.db")
	for b.Loop() {
		s, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, err := range s.List(context.Background(), session.Query{}) {
			b.Fatal(err)
		}
		s.Close()
	}
}

func BenchmarkRead(b *testing.B) {
	s := fresh(b)
	h := &hand{id: "s"}
	h.begin(b, s)
	for range 10 {
		h.append(b, s, 1000)
	}
	size := 0
	for b.Loop() {
		size = 0
		for r, err := range s.Read(context.Background(), "s", 0) {
			if err != nil {
				b.Fatal(err)
			}
			size += len(r.Raw)
		}
	}
	b.SetBytes(int64(size))
}

// BenchmarkRatio takes turns between a raw write with fdatasync and a durable
// append of the same bytes, so that both meet the same disk.
func BenchmarkRatio(b *testing.B) {
	s := fresh(b)
	h := &hand{id: "s"}
	h.begin(b, s)
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	buf := []byte(text + strings.Repeat("x", 160))
	var raw, app []time.Duration
	for b.Loop() {
		t := time.Now()
		f.Write(buf)
		datasync(f)
		raw = append(raw, time.Since(t))
		t = time.Now()
		h.append(b, s, 1)
		app = append(app, time.Since(t))
	}
	slices.Sort(raw)
	slices.Sort(app)
	at := func(d []time.Duration, p int) float64 { return float64(d[len(d)*p/100].Microseconds()) }
	b.ReportMetric(at(raw, 50), "raw-p50-us")
	b.ReportMetric(at(raw, 99), "raw-p99-us")
	b.ReportMetric(at(app, 50), "append-p50-us")
	b.ReportMetric(at(app, 99), "append-p99-us")
	b.ReportMetric(at(app, 50)/at(raw, 50), "ratio")
}

// BenchmarkCrowdRatio takes turns between one hand and 64, so that both meet
// the same machine.
func BenchmarkCrowdRatio(b *testing.B) {
	s := fresh(b)
	hands := many(b, s, 64)
	var one, all []float64
	for b.Loop() {
		t := time.Now()
		for range 100 {
			hands[0].append(b, s, 1)
		}
		one = append(one, 100/time.Since(t).Seconds())
		t = time.Now()
		var wg sync.WaitGroup
		for _, h := range hands {
			wg.Go(func() {
				for range 30 {
					h.append(b, s, 1)
				}
			})
		}
		wg.Wait()
		all = append(all, 30*64/time.Since(t).Seconds())
	}
	slices.Sort(one)
	slices.Sort(all)
	b.ReportMetric(one[len(one)/2], "one/s")
	b.ReportMetric(all[len(all)/2], "all/s")
	b.ReportMetric(all[len(all)/2]/one[len(one)/2], "ratio")
}
