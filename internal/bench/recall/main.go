// Command recall measures how well and how fast package recall finds things.
//
//	recall -data DIR      a labelled benchmark: docs.jsonl, queries.jsonl, notes/, notes_queries.jsonl;
//	                      with -together all of its conversations are in one store and searched at once
//	recall -messages N    speed and size with N messages
//	recall -start         searches from the command line, each in a process of its own
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	data := flag.String("data", "", "folder of a labelled benchmark")
	messages := flag.Int("messages", 0, "measure speed and size with this many messages")
	start := flag.Bool("start", false, "measure searches from the start of a process")
	run := flag.String("run", "", "write the rankings to this file with .turns.tsv and .notes.tsv appended to its name")
	together := flag.Bool("together", false, "search all conversations of the benchmark at once")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch {
	case *data != "":
		err = quality(ctx, *data, *run, *together)
	case *messages > 0:
		err = speed(ctx, *messages)
	case *start:
		err = fromStart(ctx)
	default:
		err = fmt.Errorf("give -data DIR, -messages N or -start")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/recall:", err)
		os.Exit(1)
	}
}
