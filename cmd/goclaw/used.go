package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/catalogue"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/window"
)

func usageCmd(a *app) *cobra.Command {
	var by, since string
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show the tokens and dollars used, by day and model",
		Long: `Adds up the tokens and the dollars of all sessions, from their records alone:
answers, summaries and checkpoints. What was copied into a fork is counted once,
and what other programs paid for only with --imported. Dollars are counted as
far as prices are known.`,
		Example: `  goclaw usage                  the last 30 days
  goclaw usage --by model       the same, a line for each model
  goclaw usage --since 2026-01-01 --json`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"day", "model", "session", "both"}, by) {
				return usage("--by must be day, model, session or both, not %q", by)
			}
			from, err := recall.Moment(since, time.Now())
			if err != nil {
				return usage("--since %v", err)
			}
			return showUsage(cmd.Context(), a, by, from, all, asJSON)
		},
	}
	cmd.Flags().StringVar(&by, "by", "both", "a line for each day, model, session, or day and model (both)")
	cmd.Flags().StringVar(&since, "since", "30d", "from when on: 2026-08-01, yesterday, 7d")
	cmd.Flags().BoolVar(&all, "imported", false, "also what other programs used")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

// used is a line of goclaw usage.
type used struct {
	Day        string      `json:"day,omitempty"`
	Model      string      `json:"model,omitempty"`
	Session    session.Key `json:"session,omitempty"`
	Calls      int         `json:"calls"`
	Input      int         `json:"input"`
	Output     int         `json:"output"`
	CacheRead  int         `json:"cacheRead"`
	CacheWrite int         `json:"cacheWrite"`
	Cost       float64     `json:"cost"`
}

func (u *used) add(x llm.Usage, usd float64) {
	u.Calls++
	u.Input, u.Output = u.Input+x.Input, u.Output+x.Output
	u.CacheRead, u.CacheWrite = u.CacheRead+x.CacheRead, u.CacheWrite+x.CacheWrite
	u.Cost += usd
}

func showUsage(ctx context.Context, a *app, by string, from time.Time, imported, asJSON bool) error {
	st, err := a.stores.imported(ctx)
	if err != nil {
		return err
	}
	lines, err := usageSince(ctx, st, bill{conf: a.conf, known: map[string]catalogue.Model{}}, by, from, imported)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(lines)
	}
	if len(lines) == 0 {
		return a.print("no model was asked since " + from.Format(time.DateOnly))
	}
	table := [][]string{{"DAY", "MODEL", "CALLS", "INPUT", "CACHED", "OUTPUT", "COST"}}
	if by == "session" {
		table[0][1] = "SESSION"
	}
	var sum used
	row := func(u used) {
		name := cmp.Or(u.Model, string(u.Session))
		table = append(table, []string{u.Day, transcript.OneLine(transcript.Name(name), 40), fmt.Sprint(u.Calls),
			window.Short(u.Input + u.CacheWrite), window.Short(u.CacheRead), window.Short(u.Output), fmt.Sprintf("$%.4f", u.Cost)})
	}
	for _, u := range lines {
		row(u)
		sum.Calls, sum.Cost = sum.Calls+u.Calls, sum.Cost+u.Cost
		sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite = sum.Input+u.Input, sum.Output+u.Output, sum.CacheRead+u.CacheRead, sum.CacheWrite+u.CacheWrite
	}
	sum.Day = "total"
	row(sum)
	return a.print(transcript.Table(table, a.style(), a.columns())...)
}

// usageSince adds up the records of all sessions since a time.
func usageSince(ctx context.Context, st session.Store, bill bill, by string, from time.Time, imported bool) ([]used, error) {
	var infos []session.Info
	for _, trash := range []bool{false, true} {
		for in, err := range st.List(ctx, session.Query{Trash: trash}) {
			if err != nil {
				return nil, err
			}
			if !in.Updated.Before(from) {
				infos = append(infos, in)
			}
		}
	}
	// What other programs paid for is known first.
	sort.SliceStable(infos, func(i, j int) bool {
		a, b := &infos[i], &infos[j]
		if a.Mirror() != b.Mirror() {
			return a.Mirror()
		}
		return a.Created.Before(b.Created)
	})
	sums, once := map[used]*used{}, map[call]bool{}
	for _, in := range infos {
		for r, err := range undamaged(st.Read(ctx, in.ID, 0), func(*session.Damage) {}) {
			if err != nil {
				return nil, err
			}
			c, model := callOf(r)
			if c.u.Total() == 0 || c.at.Before(from) || once[c] {
				continue
			}
			once[c] = true
			if in.Mirror() && !imported {
				continue
			}
			key := used{Day: c.at.Local().Format(time.DateOnly), Model: model}
			switch by {
			case "day":
				key.Model = ""
			case "model":
				key.Day = ""
			case "session":
				key = used{Session: in.Key}
			}
			if sums[key] == nil {
				line := key
				sums[key] = &line
			}
			before := bill.usd
			bill.add(r.Body)
			sums[key].add(c.u, bill.usd-before)
		}
	}
	out := []used{}
	for _, u := range sums {
		out = append(out, *u)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Session, b.Session)) < 0
	})
	return out, nil
}

// callOf returns the request to a model that a record is about, and the model.
func callOf(r session.Record) (call, string) {
	c := call{at: r.Time.Round(0).UTC()}
	if m, ok := r.Body.(session.Message); ok && !m.At.IsZero() {
		c.at = m.At.Round(0).UTC()
	}
	var model string
	c.u, model = usageOf(r.Body)
	return c, model
}
