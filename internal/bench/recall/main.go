// Command recall measures how well and how fast package recall finds things.
//
//	recall -data "DIR..."         labelled sets (docs.jsonl, queries.jsonl, notes/, notes_docs.jsonl, notes_queries.jsonl), or
//	                              folders of them: goclaw beside FTS5 and R1, and beside its goals
//	recall -data "DIR..." -parts  what each part of goclaw's ranking gives
//	recall -data ... -known N     N questions of each kind that are made from the messages, in place of the set's own
//	recall -store FILE            the same from the messages of a store of goclaw's: no labels are needed
//	recall -messages N            speed and size with N messages
//	recall -start                 searches from the command line, each in a process of its own
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"goclaw/internal/bench/share"
)

// options say what is measured, and how.
type options struct {
	withModel bool
	model     *keeping
	hits      int
	verbose   bool
	run       string
	only      string
	keep      bool
	parts     bool
	together  bool
	known     int
	store     string
	most      int
	terminal  bool // what is being done is shown
}

// tell shows what is being done, in one line that the next one replaces.
func (o options) tell(format string, args ...any) {
	if o.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K"+format, args...)
	}
}

func main() {
	var o options
	data := flag.String("data", "", "folders of labelled sets, or of folders of them, separated by spaces")
	messages := flag.Int("messages", 0, "measure speed and size with this many messages")
	start := flag.Bool("start", false, "measure searches from the start of a process")
	flag.BoolVar(&o.together, "together", false, "search all conversations of a set at once")
	flag.BoolVar(&o.parts, "parts", false, "leave out one part of the ranking at a time")
	flag.BoolVar(&o.keep, "keep", false, "keep the vectors of the model in the user's cache for the next run")
	flag.StringVar(&o.store, "store", "", "a database of sessions; its messages are asked for as -known does")
	flag.IntVar(&o.most, "most", 0, "ask at most this many questions of each set, evenly taken (0: all)")
	flag.IntVar(&o.known, "known", 0, "make up to this many questions of each kind from the messages of a set (-store: 10)")
	flag.StringVar(&o.only, "only", "", "measure only the systems, or with -parts the parts, whose names contain one of these words, separated by commas")
	flag.BoolVar(&o.withModel, "model", true, "measure with the model too")
	flag.IntVar(&o.hits, "hits", 10, "how many hits each system is asked for")
	flag.StringVar(&o.run, "run", "", "write goclaw's rankings to files whose names begin so")
	flag.BoolVar(&o.verbose, "v", false, "print nDCG@10 and MRR, by category and by conversation")
	flag.Parse()
	if in, err := os.Stderr.Stat(); err == nil {
		o.terminal = in.Mode()&os.ModeCharDevice != 0
	}
	ctx := context.Background()
	had := share.Begin()
	var err error
	switch {
	case *data != "" || o.store != "":
		err = labelled(ctx, strings.Fields(*data), o)
	case *messages > 0:
		err = speed(ctx, *messages)
	case *start:
		err = fromStart(ctx)
	default:
		fmt.Println("no labelled data: give DATA=DIR, a folder with docs.jsonl and queries.jsonl, or one that holds such folders (docs/recall.md)")
		if o.model, err = newKeeping(ctx, false); err == nil {
			err = languages(ctx, os.Stdout, o)
		}
	}
	fmt.Println(had())
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/recall:", err)
		os.Exit(1)
	}
}

// labelled measures with the sets in dirs, or with the store that o names.
func labelled(ctx context.Context, dirs []string, o options) (err error) {
	var sets []*set
	if o.store != "" {
		own, err := ownSet(ctx, o.store)
		if err != nil {
			return err
		}
		own.knownItems(cmp.Or(o.known, 10))
		sets = []*set{own}
	} else if sets, err = findSets(dirs, o); err != nil {
		return err
	}
	if o.model, err = newKeeping(ctx, o.keep && o.withModel); err != nil {
		return err
	}
	if o.parts {
		err = ablation(ctx, os.Stdout, sets, o)
	} else {
		err = quality(ctx, os.Stdout, sets, o)
		if o.withModel && o.store == "" {
			err = errors.Join(err, languages(ctx, os.Stdout, o), rates(ctx, os.Stdout, sets))
		}
	}
	return errors.Join(err, o.model.save())
}
