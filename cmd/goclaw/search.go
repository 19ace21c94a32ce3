package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// searchFlags say what is searched for, and how it is shown.
type searchFlags struct {
	query                recall.Query
	session, role, since string
	index, asJSON        bool
}

func searchCmd(a *app) *cobra.Command {
	var f searchFlags
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find what was said, and what the memory files say",
		Long: `Searches every message of every session, and the memory files of the workspace
(MEMORY.md and memory/), by words and by meaning. QUERY is plain text: a
question will do, and no character has a special meaning.`,
		Example: `  goclaw search "why did we drop redis?"
  goclaw search --since 2026-08-01 --role user invoice
  goclaw search --memory birthday
  goclaw search --index               make vectors for everything now`,
		Args: func(cmd *cobra.Command, args []string) error {
			blank := strings.TrimSpace(strings.Join(args, "")) == ""
			switch path := cmd.CommandPath(); {
			case blank && !f.index:
				return usage("%s needs QUERY: see %s --help", path, path)
			case !blank && f.index:
				return usage("%s --index takes no QUERY: it brings the index up to date", path)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.query.Text = strings.Join(args, " ")
			return search(cmd.Context(), a, f)
		},
	}
	q, flags := &f.query, cmd.Flags()
	flags.BoolVar(&f.asJSON, "json", false, "print an object with the hits")
	flags.StringVar(&f.session, "session", "", "only in this session: a key (all that was said under it), an id, or the beginning of one")
	flags.StringVar(&q.Agent, "agent", "", "only in this agent's sessions")
	flags.StringVar(&f.role, "role", "", "only what user, assistant, tool or summary said")
	flags.StringVar(&f.since, "since", "", "only since then, in local time: 2026-08-01, 2026-08-01 15:04, yesterday, or 12h, 7d, 3w ago")
	flags.BoolVar(&q.Memory, "memory", false, "only in the memory files")
	flags.IntVarP(&q.Limit, "limit", "n", 10, "at most this many hits (0: as many as there are, up to 200)")
	flags.BoolVar(&f.index, "index", false, "bring the index and all vectors up to date, and say how much there is")
	return cmd
}

func search(ctx context.Context, a *app, f searchFlags) error {
	if f.query.Memory && (f.session != "" || f.query.Agent != "" || f.role != "") {
		return usage("--memory searches files: it cannot be combined with --session, --agent or --role")
	}
	ix, err := a.search.index()
	if err != nil {
		return err
	}
	if f.index {
		return a.search.embedAll(ctx, ix)
	}
	q, err := f.complete(ctx, a.stores.st)
	if err != nil {
		return err
	}
	catchUp(ctx, ix)
	res, err := ix.Search(ctx, q)
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(hitsJSON(res, q.Text))
	}
	printHits(a.env, res, q.Text)
	if q.Memory && len(res.Hits) == 0 {
		if _, notes, err := ix.Count(ctx); err == nil && notes == 0 {
			a.warn("there are no memory files yet: they are MEMORY.md and memory/*.md in %s", a.conf.Workspace)
		}
	}
	return nil
}

// complete returns the query with what the other flags say.
func (f *searchFlags) complete(ctx context.Context, st session.Store) (q recall.Query, err error) {
	q = f.query
	q.Role = recall.Role(f.role)
	switch q.Role {
	case "", recall.User, recall.Assistant, recall.Output, recall.Summary:
	default:
		return q, usage("--role must be user, assistant, tool or summary, not %q", f.role)
	}
	if f.since != "" {
		if q.Since, err = recall.Moment(f.since, time.Now()); err != nil {
			return q, usage("--since %v", err)
		}
	}
	switch {
	case q.Limit < 0:
		return q, usage("--limit must not be negative")
	case q.Limit == 0:
		q.Limit = recall.MaxLimit
	}
	if q.Agent != "" {
		if err := checkAgent(ctx, st, q.Agent); err != nil {
			return q, err
		}
	}
	if f.session != "" {
		err = q.Within(ctx, st, f.session)
	}
	return q, err
}

// checkAgent checks that an agent has sessions.
func checkAgent(ctx context.Context, st session.Store, name string) error {
	for _, err := range st.List(ctx, session.Query{Agent: name, Limit: 1}) {
		return err
	}
	known := map[string]bool{}
	for in, err := range st.List(ctx, session.Query{}) {
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

// catchUpTime is how long a search from the command line may spend on vectors
// for what was said since the last one.
const catchUpTime = 400 * time.Millisecond

func catchUp(ctx context.Context, ix *recall.Index) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	_, _ = ix.Embed(ctx) // the search says what is missing
}

func (x *searcher) embedAll(ctx context.Context, ix *recall.Index) error {
	if err := ix.Sync(ctx); err != nil {
		return err
	}
	x.embedding = true
	n, err := ix.Embed(ctx)
	if isTerminal(x.err) {
		fmt.Fprint(x.err, terminal.Return()+terminal.Control("K"))
	}
	if errors.Is(err, context.Canceled) {
		x.warn("stopped with %s new: run goclaw search --index to continue", transcript.Count(n, "vector"))
		return errQuiet
	}
	if err != nil {
		return err
	}
	messages, notes, err := ix.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(x.out, "the index is up to date: %s and %s, %s new\n", transcript.Count(messages, "message"), transcript.Count(notes, "note"), transcript.Count(n, "vector"))
	if x.conf.Search.Embeddings == "off" {
		x.warn("no vectors are made: search.embeddings is off")
	}
	return nil
}

// hit is a hit in JSON. Other programs rely on its names.
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

func hitsJSON(res recall.Result, query string) any {
	hits := []hit{}
	for _, h := range res.Hits {
		s, _ := recall.Snippet(h.Text, query, snippetSize)
		hits = append(hits, hit{
			h.Cite(), h.Session, h.Key, h.Title, h.Record, h.Seq, h.Role, transcript.Stamp(h.Time), h.File, h.Line, h.Lines, h.Heading, s, h.Text, h.Score, h.Also, h.Near,
		})
	}
	return struct {
		Query      string   `json:"query"`
		Hits       []hit    `json:"hits"`
		Incomplete []string `json:"incomplete"`
		Literal    bool     `json:"literal"` // the exact text was searched for
		Vectors    float64  `json:"vectors"`
	}{query, hits, notNil(res.Incomplete), res.Literal, res.Vectors}
}

func printHits(e *env, res recall.Result, query string) {
	st := e.style()
	if len(res.Hits) == 0 {
		fmt.Fprintln(e.out, "nothing found")
	}
	for i, h := range res.Hits {
		fmt.Fprintln(e.out, transcript.Hit(i+1, h, query, st, e.columns()))
		if h.Session != "" && (e.columns() == 0 || e.columns() >= 80) {
			fmt.Fprintln(e.out, st.Dim(fmt.Sprintf("    goclaw sessions show %s --around %d", h.Session, h.Seq)))
		}
	}
	for _, s := range res.Incomplete {
		e.warn("incomplete: %s", s)
	}
	switch {
	case len(res.Hits) == 0 && res.Literal:
		e.warn("none of these words are indexed: searched for the exact text instead")
	case len(res.Hits) == 0:
	case res.Literal:
		e.warn("none of these words are indexed: found the exact text instead")
	case e.conf.Search.Embeddings == "off":
		e.warn("a word search only: search.embeddings is off")
	case res.Words: // said already
	case res.Vectors < 0.5:
		e.warn("mostly a word search: only %.0f%% of the messages compared have vectors; goclaw search --index makes the others", 100*res.Vectors)
	}
}
