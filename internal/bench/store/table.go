package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"goclaw/store/storetest"
)

// named is a store to measure.
type named struct {
	name string
	open storetest.Opener
	// slow, if set, opens it on a disk on which a sync takes slowSync longer.
	slow storetest.Opener
}

// row is one figure of every store, its limit and the peers' figures.
type row struct {
	what  string
	unit  string
	limit float64 // a maximum, or a minimum if least is set; 0: none
	least bool
	only  string // the store that the limit is for; "": all
	peers string
	got   []float64
}

func (r row) ok(i int, name string) (judged, ok bool) {
	if r.limit == 0 || math.IsNaN(r.got[i]) || r.only != "" && r.only != name {
		return false, true
	}
	if r.least {
		return true, r.got[i] >= r.limit
	}
	return true, r.got[i] <= r.limit
}

// steady is the ratio up to which two medians count as equal: the machine is
// busy.
const steady = 1.5

// table measures stores in folders under dir, prints their figures next to the
// limits and the peers' figures, and reports whether all limits hold. If full,
// it measures sessions of a million records as well.
//
// The peers were measured in a run of their own: compare ratios.
func table(w io.Writer, dir string, full bool, stores ...named) (bool, error) {
	var rows []row
	for i, s := range stores {
		got, err := figures(s, filepath.Join(dir, fmt.Sprint(i)), full)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		if rows == nil {
			rows = got
			continue
		}
		for k := range rows {
			rows[k].got = append(rows[k].got, got[k].got...)
		}
	}
	return show(w, rows, stores)
}

func show(w io.Writer, rows []row, stores []named) (bool, error) {
	all := true
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "figure\tlimit")
	for _, s := range stores {
		fmt.Fprintf(tw, "\t%s", s.name)
	}
	fmt.Fprint(tw, "\tpeers\n")
	for _, r := range rows {
		limit := "-"
		switch {
		case r.limit != 0 && r.least:
			limit = fmt.Sprintf(">= %.4g%s", r.limit, r.unit)
		case r.limit != 0:
			limit = fmt.Sprintf("<= %.4g%s", r.limit, r.unit)
		}
		if r.only != "" && r.limit != 0 {
			limit += " (" + r.only + ")"
		}
		fmt.Fprintf(tw, "%s\t%s", r.what, limit)
		for i, s := range stores {
			mark := ""
			if judged, ok := r.ok(i, s.name); judged {
				mark = map[bool]string{true: " ok", false: " FAIL"}[ok]
				all = all && ok
			}
			fmt.Fprintf(tw, "\t%.3g%s%s", r.got[i], r.unit, mark)
		}
		fmt.Fprintf(tw, "\t%s\n", r.peers)
	}
	return all, tw.Flush()
}

// figures measures one store.
func figures(s named, dir string, full bool) ([]row, error) {
	open := s.open
	defer os.RemoveAll(dir) // hundreds of megabytes
	var rows []row
	add := func(what, unit string, got, limit float64, peers string) *row {
		rows = append(rows, row{what: what, unit: unit, limit: limit, peers: peers, got: []float64{got}})
		return &rows[len(rows)-1]
	}
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

	one, raw, err := benchAppend(open, filepath.Join(dir, "append"), 3000)
	if err != nil {
		return nil, err
	}
	add("raw write+fdatasync, p50", "us", us(median(raw)), 0, "93-180")
	add("one durable append, p50", "us", us(median(one)), 0, "floor 165; without sync: pi 15, GoClaw 64, crush 244; with: adk-go 3955")
	add("  of a raw write", "x", ratio(median(one), median(raw)), 2.5, "floor 0.9-1.8, adk-go 22-43").only = "sqlite"
	add("  of a raw write, sustained", "x", ratio(total(one), total(raw)), 2.5, "").only = "sqlite"

	for _, g := range []struct {
		what, dir string
		open      storetest.Opener
		each      int // records of each writer in each round
		brief     bool
		limit     float64
		peers     string
	}{
		{"64 writers, 200,000 short records", "group", open, 625, true, 4, "plain file 124000-193000 of small records; 10-16 x one"},
		{"64 writers, 20,000 records of 2.6 KB", "large", open, 60, false, 0, ""},
		{"64 writers, a sync takes 5 ms longer", "slow", s.slow, 60, true, 25, ""},
	} {
		single, many := math.NaN(), math.NaN()
		if g.open != nil {
			if single, many, err = benchGroup(g.open, filepath.Join(dir, g.dir), 64*g.each*groupRounds, g.brief); err != nil {
				return nil, err
			}
		}
		add(g.what+", a second", "", many, 0, g.peers)
		r := add("  of one writer", "x", many/single, g.limit, "")
		r.least, r.only = true, "sqlite"
	}

	sizes := lengths(full)
	took, err := benchLength(open, filepath.Join(dir, "length"), sizes, 300)
	if err != nil {
		return nil, err
	}
	peers := map[int]string{10_000: "pi 1.2, GoClaw 1.1, adk-go 3.0, smallnest 21", 100_000: "pi 1.3, GoClaw 1.3, crush 1.2, claw0 3.4, smallnest 205"}
	for i := 1; i < len(sizes); i++ {
		add(fmt.Sprintf("append to %s records, of 100", count(sizes[i])), "x", ratio(took[i], took[0]), steady, peers[sizes[i]])
	}

	took, list, cold, err := benchSessions(open, filepath.Join(dir, "sessions"), manyCounts, 300)
	if err != nil {
		return nil, err
	}
	add("append among 10,000 sessions, of 1", "x", ratio(took[1], took[0]), steady, "pi 0.8, GoClaw 1.1, crush 1.2, claw0 58")
	add("list 10,000 sessions", "ms", ms(median(list)), 50, "floor 49, GoClaw 75, crush 86, claw0 134, adk-go 146, pi 5553")
	add("  the fastest", "ms", ms(slices.Min(list)), 0, "")
	add("  with opening the store", "ms", ms(median(cold)), 0, "")

	sizes = restoreLengths(full)
	took, err = benchRestore(open, filepath.Join(dir, "restore"), sizes)
	if err != nil {
		return nil, err
	}
	add("restore 1k records", "ms", ms(took[0]), 0, "fresh process: floor 35, GoClaw 743, pi 180, adk-go 153, crush 160")
	peers = map[int]string{100_000: "floor 0.4, GoClaw 0.6-11, pi 34-55, smallnest 36-60, adk-go 40-53, crush 57-91"}
	for i := 1; i < len(sizes); i++ {
		add(fmt.Sprintf("restore %s records, of 1k", count(sizes[i])), "x", ratio(took[i], took[0]), 3, peers[sizes[i]])
	}
	return rows, nil
}

// count writes 100000 as 100k.
func count(n int) string {
	switch {
	case n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
