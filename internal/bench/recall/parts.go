package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"goclaw/internal/parts"
)

// ablation prints what recall@10 of goclaw is on each set, and how it changes
// when one part of the search is left out. A change that is twice as large as
// its standard error is marked.
func ablation(ctx context.Context, w io.Writer, sets []*set, o options) error {
	left := chosen(o.only)
	if len(left) == 0 {
		return fmt.Errorf("no part is called %q; there are %s", o.only, strings.Join(names(parts.All()), ", "))
	}
	t := table{{"without"}, {"nothing: recall@10"}, {"standard error"}}
	for _, p := range left {
		t = append(t, []string{p.Name})
	}
	for _, s := range sets {
		for _, model := range []bool{false, true} {
			if model && !o.withModel {
				continue
			}
			column, err := column(ctx, s, left, o, model)
			if err != nil {
				return err
			}
			for i := range t {
				t[i] = append(t[i], column[i])
			}
		}
	}
	o.tell("")
	t.print(w)
	return nil
}

// chosen returns the parts that only names; all if it is empty.
func chosen(only string) []*parts.Part {
	return slices.DeleteFunc(slices.Clone(parts.All()), func(p *parts.Part) bool { return !named(p.Name, only) })
}

func names(all []*parts.Part) (out []string) {
	for _, p := range all {
		out = append(out, p.Name)
	}
	return out
}

// column measures one set: all parts, and one part left out at a time.
func column(ctx context.Context, s *set, left []*parts.Part, o options, model bool) (cells []string, err error) {
	y, name := system{ours, false, openGoclaw(o, nil)}, fmt.Sprintf("%s (%d)", s.name, len(s.searches()))
	if model {
		y, name = system{ours, true, openGoclaw(o, o.model)}, name+" + model"
	}
	open, err := y.openAll(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { open.close() }()
	_, whole, err := open.ask(s.searches())
	if err != nil {
		return nil, err
	}
	cells = []string{name, fmt.Sprintf("%.1f", mean(whole)[1]), fmt.Sprintf("%.1f", noise(whole, nil))}
	for i, p := range left {
		o.tell("%s: %d of %d parts", name, i, len(left))
		cell := ""
		if model || p.Kind != parts.Meaning {
			got, err := without(ctx, p, y, open)
			if err != nil {
				return nil, err
			}
			cell = change(got, whole)
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// without measures without a part. open is the system with all of them.
func without(ctx context.Context, p *parts.Part, y system, open *opened) (scores []score, err error) {
	p.Leave(true)
	defer p.Leave(false)
	if p.Kind == parts.Index {
		if open, err = y.openAll(ctx, open.set); err != nil {
			return nil, err
		}
		defer open.close()
	}
	_, scores, err = open.ask(open.set.searches())
	return scores, err
}

// change says how the mean of got differs from that of whole.
func change(got, whole []score) string {
	if slices.Equal(got, whole) {
		return "="
	}
	d := mean(got)[1] - mean(whole)[1]
	cell := fmt.Sprintf("%+.1f", d)
	if max(d, -d) > 2*noise(got, whole) {
		cell += " *"
	}
	return cell
}
