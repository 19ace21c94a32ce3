package naming

import (
	"context"
	"iter"

	"goclaw/session"
)

// Choice says which sessions a list has.
type Choice struct {
	session.Query        // Text may match titles as Title makes them, and Limit counts what is listed
	Folder        string // only those that worked in it or below it; "": anywhere
	All           bool   // subagents' sessions, too
	Titles        *Memo  // titles that were made before; nil: all are made
	Expect        int    // about how many are taken: the store is asked for more only if they are; 0: for all
}

// mostUntitled is how many sessions of our own without a title a list reads for
// one. They are rare, and a list of thousands must not read as many logs.
const mostUntitled = 200

// List returns the sessions that c selects, with titles as Title makes them.
func List(ctx context.Context, st session.Store, c Choice) iter.Seq2[session.Info, error] {
	return func(yield func(session.Info, error) bool) {
		q, n := c.Query, 0
		q.Text = ""
		here := InFolder(c.Folder)
		seen, untitled := map[session.ID]bool{}, 0
		for q.Limit = c.Expect; ; q.Limit *= 8 {
			rows := 0
			for in, err := range st.List(ctx, q) {
				if rows++; err == nil {
					if seen[in.ID] || in.Subagent() && !c.All || c.Folder != "" && !here(in.CWD) {
						continue
					}
					seen[in.ID] = c.Expect > 0
					bare := in.Title == "" && !in.Mirror()
					if bare {
						untitled++
					}
					switch {
					case bare && untitled > mostUntitled: // it stays without one
					case c.Titles != nil:
						in.Title = c.Titles.Title(ctx, st, in)
					default:
						in.Title = Title(ctx, st, in)
					}
					if !c.Match(in) {
						continue
					}
					n++
				}
				if !yield(in, err) || c.Limit > 0 && n == c.Limit {
					return
				}
			}
			if rows < q.Limit || q.Limit == 0 {
				return
			}
		}
	}
}
