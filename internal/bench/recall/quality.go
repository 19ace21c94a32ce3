package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// document is one message of docs.jsonl.
type document struct {
	ID, Conversation, Session, Speaker, Text string
	TS                                       time.Time
}

// message is d as a log has it. Two people are the two roles, and their
// messages begin with their names.
func (d document) message(first bool) llm.Message {
	text := []llm.Block{llm.Text{Text: d.Text}}
	switch d.Speaker {
	case "user":
		return llm.Message{Role: llm.User, Blocks: text}
	case "assistant":
		return llm.Message{Role: llm.Assistant, Blocks: text}
	case "tool":
		return llm.Message{Role: llm.User, Blocks: []llm.Block{llm.ToolResult{CallID: d.ID, Name: "tool", Blocks: text}}}
	}
	m := llm.Message{Role: llm.Assistant, Blocks: []llm.Block{llm.Text{Text: d.Speaker + ": " + d.Text}}}
	if first {
		m.Role = llm.User
	}
	return m
}

// query is one line of queries.jsonl or notes_queries.jsonl.
type query struct {
	QID, Conversation, Question, Category string
	Gold                                  []string
	AskedAt                               time.Time `json:"asked_at"`
}

// baselines are the figures in the README of the benchmark.
var baselines = map[string][][5]any{
	"turns": {
		{"FTS5 porter, any word", 50.2, 58.4, 44.6, 43.5},
		{"GoClaw's memory_search", 28.9, 39.1, 24.6, 21.5},
		{"OpenClaw 2026.9.6, hybrid", 15.9, 20.7, 12.9, 11.5},
		{"R1, no model", 68.7, 76.2, 61.1, 59.9},
		{"R1 + USE-lite", 71.1, 78.9, 63.0, 61.4},
	},
	"notes": {
		{"FTS5 porter, any word", 59.9, 65.6, 56.0, 58.2},
		{"GoClaw's memory_search", 57.9, 67.2, 52.1, 51.4},
		{"OpenClaw 2026.9.6, hybrid", 16.7, 22.3, 14.2, 13.0},
		{"R1, no model", 68.4, 74.7, 62.8, 63.3},
		{"R1 + USE-lite", 70.1, 77.7, 66.4, 67.3},
	},
}

// depth is how many hits of each query are scored.
const depth = 100

// notSearch are the categories that the mean leaves out.
var notSearch = []string{"adversarial", "event_ordering", "summarization", "instruction_following", "preference_following"}

func quality(ctx context.Context, dir, run string, together bool) error {
	docs, err := readLines[document](filepath.Join(dir, "docs.jsonl"))
	if err != nil {
		return err
	}
	queries, err := readLines[query](filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		return err
	}
	where := func(q query) string { return q.Conversation }
	if together {
		where = func(query) string { return "" }
	}
	err = measure(ctx, "turns", queries, run, where, func(conversation string, e recall.Embedder) (finder, error) {
		return openTurns(ctx, docs, conversation, e)
	})
	if err != nil {
		return err
	}
	queries, err = readLines[query](filepath.Join(dir, "notes_queries.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return measure(ctx, "notes", queries, run, where, func(conversation string, e recall.Embedder) (finder, error) {
		return openNotes(ctx, filepath.Join(dir, "notes", conversation), conversation, e)
	})
}

func readLines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 8<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(out)+1, err)
		}
		out = append(out, v)
	}
	return out, s.Err()
}

// finder searches one conversation. It names what it finds as the benchmark
// does.
type finder struct {
	search func(q query) ([]string, error)
	close  func()
}

