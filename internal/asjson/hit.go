package asjson

import (
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// Hit is a hit in JSON. Other programs rely on its names.
type Hit struct {
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
	Matches  []line      `json:"matches"`
}

// line is a line that matches: of the message, or of the file.
type line struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

const snippetSize = 280

// How many lines of a hit are in its JSON, and how long they are.
const (
	jsonLines    = 3
	jsonLineSize = 200
)

// HitOf returns h as programs get it. text is what was searched for.
func HitOf(h recall.Hit, text string) Hit {
	s, _ := h.Snippet(text, snippetSize)
	lines := []line{}
	for _, l := range h.Matches(text, jsonLines, jsonLineSize) {
		lines = append(lines, line{max(h.Line, 1) - 1 + l.Line, l.Text})
	}
	return Hit{
		h.Cite(), h.Session, h.Key, h.Title, h.Record, h.Seq, h.Role, h.Folder, h.Source, transcript.Stamp(h.Time), h.File, h.Line, h.Lines, h.Heading, s, h.Text, h.Score, h.Also, h.Near, lines,
	}
}

// Answer is what a search found, in JSON.
type Answer struct {
	Query      string   `json:"query"`
	Hits       []Hit    `json:"hits"`
	Incomplete []string `json:"incomplete"`
	Literal    bool     `json:"literal"` // the exact text was searched for
	Near       bool     `json:"near"`    // no hit says what was asked for
	Vectors    float64  `json:"vectors"`
}

// Hits is what a search for text found.
func Hits(res recall.Result, text string) Answer {
	hits := []Hit{}
	for _, h := range res.Hits {
		hits = append(hits, HitOf(h, text))
	}
	incomplete := notNil(res.Incomplete)
	if res.Missing > 0 {
		incomplete = append(incomplete, res.Uncompared())
	}
	return Answer{text, hits, incomplete, res.Literal, res.Near, res.Vectors}
}

// group is what was found in one session or file, in JSON.
type group struct {
	Session session.ID  `json:"session,omitempty"`
	Key     session.Key `json:"key,omitempty"`
	Title   string      `json:"title,omitempty"`
	Folder  string      `json:"folder,omitempty"`
	Source  string      `json:"source,omitempty"`
	File    string      `json:"file,omitempty"`
	Time    string      `json:"time,omitempty"` // of the latest hit
	Count   int         `json:"count"`
	Hits    []Hit       `json:"hits"`
}

// Groups is what a search found, by session, in JSON.
func Groups(res recall.Result, groups []recall.Group, text string) any {
	out := []group{}
	for _, g := range groups {
		h := g.Hits[0]
		of := group{h.Session, h.Key, h.Title, h.Folder, h.Source, h.File, transcript.Stamp(g.Latest()), g.Count, nil}
		for _, h := range g.Hits {
			of.Hits = append(of.Hits, HitOf(h, text))
		}
		out = append(out, of)
	}
	res.Hits = nil
	return struct {
		Answer
		Hits     any     `json:"hits,omitempty"` // they are in the groups
		Sessions []group `json:"sessions"`
	}{Answer: Hits(res, text), Sessions: out}
}
