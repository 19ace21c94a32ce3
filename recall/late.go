package recall

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"goclaw/internal/text"
	"goclaw/recall/internal/postings"
	"goclaw/recall/internal/vectors"
	"goclaw/session"
)

// spot is where a message is: the number of its session, and its record.
type spot struct{ group, seq uint32 }

// late is messages that have no vector.
type late struct {
	docs  []postings.Doc        // some of them, the newest first
	ids   map[uint32]session.ID // of their sessions
	total int                   // how many there are in all
}

// ofMessages embeds messages that have no vector.
func (e *embedding) ofMessages(ctx context.Context, p *pace) (made int, err error) {
	for dropped := false; ; {
		l, err := e.missing(ctx, p.window)
		if err != nil || len(l.docs) == 0 {
			return made, err
		}
		n, err := e.make(ctx, l, p, made)
		made += n
		if errors.Is(err, errDropped) && !dropped {
			dropped = true // those that were made before are recomputed
			continue
		}
		if err != nil || p.over() {
			return made, err
		}
	}
}

// missing returns messages that have no vector, at most most of them. Which ones
// these are is known from the index and the vectors that there are: there is
// nothing else that could contradict them.
func (e *embedding) missing(ctx context.Context, most int) (late, error) {
	l := late{ids: map[uint32]session.ID{}}
	if e.model == nil || e.ix.o.Store == nil {
		return l, nil
	}
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return l, err
	}
	defer unlock()
	t := e.ix.messages
	if err := t.sync(ctx); err != nil {
		return l, err
	}
	if e.done == t.loads {
		return l, nil
	}
	if err := e.ix.codes.Refresh(e.ix.table()); err != nil {
		return l, err
	}
	var last *postings.Doc // enough are newer
	for _, seg := range slices.Backward(t.segments()) {
		e.ix.codes.Missing(seg.Docs, func(d postings.Doc) {
			// Tool output is found by its words.
			if d.Flags&postings.Tool != 0 || e.skip[spot{d.Group, d.Seq}] {
				return
			}
			l.total++
			if last != nil && newer(*last, d) < 0 {
				return
			}
			if l.docs = append(l.docs, d); len(l.docs) >= 2*most {
				l.docs = newest(l.docs, most)
				oldest := l.docs[len(l.docs)-1]
				last = &oldest
			}
		})
	}
	if l.docs = newest(l.docs, most); len(l.docs) == 0 {
		e.done = t.loads
	}
	for _, d := range l.docs {
		l.ids[d.Group] = t.ids[d.Group]
	}
	return l, nil
}

// newer orders docs: the newest first.
func newer(a, b postings.Doc) int {
	return cmp.Or(cmp.Compare(b.Time(), a.Time()), postings.ByPlace(b, a))
}

// newest returns the newest n docs, in this order.
func newest(docs []postings.Doc, n int) []postings.Doc {
	slices.SortFunc(docs, newer)
	return docs[:min(n, len(docs))]
}

// make makes the vectors of l, those of short messages first, and returns how
// many. before is how many were made before.
func (e *embedding) make(ctx context.Context, l late, p *pace, before int) (made int, err error) {
	texts, err := e.texts(ctx, l)
	if err != nil {
		return 0, err
	}
	slices.SortStableFunc(l.docs, func(a, b postings.Doc) int {
		return cmp.Compare(len(texts[spot{a.Group, a.Seq}]), len(texts[spot{b.Group, b.Seq}]))
	})
	for settled := 0; settled < len(l.docs) && (settled == 0 || !p.over()); {
		if p.wait != nil {
			p.wait()
		}
		docs := l.docs[settled:min(settled+p.batch, len(l.docs))]
		began := time.Now()
		n, err := e.batch(ctx, docs, texts)
		made, settled = made+n, settled+len(docs)
		if err != nil {
			return made, err
		}
		p.did(time.Since(began))
		if e.ix.o.Embedded != nil {
			e.ix.o.Embedded(before+made, before+made+l.total-settled)
		}
	}
	return made, nil
}

// batch makes and writes the vectors of some messages.
func (e *embedding) batch(ctx context.Context, docs []postings.Doc, texts map[spot]string) (made int, err error) {
	var in []string
	var there []postings.Doc
	for _, d := range docs {
		if t, ok := texts[spot{d.Group, d.Seq}]; ok {
			in, there = append(in, t), append(there, d)
		}
	}
	vs, made, err := e.of(ctx, in)
	if err != nil {
		return 0, err
	}
	out := make([]vectors.Made, len(there))
	for i, d := range there {
		out[i] = vectors.Made{N: int64(d.Group), Seq: session.Seq(d.Seq), V: vs[i]}
	}
	unlock, err := e.ix.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := e.took(vs); err != nil {
		return 0, err
	}
	if err := e.ix.table().Put(out); err != nil {
		return 0, err
	}
	// What could not be read, or was deleted meanwhile, is not tried again.
	e.ix.codes.Missing(slices.SortedFunc(slices.Values(docs), postings.ByPlace), func(d postings.Doc) {
		if e.skip == nil {
			e.skip = map[spot]bool{}
		}
		e.skip[spot{d.Group, d.Seq}] = true
	})
	return made, nil
}

// maxGap is how many records are read over rather than looked up again.
const maxGap = 64

// texts reads what the messages say. Those that cannot be read are left out.
func (e *embedding) texts(ctx context.Context, l late) (map[spot]string, error) {
	out := map[spot]string{}
	docs := slices.SortedFunc(slices.Values(l.docs), postings.ByPlace)
	for len(docs) > 0 {
		n := 1
		for n < len(docs) && docs[n].Group == docs[0].Group && docs[n].Seq-docs[n-1].Seq <= maxGap {
			n++
		}
		if err := e.read(ctx, l.ids[docs[0].Group], docs[:n], out); err != nil {
			return nil, err
		}
		docs = docs[n:]
	}
	return out, nil
}

// read reads docs of one session, in the order of their records, into out.
func (e *embedding) read(ctx context.Context, id session.ID, docs []postings.Doc, out map[spot]string) error {
	for r, err := range e.ix.o.Store.Read(ctx, id, session.Seq(docs[0].Seq)-1) {
		var d *session.Damage
		switch {
		case errors.As(err, &d):
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, session.ErrClosed):
			return err
		case err != nil:
			return nil // searches say which logs cannot be read
		}
		for len(docs) > 0 && session.Seq(docs[0].Seq) < r.Seq {
			docs = docs[1:]
		}
		if len(docs) == 0 {
			return nil
		}
		if t, ok := speak(r); ok && session.Seq(docs[0].Seq) == r.Seq {
			out[spot{docs[0].Group, docs[0].Seq}] = text.Head(t.text, maxEmbedded)
		}
	}
	return nil
}
