package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/query"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/recall"
	"goclaw/session"
)

// searchFlags say what is searched for, and how it is shown.
type searchFlags struct {
	query.Flags
	text          string
	index, asJSON bool
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
  goclaw search --here --since 7d flaky test       sessions of this folder, last week
  goclaw search --tool bash --source claude-code permission denied
  goclaw search -- --no-ff                         text that begins with a dash
  goclaw search --memory birthday
  goclaw search --index                            make vectors for everything now`,
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
			f.text = strings.Join(args, " ")
			return search(cmd.Context(), a, f)
		},
	}
	f.Bind(cmd.Flags())
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print an object with the hits")
	cmd.Flags().BoolVar(&f.index, "index", false, "bring the index and all vectors up to date, and say how much there is")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if !errors.As(err, &unknown) {
			return cmd.Root().FlagErrorFunc()(cmd, err)
		}
		flag := "--" + unknown.GetSpecifiedName()
		return usage("unknown flag: %s: did you mean %s? To search for the text: goclaw search -- %s", flag, query.Nearest(cmd.Flags(), flag), flag)
	})
	return cmd
}

// dashed returns args in an order in which text that begins with a dash can be
// searched for: the flags first, then "--" and the text. Other commands are left
// as they are.
func dashed(root *cobra.Command, args []string, e *env) []string {
	cmd, rest, err := root.Find(args)
	if err != nil || cmd.CommandPath() != "goclaw search" {
		return args
	}
	cmd.InitDefaultHelpFlag()
	all := pflag.NewFlagSet("search", pflag.ContinueOnError)
	all.AddFlagSet(cmd.Flags())
	all.AddFlagSet(cmd.InheritedFlags())
	flags, text, plain := query.Split(all, rest)
	if len(plain) == 0 {
		return args
	}
	for _, w := range plain {
		e.warn("%s is no flag of goclaw search: it is searched for as text", w)
	}
	return slices.Concat([]string{cmd.Name()}, flags, []string{"--"}, text)
}

func search(ctx context.Context, a *app, f searchFlags) error {
	ix, err := a.search.index()
	if err != nil {
		return err
	}
	if f.index {
		return a.search.embedAll(ctx, ix)
	}
	folder, err := os.Getwd()
	if f.Here && err != nil {
		return err
	}
	q, err := f.Query(ctx, a.stores.st, f.text, folder)
	var wrong query.Usage
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
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
}

const snippetSize = 280

func hitsJSON(res recall.Result, text string) any {
	hits := []hit{}
	for _, h := range res.Hits {
		s, _ := recall.Snippet(h.Text, text, snippetSize)
		hits = append(hits, hit{
			h.Cite(), h.Session, h.Key, h.Title, h.Record, h.Seq, h.Role, h.Folder, h.Source, transcript.Stamp(h.Time), h.File, h.Line, h.Lines, h.Heading, s, h.Text, h.Score, h.Also, h.Near,
		})
	}
	return struct {
		Query      string   `json:"query"`
		Hits       []hit    `json:"hits"`
		Incomplete []string `json:"incomplete"`
		Literal    bool     `json:"literal"` // the exact text was searched for
		Near       bool     `json:"near"`    // no hit says what was asked for
		Vectors    float64  `json:"vectors"`
	}{text, hits, notNil(res.Incomplete), res.Literal, res.Near, res.Vectors}
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
	for _, s := range res.Incomplete {
		e.warn("incomplete: %s", s)
	}
	if res.Near {
		e.warn(recall.OnlyNear)
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
