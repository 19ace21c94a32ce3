package pick

import (
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// kind is what a point of a session is.
type kind uint8

const (
	aTurn       kind = iota // a message of the user
	aCompaction             // earlier turns were replaced with a summary
	aCheckpoint             // a summary made in advance
	anEnd                   // of a branch
)

// point is a line of the tree. It holds records, not texts: those are made when
// the line is drawn.
type point struct {
	kind   kind
	depth  int // how many branches it is away from the live one
	live   bool
	rec    session.Record
	answer session.Record // what was said to a message of the user; at the end of a branch, what was said last
}

// text is what the point is found by, and begins with what is shown of it.
func (p point) text() string {
	switch b := p.rec.Body.(type) {
	case session.Message:
		return said(b)
	case session.Compaction:
		return b.Summary
	case session.Checkpoint:
		return b.Summary
	}
	return ""
}

// said is the text of a message. An image has none.
func said(m session.Message) string {
	if t := m.Text(); strings.TrimSpace(t) != "" {
		return t
	}
	for _, b := range m.Blocks {
		if _, ok := b.(llm.Image); ok {
			return "(an image)"
		}
	}
	return ""
}

// shoot is a point while the tree is built.
type shoot struct {
	point
	kids []int32 // what continues it, in the order of the log
	last session.Seq
	up   int32 // -1: a root
}

// points returns the lines of the tree of s: the live branch straight down, and
// what was left of it indented, before what the live one goes on with. All of it
// is one pass over the log and one over the tree.
func points(s *session.Session) (out []point, turns, branches int) {
	g := grow(s)
	type step struct {
		at    int32
		depth int
	}
	var todo []step
	push := func(kids []int32, depth int) {
		main := g.main(kids)
		if main >= 0 {
			todo = append(todo, step{main, depth})
		}
		for i := len(kids) - 1; i >= 0; i-- {
			if kids[i] != main {
				todo = append(todo, step{kids[i], depth + 1})
			}
		}
	}
	push(g.roots, 0)
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := &g.all[t.at]
		n.depth = t.depth
		out = append(out, n.point)
		switch n.kind {
		case aTurn:
			turns++
		case anEnd:
			branches++
		}
		push(n.kids, t.depth)
	}
	return out, turns, branches
}

// tree is a session's points, and what continues what.
type tree struct {
	all   []shoot
	roots []int32
}

// main returns the one of kids that the branch goes on with: the live one, or
// the one in which something was said last.
func (g *tree) main(kids []int32) int32 {
	best := int32(-1)
	for _, k := range kids {
		if g.all[k].live {
			return k
		}
		if best < 0 || g.all[k].last > g.all[best].last {
			best = k
		}
	}
	return best
}

// grow builds the tree of s.
func grow(s *session.Session) *tree {
	g := &tree{}
	of := make([]int32, s.Last+1) // the latest point at each record or before it, from 1
	heard := make(map[int32]session.Record)
	live := make([]bool, s.Last+1)
	for _, r := range s.Branch {
		if r.Seq >= 0 && int(r.Seq) < len(live) {
			live[r.Seq] = true
		}
	}
	for r, up := range s.Links() {
		at := of[up] - 1
		if k, ok := kindOf(r); ok {
			at = g.add(point{kind: k, rec: r, live: live[r.Seq]}, at)
		}
		if m, ok := r.Body.(session.Message); ok && m.Role == llm.Assistant && strings.TrimSpace(m.Text()) != "" && at >= 0 {
			heard[at] = r
		}
		of[r.Seq] = at + 1
	}
	for i, r := range heard {
		g.all[i].answer = r
	}
	for _, t := range s.Tips() {
		at := of[t.Seq] - 1
		if at < 0 && !t.Live { // nothing was said there
			continue
		}
		p := point{kind: anEnd, live: t.Live, rec: session.Record{Seq: t.Seq, ID: t.ID}}
		if at >= 0 {
			p.answer = g.all[at].answer
		}
		g.add(p, at)
	}
	for i := len(g.all) - 1; i >= 0; i-- { // what continues a point comes after it
		n := &g.all[i]
		n.last = max(n.last, n.rec.Seq)
		if n.up >= 0 {
			up := &g.all[n.up]
			up.last = max(up.last, n.last)
		}
	}
	return g
}

// add adds a point that continues the one at up.
func (g *tree) add(p point, up int32) int32 {
	at := int32(len(g.all))
	g.all = append(g.all, shoot{point: p, up: up})
	if up < 0 {
		g.roots = append(g.roots, at)
	} else {
		g.all[up].kids = append(g.all[up].kids, at)
	}
	return at
}

// kindOf returns what a record is in the tree, if it is shown.
func kindOf(r session.Record) (kind, bool) {
	switch r.Body.(type) {
	case session.Compaction:
		return aCompaction, true
	case session.Checkpoint:
		return aCheckpoint, true
	}
	return aTurn, session.IsTurn(r.Body)
}
