// Command recall measures how well and how fast package recall finds things.
//
//	recall -data "DIR..."         labelled sets (docs.jsonl, queries.jsonl, notes/, notes_docs.jsonl, notes_queries.jsonl), or
//	                              folders of them: goclaw beside FTS5 and R1, and beside its goals
//	recall -data "DIR..." -parts  what each part of goclaw's ranking gives
//	recall -messages N            speed and size with N messages
//	recall -start                 searches from the command line, each in a process of its own
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
)

// options say what is measured, and how.
type options struct {
	withModel bool
	model     *keeping
	hits      int
	verbose   bool
	run       string
	only      string
}

func main() {
	var o options
	data := flag.String("data", "", "folders of labelled sets, or of folders of them, separated by spaces")
	messages := flag.Int("messages", 0, "measure speed and size with this many messages")
	start := flag.Bool("start", false, "measure searches from the start of a process")
	together := flag.Bool("together", false, "search all conversations of a set at once")
	ablate := flag.Bool("parts", false, "leave out one part of the ranking at a time")
	keep := flag.Bool("keep", false, "keep the vectors of the model in the user's cache for the next run")
	flag.StringVar(&o.only, "only", "", "leave out only the parts whose names contain one of these words, separated by commas")
	flag.BoolVar(&o.withModel, "model", true, "measure with the model too")
	flag.IntVar(&o.hits, "hits", 10, "how many hits each system is asked for")
	flag.StringVar(&o.run, "run", "", "write goclaw's rankings to files whose names begin so")
	flag.BoolVar(&o.verbose, "v", false, "print nDCG@10 and MRR, by category and by conversation")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch {
	case *data != "":
		err = labelled(ctx, strings.Fields(*data), *together, *ablate, *keep, o)
	case *messages > 0:
		err = speed(ctx, *messages)
	case *start:
		err = fromStart(ctx)
	default:
		fmt.Println("no labelled data: give DATA=DIR, a folder with docs.jsonl and queries.jsonl, or one that holds such folders (docs/recall.md)")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/recall:", err)
		os.Exit(1)
	}
}

// labelled measures with labelled sets.
func labelled(ctx context.Context, dirs []string, together, ablate, keep bool, o options) error {
	sets, err := findSets(dirs, together)
	if err != nil {
		return err
	}
	if o.model, err = newKeeping(ctx, keep && o.withModel); err != nil {
		return err
	}
	if ablate {
		err = ablation(ctx, os.Stdout, sets, o)
	} else {
		err = quality(ctx, os.Stdout, sets, o)
	}
	if saved := o.model.save(); err == nil {
		err = saved
	}
	return err
}
