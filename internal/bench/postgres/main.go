// Command postgres measures the PostgreSQL store on a server that it starts
// itself: appends beside pgbench's INSERT, and how the size of sessions and their
// number count. The server and the load share this machine. It prints the limits
// next to the figures and exits with 1 if one does not hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"goclaw/internal/pgtest"
	"goclaw/store/postgres"
)

var ctx = context.Background()

// Sizes, which flags make smaller for a quick look.
var (
	records  = flag.Int("records", 1_000_000, "of the long session")
	sessions = flag.Int("sessions", 1_000_000, "in the list")
	each     = flag.Duration("each", 5*time.Second, "how long each round of appends takes")
	rounds   = flag.Int("rounds", 5, "of appends")
)

func main() {
	flag.Parse()
	ok, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/postgres:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// figure is a line of the table. It must not be above most, or below least, if
// these are not 0.
type figure struct {
	what        string
	got         float64
	form        string // how numbers are printed
	least, most float64
}

func run() (bool, error) {
	server, err := pgtest.Start()
	if err != nil {
		return false, err
	}
	defer server.Stop()
	st, err := postgres.Open(ctx, fmt.Sprintf("%s&pool_max_conns=%d", server.DSN("postgres"), clients), postgres.Options{})
	if err != nil {
		return false, err
	}
	defer st.Close()
	fmt.Printf("server and load on one machine; records of %d bytes, medians\n%-66s %12s %14s\n", size, "", "measured", "limit")
	ok := true
	for _, step := range []func(*pgtest.Server, *postgres.Store) ([]figure, error){appends, turns, restores, lists} {
		figures, err := step(server, st)
		if err != nil {
			return false, err
		}
		for _, f := range figures {
			ok = f.print() && ok
		}
	}
	return ok, nil
}

// print prints f and reports whether it is within its limits.
func (f figure) print() bool {
	limit, mark := "", ""
	if f.least != 0 {
		limit = "at least " + fmt.Sprintf(f.form, f.least)
	}
	if f.most != 0 {
		limit = "at most " + fmt.Sprintf(f.form, f.most)
	}
	good := f.got >= f.least && (f.most == 0 || f.got <= f.most)
	if !good {
		mark = "  missed"
	}
	fmt.Printf("%-66s %12s %18s%s\n", f.what, fmt.Sprintf(f.form, f.got), limit, mark)
	return good
}

func median(v []float64) float64 { return slices.Sorted(slices.Values(v))[len(v)/2] }

// ms returns the median of ds in milliseconds.
func ms(ds []time.Duration) float64 {
	return float64(slices.Sorted(slices.Values(ds))[len(ds)/2].Microseconds()) / 1000
}
