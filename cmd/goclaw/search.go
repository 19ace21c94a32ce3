package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/tool"
)

// index opens the search index once.
func (a *app) index() (*recall.Index, error) {
	if a.ix != nil {
		return a.ix, nil
	}
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	c := a.conf
	o := recall.Options{
		Store: st, Workspace: c.Workspace, Memory: c.Search.Memory, Now: time.Now,
		Private: func(path string) bool { return fence(c).Check(path) != nil },
		Progress: func(done, total int) {
			if a.isTerminal(a.err) {
				fmt.Fprintf(a.err, "\rindexing: %d of %d records ", done, total)
				if done >= total {
					fmt.Fprint(a.err, "\r\x1b[K")
				}
			}
		},
	}
	o.Embedded = func(made int) {
		if a.embedding && a.isTerminal(a.err) {
			fmt.Fprintf(a.err, "\rmaking vectors: %d ", made)
		}
	}
	switch c.Search.Embeddings {
	case "builtin":
		o.Embedder = recall.Local{}
	case "endpoint":
		o.Embedder = recall.Endpoint{URL: c.Search.BaseURL, Model: c.Search.Model, Key: c.Search.APIKey}
	}
	o.Path = indexAt(c)
	if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) && c.Session.Store == "sqlite" {
		if err := recall.RemoveFrom(c.Session.Path); err != nil {
			fmt.Fprintln(a.err, "goclaw: the search index of an older version stays in the database: "+oneLine(err))
		}
	}
	ix, err := recall.Open(o)
	if err != nil {
		return nil, err
	}
	a.ix = ix
	return ix, nil
}

func (a *app) searchCmd() *cobra.Command {
	var q recall.Query
	var asJSON, all bool
	var in, role, since string
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find what was said, and what the memory files say",
		Long: `Searches every message of every session, and the memory files of the workspace
(MEMORY.md and memory/), by words and by meaning. QUERY is plain text: a
question will do, and no character has a meaning of its own.`,
		Example: `  goclaw search "why did we drop redis?"
  goclaw search --since 2026-08-01 --role user invoice
  goclaw search --memory birthday
  goclaw search --index               make vectors for everything now`,
		Args: func(cmd *cobra.Command, args []string) error {
			blank := strings.TrimSpace(strings.Join(args, "")) == ""
			switch path := cmd.CommandPath(); {
			case blank && !all:
				return usage("%s needs QUERY: see %s --help", path, path)
			case !blank && all:
				return usage("%s --index takes no QUERY: it brings the index up to date", path)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if q.Memory && (in != "" || q.Agent != "" || role != "") {
				return usage("--memory is about files: it does not go with --session, --agent or --role")
			}
			ix, err := a.index()
			if err != nil {
				return err
			}
			if all {
				return a.embedAll(ctx, ix)
			}
			q.Text = strings.Join(args, " ")
			q.Role = recall.Role(role)
			switch q.Role {
			case "", recall.User, recall.Assistant, recall.Output, recall.Summary:
			default:
				return usage("--role is user, assistant, tool or summary, not %q", role)
			}
			if since != "" {
				if q.Since, err = recall.Moment(since, time.Now()); err != nil {
					return usage("--since %v", err)
				}
			}
			switch {
			case q.Limit < 0:
				return usage("--limit %d is below 0", q.Limit)
			case q.Limit == 0:
				q.Limit = recall.MaxLimit
			}
			if q.Agent != "" {
				if err := a.knowsAgent(ctx, q.Agent); err != nil {
					return err
				}
			}
			if in != "" {
				if err := q.Within(ctx, a.st, in); err != nil {
					return err
				}
			}
			a.catchUp(ctx, ix)
			res, err := ix.Search(ctx, q)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printHits(res, q.Text)
			}
			a.showHits(res, q.Text)
			if q.Memory && len(res.Hits) == 0 {
				if _, notes, err := ix.Count(ctx); err == nil && notes == 0 {
					fmt.Fprintf(a.err, "goclaw: there are no memory files yet: they are MEMORY.md and memory/*.md in %s\n", a.conf.Workspace)
				}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print an object with the hits")
	f.StringVar(&in, "session", "", "only in this session: a key (all that was said under it), an id, or a prefix")
	f.StringVar(&q.Agent, "agent", "", "only in this agent's sessions")
	f.StringVar(&role, "role", "", "only what user, assistant, tool or summary said")
	f.StringVar(&since, "since", "", "only since then, in local time: 2026-08-01, 2026-08-01 15:04, yesterday, or 12h, 7d, 3w ago")
	f.BoolVar(&q.Memory, "memory", false, "only in the memory files")
	f.IntVarP(&q.Limit, "limit", "n", 10, "at most so many hits (0: as many as there are, up to 200)")
	f.BoolVar(&all, "index", false, "bring the index and all vectors up to date, and say how much there is")
	return cmd
}

// knowsAgent checks that an agent has sessions.
func (a *app) knowsAgent(ctx context.Context, name string) error {
	for _, err := range a.st.List(ctx, session.Query{Agent: name, Limit: 1}) {
		return err
	}
	known := map[string]bool{}
	for in, err := range a.st.List(ctx, session.Query{}) {
		if err != nil {
			return err
		}
		if agent := in.Key.Parts().Agent; agent != "" {
			known[agent] = true
		}
	}
	err := session.NotFound("there is no agent %q", name)
	if names := slices.Sorted(maps.Keys(known)); len(names) > 0 {
		err = fmt.Errorf("%w; there are %s", err, strings.Join(names[:min(len(names), 8)], ", "))
	}
	return err
}

// A search from the command line gives the model a moment to read what came
// since the last one.
const catchUpTime = 400 * time.Millisecond

func (a *app) catchUp(ctx context.Context, ix *recall.Index) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, _ = ix.Embed(ctx) // the search says what is missing
}

func (a *app) embedAll(ctx context.Context, ix *recall.Index) error {
	if err := ix.Sync(ctx); err != nil {
		return err
	}
	a.embedding = true
	n, err := ix.Embed(ctx)
	if a.isTerminal(a.err) {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintf(a.err, "goclaw: stopped with %s new: goclaw search --index goes on from there\n", transcript.Count(n, "vector"))
		return errQuiet
	}
	if err != nil {
		return err
	}
	messages, notes, err := ix.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "the index is up to date: %s and %s, %s new\n", transcript.Count(messages, "message"), transcript.Count(notes, "note"), transcript.Count(n, "vector"))
	if a.conf.Search.Embeddings == "off" {
		fmt.Fprintln(a.err, "goclaw: no vectors are made: search.embeddings is off")
	}
	return nil
}

