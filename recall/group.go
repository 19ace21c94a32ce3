package recall

import (
	"slices"
	"strings"
	"time"

	"goclaw/session"
)

// Group is what was found in one session, or in one memory file, the best
// first. Count is how many hits there are, with those that say the same.
type Group struct {
	Hits  []Hit
	Count int
}

// Latest returns when the latest of the hits was said.
func (g Group) Latest() (t time.Time) {
	for _, h := range g.Hits {
		if h.Time.After(t) {
			t = h.Time
		}
	}
	return t
}

// Groups groups hits by session and file, in the order of the best hit of each.
// What only stands near a match is left out where the session has matches.
func Groups(hits []Hit) []Group {
	type place struct {
		id   session.ID
		file string
	}
	var out []Group
	at := map[place]int{}
	for _, h := range hits {
		p := place{h.Session, h.File}
		i, ok := at[p]
		if !ok {
			i = len(out)
			at[p] = i
			out = append(out, Group{})
		}
		out[i].Hits = append(out[i].Hits, h)
	}
	for i := range out {
		out[i].settle()
	}
	return out
}

// settle leaves out what is only near a match, if anything matches, and counts
// the rest.
func (g *Group) settle() {
	isNear := func(h Hit) bool { return h.Near }
	if slices.ContainsFunc(g.Hits, func(h Hit) bool { return !h.Near }) {
		g.Hits = slices.DeleteFunc(g.Hits, isNear)
	}
	g.Count = len(g.Hits)
	for _, h := range g.Hits {
		for _, also := range h.Also {
			if id, _, ok := Cited(also); ok && h.File == "" && session.ID(id) == h.Session || h.File != "" && strings.HasPrefix(also, h.File+":") {
				g.Count++
			}
		}
	}
}
