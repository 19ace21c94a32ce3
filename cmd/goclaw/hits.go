package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"goclaw/internal/query"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// hit is a hit in JSON. Other programs rely on its names.
type hit struct {
	Citation string      `json:"citation"`
	Session  session.ID  `json:"session,omitempty"`
	Key      session.Key `json:"key,omitempty"`
	Title    string      `json:"title,omitempty"`
	Record   string      `json:"record,omitempty"`
	Seq      session.Seq `json:"seq,omitempty"`
	Role     recall.Role `json:"role,omitempty"`
	Folder   string      `json:"folder,omitempty"`
	Source   string      `json:"source,omitempty"`
	Time     string      `json:"time,omitempty"`
	File     string      `json:"file,omitempty"`
	Line     int         `json:"line,omitempty"`
	Lines    int         `json:"lines,omitempty"`
	Heading  string      `json:"heading,omitempty"`
	Snippet  string      `json:"snippet"`
	Text     string      `json:"text"`
	Score    float64     `json:"score"`
	Also     []string    `json:"also,omitempty"`
	Near     bool        `json:"near,omitempty"` // it holds no word of the query itself
	Matches  []lineJSON  `json:"matches"`
}

// lineJSON is a line that matches: of the message, or of the file.
type lineJSON struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

const snippetSize = 280

// How many lines of a hit are in its JSON, and how long they are.
const (
	jsonLines    = 3
	jsonLineSize = 200
)

func hitJSON(h recall.Hit, text string) hit {
	s, _ := h.Snippet(text, snippetSize)
	lines := []lineJSON{}
	for _, l := range h.Matches(text, jsonLines, jsonLineSize) {
		lines = append(lines, lineJSON{max(h.Line, 1) - 1 + l.Line, l.Text})
	}
	return hit{
		h.Cite(), h.Session, h.Key, h.Title, h.Record, h.Seq, h.Role, h.Folder, h.Source, transcript.Stamp(h.Time), h.File, h.Line, h.Lines, h.Heading, s, h.Text, h.Score, h.Also, h.Near, lines,
	}
}

// answer is what a search found, in JSON.
type answer struct {
	Query      string   `json:"query"`
	Hits       []hit    `json:"hits"`
	Incomplete []string `json:"incomplete"`
	Literal    bool     `json:"literal"` // the exact text was searched for
	Near       bool     `json:"near"`    // no hit says what was asked for
	Vectors    float64  `json:"vectors"`
}

func hitsJSON(res recall.Result, text string) answer {
	hits := []hit{}
	for _, h := range res.Hits {
		hits = append(hits, hitJSON(h, text))
	}
	incomplete := notNil(res.Incomplete)
	if res.Missing > 0 {
		incomplete = append(incomplete, res.Uncompared())
	}
	return answer{text, hits, incomplete, res.Literal, res.Near, res.Vectors}
}

func printHits(e *env, res recall.Result, text string) {
	st := e.style()
	if len(res.Hits) == 0 {
		fmt.Fprintln(e.out, "nothing found")
	}
	for i, h := range res.Hits {
		fmt.Fprintln(e.out, transcript.Hit(i+1, h, text, st, e.columns()))
		if h.Session != "" && (e.columns() == 0 || e.columns() >= 80) {
			fmt.Fprintln(e.out, st.Dim(fmt.Sprintf("    goclaw sessions show %s --around %d", h.Session, h.Seq)))
		}
	}
	explain(e, res)
}

// explain says what was not searched, or only in part.
func explain(e *env, res recall.Result) {
	for _, s := range query.Remarks(res) {
		e.warn("%s", s)
	}
	if len(res.Hits) > 0 && !res.Literal && e.conf.Search.Embeddings == "off" {
		e.warn("a word search only: search.embeddings is off")
	}
}

// groupJSON is what was found in one session or file, in JSON.
type groupJSON struct {
	Session session.ID  `json:"session,omitempty"`
	Key     session.Key `json:"key,omitempty"`
	Title   string      `json:"title,omitempty"`
	Folder  string      `json:"folder,omitempty"`
	Source  string      `json:"source,omitempty"`
	File    string      `json:"file,omitempty"`
	Time    string      `json:"time,omitempty"` // of the latest hit
	Count   int         `json:"count"`
	Hits    []hit       `json:"hits"`
}

// groupsJSON is what a search found, by session, in JSON.
func groupsJSON(res recall.Result, groups []recall.Group, text string) any {
	out := []groupJSON{}
	for _, g := range groups {
		h := g.Hits[0]
		of := groupJSON{h.Session, h.Key, h.Title, h.Folder, h.Source, h.File, transcript.Stamp(g.Latest()), g.Count, nil}
		for _, h := range g.Hits {
			of.Hits = append(of.Hits, hitJSON(h, text))
		}
		out = append(out, of)
	}
	res.Hits = nil
	return struct {
		answer
		Hits     any         `json:"hits,omitempty"` // they are in the groups
		Sessions []groupJSON `json:"sessions"`
	}{answer: hitsJSON(res, text), Sessions: out}
}

func printGroups(e *env, res recall.Result, groups []recall.Group, text string) {
	if len(groups) == 0 {
		fmt.Fprintln(e.out, "nothing found")
	}
	for i, g := range groups {
		fmt.Fprintln(e.out, transcript.Group(i+1, g, text, e.style(), e.columns(), time.Now()))
		if h := g.Hits[0]; h.Session != "" && (e.columns() == 0 || e.columns() >= 80) {
			fmt.Fprintln(e.out, e.style().Dim(fmt.Sprintf("    goclaw sessions show %s", h.Cite())))
		}
	}
	explain(e, res)
}

// fileAround is how many lines of a file are shown before and after a note.
const fileAround = 6

// openHit shows one of the hits with what surrounds it.
func openHit(ctx context.Context, a *app, ix *recall.Index, res recall.Result, f searchFlags) error {
	if f.Open > len(res.Hits) {
		explain(a.env, res)
		return fmt.Errorf("the search found %s: there is no hit %d", transcript.Count(len(res.Hits), "hit"), f.Open)
	}
	h := res.Hits[f.Open-1]
	if h.File == "" {
		show := showFlags{asJSON: f.asJSON, around: fmt.Sprint(h.Seq), opened: transcript.Opened(h, f.text, a.style(), a.columns())}
		return showSession(ctx, a, string(h.Session), show)
	}
	from := max(1, h.Line-fileAround)
	text, total, err := ix.File(h.File, from, h.Line+h.Lines+fileAround-from)
	switch {
	case err != nil:
		return err
	case f.asJSON:
		return a.printJSON(struct {
			hit
			From   int    `json:"from"`
			Around string `json:"around"`
			Total  int    `json:"total"`
		}{hitJSON(h, f.text), from, text, total})
	}
	st := a.style()
	fmt.Fprintln(a.out, st.Bold(transcript.Name(h.Cite())))
	for i, line := range strings.Split(text, "\n") {
		mark, n := " ", from+i
		if n >= h.Line && n < h.Line+max(h.Lines, 1) {
			mark = ">"
		}
		fmt.Fprintf(a.out, "%s%s %s\n", mark, st.Dim(fmt.Sprintf("%4d", n)), transcript.Marked(h, line, f.text, st))
	}
	return nil
}