// hit is how a hit is printed in JSON. Other programs rely on its names.
type hit struct {
	Citation string      `json:"citation"`
	Session  session.ID  `json:"session,omitempty"`
	Key      session.Key `json:"key,omitempty"`
	Title    string      `json:"title,omitempty"`
	Record   string      `json:"record,omitempty"`
	Seq      session.Seq `json:"seq,omitempty"`
	Role     recall.Role `json:"role,omitempty"`
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
}

const snippetSize = 280

func (a *app) printHits(res recall.Result, query string) error {
	hits := []hit{}
	for _, h := range res.Hits {
		s, _ := recall.Snippet(h.Text, query, snippetSize)
		hits = append(hits, hit{
			h.Cite(), h.Session, h.Key, h.Title, h.Record, h.Seq, h.Role, stamp(h.Time), h.File, h.Line, h.Lines, h.Heading, s, h.Text, h.Score, h.Also, h.Near,
		})
	}
	return a.printJSON(struct {
		Query      string   `json:"query"`
		Hits       []hit    `json:"hits"`
		Incomplete []string `json:"incomplete"`
		Literal    bool     `json:"literal"` // looked for as it stands
		Vectors    float64  `json:"vectors"`
	}{query, hits, list(res.Incomplete), res.Literal, res.Vectors})
}

func (a *app) showHits(res recall.Result, query string) {
	st := a.style()
	if len(res.Hits) == 0 {
		fmt.Fprintln(a.out, "nothing found")
	}
	for i, h := range res.Hits {
		fmt.Fprintln(a.out, transcript.Hit(i+1, h, query, st, a.columns()))
		if h.Session != "" && (a.columns() == 0 || a.columns() >= 80) {
			fmt.Fprintln(a.out, st.Dim(fmt.Sprintf("    goclaw sessions show %s --around %d", h.Session, h.Seq)))
		}
	}
	for _, s := range res.Incomplete {
		say(a.err, "goclaw: incomplete: %s", s)
	}
	switch {
	case len(res.Hits) == 0 && res.Literal:
		say(a.err, "goclaw: looked for as it stands: no word of it is in the index")
	case len(res.Hits) == 0:
	case res.Literal:
		say(a.err, "goclaw: found as it stands: no word of it is in the index")
	case a.conf.Search.Embeddings == "off":
		say(a.err, "goclaw: found by words alone: search.embeddings is off")
	case res.Words: // as was said
	case res.Vectors < 0.5:
		say(a.err, "goclaw: found by words alone, mostly: %.0f %% of what was compared has a vector yet; goclaw search --index makes the others", 100*res.Vectors)
	}
}

// recallTools lets the model look things up, in memory and in what was said.
// A conversation goes on without it.
func (a *app) recallTools(tools *tool.Set) error {
	ix, err := a.index()
	if err != nil {
		fmt.Fprintln(a.err, "goclaw: nothing can be looked up: "+oneLine(err))
		return nil
	}
	for _, t := range ix.Tools() {
		if err := tools.Add(t); err != nil {
			return err
		}
	}
	return nil
}

// asking are the tools that a session calls: what it asks is not what it looks
// for.
type asking struct {
	*tool.Set
	id session.ID
}

func (t asking) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	return t.Set.Run(recall.Asking(ctx, t.id), call)
}

// nearby is how many records are shown before and behind one, unless more are
// wanted.
const nearby = 4

// around returns the records of s around one, which need not be on the live
// branch: a search finds what was said on others, too. at is the number of the
// one.
func (a *app) around(ctx context.Context, s *session.Session, record string, n int) (recs []session.Record, at session.Seq, err error) {
	if _, at, err = recall.Place(ctx, a.st, string(s.ID), record); err != nil {
		return nil, 0, err
	}
	if n <= 0 {
		n = nearby
	}
	for r, err := range a.st.Read(ctx, s.ID, max(0, at-1-session.Seq(n))) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if r.Seq > at+session.Seq(n) {
			break
		}
		recs = append(recs, r)
	}
	return recs, at, nil
}
