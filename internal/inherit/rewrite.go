package inherit

import (
	"context"
	"fmt"
	"hash/crc32"
	"iter"
	"reflect"

	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
)

// maxRewrite is the largest source that is read into memory to find out how it
// was rewritten. A larger one becomes a new log.
const maxRewrite = 16 << 20

// rewritten imports a source whose program has changed the past: cut, edited,
// migrated or continued it from an earlier point. If the log reads like the source
// once the new records are appended and its end is moved, that is done, and the
// old branch stays in the log. Otherwise the source becomes a new log of the same
// key, and the old one is not changed.
func (im *importer) rewritten(ctx context.Context, j job, o *Outcome) error {
	if j.t.Size <= maxRewrite {
		done, err := im.branch(ctx, j, o)
		if done || err != nil {
			return err
		}
	}
	again := 2
	for ; ; again++ {
		id := session.ID(fmt.Sprintf("rewrite-%d-%s", again, im.named(j.t.ID)))
		if _, ok := im.logs[id]; !ok {
			j.log, o.Log, j.have = id, id, session.Info{}
			break
		}
	}
	if im.removed(j) {
		o.State = Purged
		return nil
	}
	return im.begin(ctx, j, o, again-1)
}

// branch tries to follow a rewrite within the log.
func (im *importer) branch(ctx context.Context, j job, o *Outcome) (bool, error) {
	var pos source.Position
	src, err := source.Replay(j.log, im.source(ctx, j.t, &pos))
	if err != nil {
		return false, err
	}
	have, err := source.Replay(j.log, im.st.Read(ctx, j.log, 0))
	if err != nil {
		return false, err
	}
	fresh, ok := lacks(have.Log, src.Log)
	if !ok {
		return false, nil
	}
	for _, move := range []bool{false, true} {
		add := fresh
		if move {
			if src.Leaf == "" {
				break
			}
			id := fmt.Sprintf("goclaw.leaf.%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%s %d", src.Leaf, have.Last)))
			add = append(fresh[:len(fresh):len(fresh)], session.Record{ID: id, Parent: src.Leaf, Body: session.Leaf{Target: src.Leaf}, Time: src.Updated})
		}
		got, err := source.Replay(j.log, source.Chain(have.Log, add))
		if err != nil {
			return false, err
		}
		if !sameBranch(got.Branch, src.Branch) {
			continue
		}
		for _, d := range src.Damage {
			o.damage(d)
		}
		w := &writer{im: im, id: j.log, o: o, last: have.Last}
		for _, r := range add {
			if err := w.add(ctx, r); err != nil {
				return true, err
			}
		}
		if err := im.done(ctx, j, o, w, pos, ""); err != nil {
			return true, err
		}
		if o.Records == 0 { // it was imported before
			o.State = Unchanged
		}
		return true, nil
	}
	return false, nil
}

// lacks returns the records of src that are not in have, except for headers.
// Lines are counted, since those without an id may occur several times. ok is
// false if a record of have has changed: of records with one id the first counts,
// so that the change cannot be appended.
func lacks(have, src []session.Record) (fresh []session.Record, ok bool) {
	lines, first := map[string]int{}, map[string]session.Record{}
	text := func(r session.Record) string {
		if line, ok := source.AsideLine(r); ok {
			return string(line)
		}
		return string(r.Raw)
	}
	for _, r := range have[min(1, len(have)):] {
		lines[text(r)]++
		if _, again := first[r.ID]; !again {
			first[r.ID] = r
		}
	}
	met := map[string]bool{}
	for _, r := range src[min(1, len(src)):] {
		h, known := first[r.ID]
		again := met[r.ID]
		met[r.ID] = true
		switch {
		case r.Raw != nil && lines[text(r)] > 0:
			lines[text(r)]--
		case r.ID == "" || !known || again:
			fresh = append(fresh, r)
		case !alike(h, r):
			return nil, false
		}
	}
	return fresh, true
}

// alike reports whether the record h of a log says the same as r of its source,
// although their lines differ: r was made here, or h is the end of an answer that
// was imported in parts.
func alike(h, r session.Record) bool {
	if sameAside(h, r) {
		return true
	}
	if r.Raw == nil {
		return h.Parent == r.Parent
	}
	_, made := carried(r)
	return made && h.Parent == r.Parent && reflect.DeepEqual(h.Body, r.Body)
}

// sameBranch reports whether both say the same, except for titles and labels.
// Usage may differ: it can become known later.
func sameBranch(a, b []session.Record) bool {
	said := func(recs []session.Record) []session.Record {
		var out []session.Record
		for _, r := range recs {
			switch r.Body.(type) {
			case session.Title, session.Label:
			default:
				out = append(out, r)
			}
		}
		return out
	}
	a, b = said(a), said(b)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || !reflect.DeepEqual(spent(a[i].Body), spent(b[i].Body)) {
			return false
		}
	}
	return true
}

func spent(b session.Body) session.Body {
	if m, ok := b.(session.Message); ok {
		m.Usage = llm.Usage{}
		return m
	}
	return b
}

// strictly yields a header and the branch that pi would show of recs, as a
// straight log.
func strictly(id session.ID, recs iter.Seq2[session.Record, error]) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		var first session.Record
		s, err := session.ReplayStrict(id, func(next func(session.Record, error) bool) {
			for r, err := range recs {
				if _, ok := r.Body.(session.Header); ok && first.Body == nil {
					first = r
				}
				if !next(r, err) {
					return
				}
			}
		})
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		for _, d := range s.Damage {
			if !yield(session.Record{}, d) {
				return
			}
		}
		if !yield(first, nil) {
			return
		}
		parent := ""
		for _, r := range s.Branch {
			if !yield(source.Linked(r, parent), nil) {
				return
			}
			if r.ID != "" {
				parent = r.ID
			}
		}
	}
}
