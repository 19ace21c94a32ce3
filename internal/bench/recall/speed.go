package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// What the messages are like: as long as those of the labelled benchmark, with
// words as frequent as in a language.
const (
	perSession = 50
	perMessage = 24
	vocabulary = 60_000
	questions  = 200
	stopWords  = 45 // of 100 words, as in English
	asked      = 20 // the first word that questions have
)

var common = strings.Fields("the of and to in is you that it he was for on are with as his they at be this have from or had by")

// speed measures what n messages take: to import, to index, and to search.
func speed(ctx context.Context, n int) error {
	dir, err := os.MkdirTemp("", "bench-recall")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "sessions.db")
	st, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	defer st.Close()
	w := newWriter()
	text, begin, wrote := 0, time.Now(), time.Duration(0)
	for i := 0; i < n; i += perSession {
		recs := w.session(i/perSession, min(perSession, n-i), &text)
		t := time.Now()
		if err := st.Append(ctx, recs[0].Body.(session.Header).ID, recs...); err != nil {
			return err
		}
		wrote += time.Since(t)
	}
	fmt.Printf("%d messages in %d sessions, %.1f MB of text (made in %v)\n", n, (n+perSession-1)/perSession, mb(text), (time.Since(begin) - wrote).Round(time.Millisecond))
	fmt.Printf("import without the index: %v (%.0f messages/s)\n", wrote.Round(time.Millisecond), float64(n)/wrote.Seconds())

	ix, err := recall.Open(recall.Options{Store: st, Path: path + "-index", Embedder: standIn{}})
	if err != nil {
		return err
	}
	defer ix.Close()
	begin = time.Now()
	if err := ix.Sync(ctx); err != nil {
		return err
	}
	took := time.Since(begin)
	size, err := ix.Size()
	if err != nil {
		return err
	}
	fmt.Printf("indexing: %v (%.0f messages/s, %.2f of the import's speed when done with it)\n", took.Round(time.Millisecond), float64(n)/took.Seconds(), wrote.Seconds()/(wrote+took).Seconds())
	fmt.Printf("index without vectors: %.1f MB, %.1f %% of the text\n", mb(int(size)), 100*float64(size)/float64(text))
	begin = time.Now()
	made, err := ix.Embed(ctx)
	if err != nil {
		return err
	}
	if size, err = ix.Size(); err != nil {
		return err
	}
	fmt.Printf("index with %d vectors: %.1f MB, %.1f %% of the text (written in %v, the model not counted)\n", made, mb(int(size)), 100*float64(size)/float64(text), time.Since(begin).Round(time.Millisecond))

	before := peak()
	var times []time.Duration
	var worked time.Duration
	for i := range questions {
		q := recall.Query{Text: w.question(), Limit: 10, Sessions: true, Now: time.Unix(1_800_000_000, 0)}
		t := time.Now()
		res, err := ix.Search(ctx, q)
		if err != nil {
			return err
		}
		if len(res.Hits) == 0 {
			return fmt.Errorf("%q found nothing", q.Text)
		}
		if i > 0 { // the first loads the model and the tables
			times = append(times, time.Since(t))
		} else {
			fmt.Printf("first search: %v\n", time.Since(t).Round(time.Millisecond))
			worked = cpuTime()
		}
	}
	slices.Sort(times)
	fmt.Printf("top 10 hybrid, %d questions: median %v, p95 %v, p99 %v\n", len(times), times[len(times)/2].Round(10*time.Microsecond),
		times[len(times)*95/100].Round(10*time.Microsecond), times[len(times)*99/100].Round(10*time.Microsecond))
	fmt.Printf("processor time: %.1f ms for each question, on all cores together\n", (cpuTime()-worked).Seconds()*1000/float64(len(times)))
	runtime.GC()
	fmt.Printf("resident: %.0f MB now, %.0f MB at most while searching (%.0f MB at most before)\n", mb(resident()), mb(peak()), mb(before))
	return kept(
		limit{"indexing, of the import's speed", wrote.Seconds() / (wrote + took).Seconds(), 0.5, true},
		limit{"index, % of the text", 100 * float64(size) / float64(text), 60, false},
		limit{"median, ms", float64(times[len(times)/2]) / 1e6, 50, false},
		limit{"p99, ms", float64(times[len(times)*99/100]) / 1e6, 200, false},
		limit{"resident, MB", mb(peak()), 200, false},
	)
}

