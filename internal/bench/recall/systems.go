package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/memory"
)

// system is a search that is measured.
type system struct {
	name  string
	model bool // it uses the model
	open  func(ctx context.Context, s *set, conversation string) (finder, error)
}

// systems are the searches that are measured, those that others have first.
func systems(o options) []system {
	all := []system{
		{"FTS5 unicode61, any word", false, fts(o, "unicode61", everyWord)},
		{"FTS5 porter, no stop words", false, fts(o, "porter unicode61", noStopWords)},
		{"FTS5 trigram, any three characters", false, fts(o, "trigram", trigrams)},
		{"R1", false, openR1(o, nil)},
		{"R1 + model", true, openR1(o, o.model)},
		{ours, false, openGoclaw(o, nil)},
		{ours + " + model", true, openGoclaw(o, o.model)},
	}
	return slices.DeleteFunc(all, func(y system) bool { return y.model && !o.withModel || !named(y.name, o.only) })
}

const ours = "goclaw"

// named reports whether a name contains one of the words, which are separated
// by commas.
func named(name, words string) bool {
	return slices.ContainsFunc(strings.Split(words, ","), func(w string) bool {
		return strings.Contains(strings.ToLower(name), strings.ToLower(strings.TrimSpace(w)))
	})
}

// finder searches one conversation. It names what it finds as the benchmark
// does, the best first.
type finder struct {
	search func(q query) ([]string, error)
	close  func()
}

// opened is a system that is ready to search all of a set.
type opened struct {
	set     *set
	finders map[string]finder // by conversation
}

// open opens a system for every conversation of s.
func (y system) openAll(ctx context.Context, s *set) (*opened, error) {
	o := &opened{s, map[string]finder{}}
	names := s.conversations()
	var mu sync.Mutex
	err := parallel(len(names), func(i int) error {
		f, err := y.open(ctx, s, names[i])
		if err != nil {
			return fmt.Errorf("%s: %s: %w", y.name, names[i], err)
		}
		mu.Lock()
		defer mu.Unlock()
		o.finders[names[i]] = f
		return nil
	})
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

func (o *opened) close() {
	for _, f := range o.finders {
		f.close()
	}
}

// ask returns what is found for each of queries, and how good that is.
func (o *opened) ask(queries []query) (found [][]string, scores []score, err error) {
	found, scores = make([][]string, len(queries)), make([]score, len(queries))
	err = parallel(len(queries), func(i int) (err error) {
		q := queries[i]
		if found[i], err = o.finders[q.Conversation].search(q); err != nil {
			return fmt.Errorf("%s: %w", q.QID, err)
		}
		scores[i] = rate(q.Gold, found[i])
		return nil
	})
	return found, scores, err
}

// parallel calls f for 0 to n-1, as many at a time as there are processors.
func parallel(n int, f func(i int) error) error {
	var work sync.WaitGroup
	errs := make([]error, n)
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		work.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	work.Wait()
	return errors.Join(errs...)
}

// openGoclaw searches with package recall, as a program of goclaw's does.
func openGoclaw(o options, e recall.Embedder) func(context.Context, *set, string) (finder, error) {
	return func(ctx context.Context, s *set, conversation string) (finder, error) {
		if s.notes != "" {
			return openNotes(ctx, o, filepath.Join(s.notes, conversation), conversation, e)
		}
		return openMessages(ctx, o, s.docs[conversation], e)
	}
}

// openMessages appends messages to sessions of a new store, and opens an index
// over it.
func openMessages(ctx context.Context, o options, docs []document, e recall.Embedder) (finder, error) {
	st := memory.New()
	names := map[string]string{} // by session and record
	first := map[string]string{} // the first speaker of a conversation is the user
	logs := map[string][]session.Record{}
	var order []string
	for _, d := range docs {
		if first[d.Conversation] == "" {
			first[d.Conversation] = d.Speaker
		}
		recs := logs[d.Session]
		if recs == nil {
			order = append(order, d.Session)
			recs = append(recs, session.Record{Seq: 1, Time: d.TS, Body: session.Header{Version: session.Version, ID: session.ID(d.Session), Key: session.Key("main:bench:" + d.Session)}})
		}
		last := recs[len(recs)-1]
		m := d.message(d.Speaker == first[d.Conversation])
		r := session.Record{Seq: last.Seq + 1, ID: d.ID, Parent: last.ID, Time: d.TS, Body: session.Message{Message: m, At: d.TS}}
		names[fmt.Sprint(d.Session, "#", r.Seq)] = d.ID
		logs[d.Session] = append(recs, r)
	}
	for _, id := range order {
		if err := st.Append(ctx, session.ID(id), logs[id]...); err != nil {
			return finder{}, err
		}
	}
	ix, err := recall.Open(recall.Options{Store: st, Embedder: e})
	if err != nil {
		return finder{}, err
	}
	return find(ctx, o, ix, recall.Query{Sessions: true}, func(cite string) string { return names[cite] })
}

// openNotes opens an index over the memory files of a conversation, or of all
// that are in dir.
func openNotes(ctx context.Context, o options, dir, conversation string, e recall.Embedder) (finder, error) {
	in := recall.Options{Workspace: dir, Embedder: e}
	prefix := conversation + "/"
	if conversation == "" {
		prefix = ""
		all, err := os.ReadDir(dir)
		if err != nil {
			return finder{}, err
		}
		for _, a := range all {
			in.Memory = append(in.Memory, a.Name())
		}
	}
	ix, err := recall.Open(in)
	if err != nil {
		return finder{}, err
	}
	return find(ctx, o, ix, recall.Query{Memory: true}, func(cite string) string {
		return prefix + strings.Replace(cite, ":", "#L", 1)
	})
}

// find makes a finder that searches ix as in says and names citations.
func find(ctx context.Context, o options, ix *recall.Index, in recall.Query, name func(cite string) string) (finder, error) {
	if _, err := ix.Embed(ctx); err != nil {
		ix.Close()
		return finder{}, err
	}
	return finder{
		search: func(q query) ([]string, error) {
			in := in
			in.Text, in.Limit, in.Now = q.Question, o.hits, q.AskedAt
			res, err := ix.Search(ctx, in)
			var out []string
			for _, h := range res.Hits {
				for _, cite := range append([]string{h.Cite()}, h.Also...) {
					out = append(out, name(cite))
				}
			}
			return out, err
		},
		close: func() { ix.Close() },
	}, nil
}
