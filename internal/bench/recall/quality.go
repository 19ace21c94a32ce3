package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// goal is the recall@10 that is wanted of a set, without and with the model.
type goal struct{ words, model float64 }

var goals = map[string]*goal{"turns": {80, 82}, "notes": {78.5, 82}, "code": {85, 86}, "chat": {75, 77}}

// quality prints how good each system is on each set, and returns an error if
// goclaw is below a goal.
func quality(ctx context.Context, w io.Writer, sets []*set, o options) error {
	all := systems(o)
	scores := map[string][]score{} // by system and set
	for _, s := range sets {
		for _, y := range all {
			got, err := one(ctx, w, s, y, o)
			if err != nil {
				return err
			}
			scores[y.name+"\x00"+s.name] = got
		}
	}
	o.tell("")
	t := table{{"recall@5 / recall@10"}}
	for _, s := range sets {
		t[0] = append(t[0], fmt.Sprintf("%s (%d)", s.name, len(s.searches())))
	}
	for _, y := range all {
		row := []string{y.name}
		for _, s := range sets {
			m := mean(scores[y.name+"\x00"+s.name])
			row = append(row, fmt.Sprintf("%.1f / %.1f", m[0], m[1]))
		}
		t = append(t, row)
	}
	t.print(w)
	ceiling(w, sets, o.verbose)
	return checkGoals(w, sets, o, scores)
}

// one measures one system on one set, and prints the details if they are
// wanted.
func one(ctx context.Context, w io.Writer, s *set, y system, o options) ([]score, error) {
	o.tell("%s: %s", s.name, y.name)
	open, err := y.openAll(ctx, s)
	if err != nil {
		return nil, err
	}
	defer open.close()
	queries := s.searches()
	if o.verbose || o.run != "" {
		queries = s.queries
	}
	found, scores, err := open.ask(queries)
	if err != nil {
		return nil, err
	}
	if o.run != "" && strings.HasPrefix(y.name, ours) {
		if err := writeRun(fmt.Sprintf("%s.%s.%s.tsv", o.run, s.name, map[bool]string{false: "words", true: "model"}[y.model]), queries, found); err != nil {
			return nil, err
		}
	}
	var counted []score
	by, in := map[string][]score{}, map[string][]score{} // categories, conversations
	for i, q := range queries {
		by[q.Category] = append(by[q.Category], scores[i])
		if !slices.Contains(notSearch, q.Category) {
			counted = append(counted, scores[i])
			in[q.Conversation] = append(in[q.Conversation], scores[i])
		}
	}
	if o.verbose {
		t := table{append([]string{s.name + ": " + y.name, "questions"}, measures[:]...)}
		t.add("all that count", counted)
		for _, parts := range []map[string][]score{by, in} {
			for _, c := range slices.Sorted(maps.Keys(parts)) {
				t.add(c, parts[c])
			}
		}
		t.print(w)
	}
	return counted, nil
}

func writeRun(path string, queries []query, found [][]string) error {
	var b strings.Builder
	for i, q := range queries {
		for rank, id := range found[i] {
			fmt.Fprintf(&b, "%s\t%s\t%d\t%g\n", q.QID, id, rank+1, 1/float64(rank+1))
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// checkGoals prints recall@10 of goclaw beside the goals, and returns an error
// that names those that are not reached.
func checkGoals(w io.Writer, sets []*set, o options, scores map[string][]score) error {
	t := table{{"goals, recall@10", "without the model", "", "with it", ""}}
	var below []string
	for _, s := range sets {
		if s.goal == nil {
			continue
		}
		row := []string{s.name}
		for i, name := range []string{ours, ours + " + model"} {
			got, want := mean(scores[name+"\x00"+s.name])[1], []float64{s.goal.words, s.goal.model}[i]
			if scores[name+"\x00"+s.name] == nil {
				row = append(row, "", "")
				continue
			}
			said := "ok"
			if fmt.Sprintf("%.1f", got) != fmt.Sprintf("%.1f", want) && got < want {
				said = "below"
				below = append(below, fmt.Sprintf("%s, %s: %.1f of %g", s.name, name, got, want))
			}
			row = append(row, fmt.Sprintf("%.1f of %g", got, want), said)
		}
		t = append(t, row)
	}
	if len(t) == 1 {
		return nil
	}
	t.print(w)
	if below != nil {
		return errors.New("below the goal: " + strings.Join(below, "; "))
	}
	return nil
}

// table is rows of cells, the first of which is the heading.
type table [][]string

func (t *table) add(name string, all []score) {
	m := mean(all)
	row := []string{name, fmt.Sprint(len(all))}
	for _, x := range m {
		row = append(row, fmt.Sprintf("%.1f", x))
	}
	*t = append(*t, row)
}

// print prints t as Markdown, with columns that are aligned.
func (t table) print(w io.Writer) {
	var width []int
	for _, row := range t {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 3)
			}
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for n, row := range t {
		for i, cell := range row {
			fmt.Fprintf(w, "| %s%s ", cell, strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)))
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, n := range width {
				fmt.Fprintf(w, "|%s", strings.Repeat("-", n+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
	fmt.Fprintln(w)
}