// limit is a figure and its limit.
type limit struct {
	what     string
	got, may float64
	least    bool
}

// kept returns an error that names the limits that were exceeded.
func kept(limits ...limit) error {
	var broken []string
	for _, l := range limits {
		if l.least && l.got < l.may || !l.least && l.got > l.may {
			broken = append(broken, fmt.Sprintf("%s: %.3g, limit %g", l.what, l.got, l.may))
		}
	}
	if broken != nil {
		return errors.New("not kept: " + strings.Join(broken, "; "))
	}
	fmt.Println("all limits are kept")
	return nil
}

func mb(n int) float64 { return float64(n) / 1e6 }

// resident and peak read what Linux says of this process.
func resident() int { return status("VmRSS:") }
func peak() int     { return status("VmHWM:") }

// cpuTime is how long the cores have worked for this process, in steps of 10 ms.
func cpuTime() time.Duration {
	b, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold anything
	var user, system int64
	if f := strings.Fields(rest); len(f) > 12 {
		fmt.Sscan(f[11], &user)
		fmt.Sscan(f[12], &system)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

func status(name string) (n int) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), name)
	fmt.Sscan(rest, &n)
	return n * 1024
}

// standIn makes vectors of messages in no time, and that of a question in the
// time of the real model.
type standIn struct{}

func (standIn) Name() string { return "stand-in" }

func (standIn) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 1 {
		if _, err := (recall.Local{}).Vectors(ctx, texts); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, t := range texts {
		h := fnv.New64a()
		h.Write([]byte(t))
		rng := rand.New(rand.NewPCG(h.Sum64(), 1))
		out[i] = make([]float32, 512)
		for j := range out[i] {
			out[i][j] = float32(rng.NormFloat64())
		}
	}
	return out, nil
}

// writer invents conversations.
type writer struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newWriter() *writer {
	rng := rand.New(rand.NewPCG(7, 7))
	w := &writer{rng: rng, zipf: rand.NewZipf(rng, 1.07, 8, vocabulary-1)}
	syllables := strings.Fields("ka to mi re lo sun ber tal vin dor pel ga chi no ru sem bra il ost wen fa gri po zu ne hal ti mor va den")
	seen := map[string]bool{}
	for len(w.words) < vocabulary {
		var b strings.Builder
		for range 1 + rng.IntN(4) {
			b.WriteString(syllables[rng.IntN(len(syllables))])
		}
		if s := b.String(); !seen[s] {
			seen[s] = true
			w.words = append(w.words, s)
		}
	}
	return w
}

func (w *writer) text(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		if w.rng.IntN(100) < stopWords {
			b.WriteString(common[w.rng.IntN(len(common))])
			continue
		}
		b.WriteString(w.words[w.zipf.Uint64()])
	}
	return b.String()
}

// question returns three to eight words by their frequency, without stop words.
func (w *writer) question() string {
	var out []string
	for range 3 + w.rng.IntN(6) {
		out = append(out, w.words[min(asked+w.zipf.Uint64(), vocabulary-1)])
	}
	return strings.Join(out, " ") + "?"
}

func (w *writer) session(i, n int, text *int) []session.Record {
	id := session.ID(fmt.Sprintf("bench-%06d", i))
	at := time.Unix(1_700_000_000+int64(i)*3600, 0).UTC()
	recs := []session.Record{{Seq: 1, Time: at, Body: session.Header{Version: session.Version, ID: id, Key: session.Key("main:bench:" + string(id))}}}
	for j := range n {
		at = at.Add(time.Minute)
		m := llm.UserText(w.text(1 + w.rng.IntN(2*perMessage-1)))
		if j%2 == 1 {
			m.Role = llm.Assistant
		}
		*text += len(m.Text())
		last := recs[len(recs)-1]
		recs = append(recs, session.Record{Seq: last.Seq + 1, ID: fmt.Sprintf("%08x", w.rng.Uint32()), Parent: last.ID, Time: at, Body: session.Message{Message: m, At: at}})
	}
	return recs
}