// openTurns appends the messages of a conversation, "" for all, to sessions of
// a new store, and opens an index over it.
func openTurns(ctx context.Context, docs []document, conversation string, e recall.Embedder) (finder, error) {
	dir, err := os.MkdirTemp("", "bench-recall")
	if err != nil {
		return finder{}, err
	}
	path := filepath.Join(dir, "sessions.db")
	st, err := sqlite.Open(path)
	if err != nil {
		return finder{}, err
	}
	names := map[string]string{} // by session and record
	first := map[string]string{} // the first speaker is the user
	logs := map[string][]session.Record{}
	var order []string
	for _, d := range docs {
		if conversation != "" && d.Conversation != conversation {
			continue
		}
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
	ix, err := recall.Open(recall.Options{Store: st, Path: path + "-index", Embedder: e})
	if err != nil {
		return finder{}, err
	}
	return find(ctx, ix, recall.Query{Sessions: true}, func(cite string) string { return names[cite] },
		func() { ix.Close(); st.Close(); os.RemoveAll(dir) })
}

// openNotes opens an index over the memory files of a conversation, or of all
// that are in dir.
func openNotes(ctx context.Context, dir, conversation string, e recall.Embedder) (finder, error) {
	o := recall.Options{Workspace: dir, Embedder: e}
	prefix := conversation + "/"
	if conversation == "" {
		prefix = ""
		all, err := os.ReadDir(dir)
		if err != nil {
			return finder{}, err
		}
		for _, a := range all {
			o.Memory = append(o.Memory, a.Name())
		}
	}
	ix, err := recall.Open(o)
	if err != nil {
		return finder{}, err
	}
	return find(ctx, ix, recall.Query{Memory: true}, func(cite string) string {
		return prefix + strings.Replace(cite, ":", "#L", 1)
	}, func() { ix.Close() })
}

// find makes a finder that searches ix as in says and names citations.
func find(ctx context.Context, ix *recall.Index, in recall.Query, name func(cite string) string, close func()) (finder, error) {
	if _, err := ix.Embed(ctx); err != nil {
		return finder{}, err
	}
	return finder{
		search: func(q query) ([]string, error) {
			in.Text, in.Limit, in.Now = q.Question, depth, q.AskedAt
			res, err := ix.Search(ctx, in)
			var out []string
			for _, h := range res.Hits {
				for _, cite := range append([]string{h.Cite()}, h.Also...) {
					out = append(out, name(cite))
				}
			}
			return out, err
		},
		close: close,
	}, nil
}

var local recall.Embedder = recall.Local{}

// score is recall@5, recall@10, nDCG@10 and MRR.
type score [4]float64

func measure(ctx context.Context, task string, queries []query, run string, where func(query) string, open func(string, recall.Embedder) (finder, error)) error {
	fmt.Printf("%-34s %5s  %9s %9s %9s %9s\n", task, "n", "recall@5", "recall@10", "nDCG@10", "MRR")
	row := func(name string, n int, s score) {
		fmt.Printf("%-34s %5d  %9.1f %9.1f %9.1f %9.1f\n", name, n, s[0], s[1], s[2], s[3])
	}
	for _, b := range baselines[task] {
		fmt.Printf("  %-32s %5s  %9.1f %9.1f %9.1f %9.1f\n", b[0], "", b[1], b[2], b[3], b[4])
	}
	for _, e := range []recall.Embedder{nil, local} {
		name := "goclaw, no model"
		if e != nil {
			name = "goclaw + " + e.Name()
		}
		by, in := map[string][]score{}, map[string][]score{} // categories, conversations
		finders := map[string]finder{}
		var lines strings.Builder
		for _, q := range queries {
			f, ok := finders[where(q)]
			if !ok {
				var err error
				if f, err = open(where(q), e); err != nil {
					return err
				}
				defer f.close()
				finders[where(q)] = f
			}
			found, err := f.search(q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.QID, err)
			}
			for i, id := range found {
				fmt.Fprintf(&lines, "%s\t%s\t%d\t%g\n", q.QID, id, i+1, 1/float64(i+1))
			}
			s := rate(q.Gold, found)
			by[q.Category] = append(by[q.Category], s)
			if !slices.Contains(notSearch, q.Category) {
				by[""] = append(by[""], s)
				in[q.Conversation] = append(in[q.Conversation], s)
			}
		}
		row("  "+name, len(by[""]), mean(by[""]))
		for _, parts := range []map[string][]score{by, in} {
			for _, c := range slices.Sorted(maps.Keys(parts)) {
				if c != "" {
					row("    "+c, len(parts[c]), mean(parts[c]))
				}
			}
		}
		if run != "" && e != nil {
			if err := os.WriteFile(run+"."+task+".tsv", []byte(lines.String()), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// rate compares what was found with what should have been found.
func rate(gold, found []string) (s score) {
	want := map[string]bool{}
	for _, g := range gold {
		want[g] = true
	}
	seen := map[string]bool{}
	rank, dcg := 0, 0.0
	for _, id := range found {
		if seen[id] {
			continue
		}
		seen[id] = true
		if rank++; !want[id] {
			continue
		}
		if rank <= 5 {
			s[0] += 1 / float64(len(want))
		}
		if rank <= 10 {
			s[1] += 1 / float64(len(want))
			dcg += 1 / math.Log2(float64(rank)+1)
		}
		if s[3] == 0 {
			s[3] = 1 / float64(rank)
		}
	}
	ideal := 0.0
	for i := range min(len(want), 10) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	if ideal > 0 {
		s[2] = dcg / ideal
	}
	return s
}

func mean(all []score) (m score) {
	for _, s := range all {
		for i := range m {
			m[i] += 100 * s[i] / float64(len(all))
		}
	}
	return m
}
