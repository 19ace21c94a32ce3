package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"goclaw/internal/asjson"
	"goclaw/internal/query"
	"goclaw/internal/transcript"
	"goclaw/recall"
)

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
			asjson.Hit
			From   int    `json:"from"`
			Around string `json:"around"`
			Total  int    `json:"total"`
		}{asjson.HitOf(h, f.text), from, text, total})
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
