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

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
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
  goclaw search --group invoice                    by session, the best first
  goclaw search --open 2 invoice                   the second hit, with what surrounds it
  goclaw search --memory birthday
  goclaw search --index                            make vectors for everything now`,
		Args: func(cmd *cobra.Command, args []string) error {
			blank := strings.TrimSpace(strings.Join(args, "")) == ""
			switch path := cmd.CommandPath(); {
			case blank && !f.index:
				return usage("%s needs QUERY: see %s --help", path, path)
			case !blank && f.index:
				return usage("%s --index takes no QUERY: it brings the index up to date", path)
			case f.index && alone(cmd.Flags()) != "":
				return usage("%s --index makes vectors of everything: it cannot be combined with --%s", path, alone(cmd.Flags()))
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

// alone returns a flag of fs that is set besides --index and --json, "" if none is.
func alone(fs *pflag.FlagSet) (name string) {
	fs.Visit(func(f *pflag.Flag) {
		if f.Name != "index" && f.Name != "json" && f.Name != "model" {
			name = f.Name
		}
	})
	return name
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

func search(ctx context.Context, a *app, f searchFlags) (err error) {
	ctx, stop := a.interruptible(ctx)
	defer stop()
	defer func() {
		if err != nil && a.interrupted.Load() {
			err = errQuiet // whoever pressed Ctrl-C knows why there is no answer
		}
	}()
	ix, err := a.search.index()
	if err != nil {
		return err
	}
	defer a.search.indexing.End() // where it was interrupted
	if f.index {
		return a.search.embedAll(ctx, ix, f.asJSON)
	}
	folder, err := os.Getwd()
	if f.Here && err != nil {
		return err
	}
	a.stores.Look(ctx)
	f.Session = naming.Numbered(ctx, a.stores.Store, f.Session, a.lists.Last())
	q, err := f.Query(ctx, a.stores.Store, f.text, folder)
	var wrong query.Usage
	if errors.As(err, &wrong) {
		return &usageError{err}
	}
	if err != nil {
		return err
	}
	res, groups, err := f.Search(ctx, ix, q)
	defer func() { a.search.catchUp(ctx, ix, !f.asJSON && res.Missing > 0 && res.Unclear()) }()
	switch {
	case errors.Is(err, session.ErrNotFound): // a filter, whose error says what there is
		return &hinted{err, ""}
	case err != nil:
		return err
	case f.Open > 0:
		return openHit(ctx, a, ix, res, f)
	case f.Group && f.asJSON:
		return a.printJSON(asjson.Groups(res, groups, q.Text))
	case f.Group:
		printGroups(a.env, res, groups, q.Text)
		return nil
	case f.asJSON:
		return a.printJSON(asjson.Hits(res, q.Text))
	}
	printHits(a.env, res, q.Text)
	if q.Memory && len(res.Hits) == 0 {
		if _, notes, err := ix.Count(ctx); err == nil && notes == 0 {
			a.warn("there are no memory files yet: they are MEMORY.md and memory/*.md in %s", a.conf.Memory)
		}
	}
	return nil
}

// How long a search from the command line makes vectors after its answer, if
// some are missing: a user reads the answer meanwhile, a program waits for it.
const (
	whileRead = 400 * time.Millisecond
	whileWait = 20 * time.Millisecond
)

// catchUp makes some of the vectors that are missing, and says how many are
// missing then, unless the answer said that some are.
func (x *searcher) catchUp(ctx context.Context, ix *recall.Index, said bool) {
	if ix.InMemory() != nil {
		return // they would not be kept
	}
	limit := whileWait
	if terminal.Is(x.out) {
		limit = whileRead
	}
	soon, cancel := context.WithTimeout(ctx, time.Second) // a server may not answer
	defer cancel()
	if _, err := ix.EmbedFor(soon, limit); err != nil {
		return // the search said that the model gives none
	}
	if said {
		return
	}
	if missing, err := ix.Missing(ctx); err == nil && missing > 0 {
		x.warn("%s", recall.Result{Missing: missing}.Uncompared())
	}
}

// embedAll brings the index and all vectors up to date.
func (x *searcher) embedAll(ctx context.Context, ix *recall.Index, asJSON bool) error {
	if err := ix.InMemory(); err != nil {
		return err
	}
	err := ix.Sync(ctx)
	x.indexing.End()
	n := 0
	if err == nil {
		x.embedding = newBar(x.env)
		n, err = ix.Embed(ctx)
		x.embedding.End()
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
	if asJSON {
		return x.printJSON(struct {
			Messages int `json:"messages"`
			Notes    int `json:"notes"`
			Vectors  int `json:"newVectors"`
		}{messages, notes, n})
	}
	fmt.Fprintf(x.out, "the index is up to date: %s and %s, %s new\n", transcript.Count(messages, "message"), transcript.Count(notes, "note"), transcript.Count(n, "vector"))
	if x.conf.Search.Embeddings == "off" {
		x.warn("no vectors are made: search.embeddings is off")
	}
	return nil
}
