// Package mirrors continues imported sessions. A mirror is read-only: replies
// are kept in a continuation, a session of goclaw's own. Merge appends to a continuation
// what was said in its mirror since. Package inherit makes mirrors.
package mirrors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// OwnKey is the key under which the mirror of key is continued:
// "goclaw:main:main" for "agent:main:main".
// A session of goclaw's own that another program has taken over keeps its key.
func OwnKey(key session.Key) session.Key {
	if strings.HasPrefix(string(key), "goclaw:") {
		return key
	}
	return "goclaw:" + session.Key(strings.TrimPrefix(string(key), "agent:"))
}

// ContinuationOf returns the continuation of the mirror in: a session of our own
// with its key, else the one that Continue began, whatever key the mirror had
// then. The error is session.ErrNotFound if there is none.
func ContinuationOf(ctx context.Context, st session.Store, in session.Info) (session.Info, error) {
	keys := []session.Key{in.Key, OwnKey(in.Key)}
	if in.Key != in.Origin.Key {
		keys = append(keys, "")
	}
	for i, key := range keys {
		var best session.Info
		any := i == 2
		for own, err := range st.List(ctx, session.Query{Key: key}) {
			switch {
			case err != nil:
				return session.Info{}, err
			case own.Mirror() || own.Key != key && !any || i > 0 && own.Origin.ID != in.ID:
			case any && own.Key != OwnKey(own.Origin.Key): // a fork
			case best.ID == "" || own.Newer(best):
				best = own
			}
		}
		if best.ID != "" {
			return best, nil
		}
	}
	return session.Info{}, session.ErrNotFound
}

// Continue returns the continuation of the mirror in. If there is none, it begins
// one with the mirror's live branch; its Origin names the mirror.
func Continue(ctx context.Context, st session.Store, in session.Info, c session.Clock) (session.Info, error) {
	// Only one continuation may begin.
	release, err := session.LockSoon(ctx, st, string(in.ID), "goclaw, continuing it")
	if err != nil {
		return session.Info{}, err
	}
	defer release()
	own, err := ContinuationOf(ctx, st, in)
	if !errors.Is(err, session.ErrNotFound) {
		return own, err
	}
	s, err := session.Replay(in.ID, st.Read(ctx, in.ID, 0))
	if err != nil {
		return session.Info{}, err
	}
	f, err := session.Fork(ctx, st, s, OwnKey(in.Key), 0, c)
	if err != nil {
		return session.Info{}, err
	}
	if s.Title != "" && f.Title == "" {
		if _, err := session.Keep(ctx, st, f, f.Next(session.Title{Title: s.Title}, c), c); err != nil {
			return session.Info{}, err
		}
	}
	return f.Info, nil
}

// NewSince returns the mirror that own continues, and how many messages in it own
// does not have.
func NewSince(ctx context.Context, st session.Store, own session.Info) (mirror session.Info, n int, err error) {
	mirror, from, err := takenUpTo(ctx, st, own)
	if err != nil || mirror.Last <= from {
		return mirror, 0, err
	}
	for r, err := range st.Read(ctx, mirror.ID, from) {
		var d *session.Damage
		if err != nil && !errors.As(err, &d) {
			return mirror, n, err
		}
		if m, ok := r.Body.(session.Message); ok && err == nil && !r.Side && len(m.Results()) == 0 {
			n++
		}
	}
	return mirror, n, nil
}

// takenUpTo returns the mirror that own continues, and the last record of it that
// own has, from its beginning or from a merge. If from is not before mirror.Last,
// there is no mirror or nothing new in it.
func takenUpTo(ctx context.Context, st session.Store, own session.Info) (mirror session.Info, from session.Seq, err error) {
	if own.Mirror() || own.Origin.ID == "" || own.Key != OwnKey(own.Origin.Key) {
		return session.Info{}, 0, nil
	}
	mirror, err = session.Stat(ctx, st, own.Origin.ID)
	if errors.Is(err, session.ErrNotFound) {
		return session.Info{}, 0, nil
	}
	if err != nil || !mirror.Mirror() || mirror.Last <= own.Origin.Seq {
		return mirror, mirror.Last, err
	}
	from = own.Origin.Seq
	for r, err := range st.Read(ctx, own.ID, 0) {
		var d *session.Damage
		if err != nil && !errors.As(err, &d) {
			return mirror, from, err
		}
		if seq, ok := takenIn(r, mirror.ID); ok && err == nil {
			from = max(from, seq)
		}
	}
	return mirror, from, nil
}

// typeMerged is the type of the note before merged messages. Its details name the
// mirror and the last merged record.
const typeMerged = "goclaw.merged"

type merged struct {
	ID  session.ID  `json:"id"`
	Seq session.Seq `json:"seq"`
}

func takenIn(r session.Record, mirror session.ID) (session.Seq, bool) {
	b, ok := r.Body.(session.CustomMessage)
	if !ok || b.Type != typeMerged {
		return 0, false
	}
	var m merged
	ok = json.Unmarshal(b.Details, &m) == nil && m.ID == mirror
	return m.Seq, ok
}

// Merge appends to the continuation own what was said in its mirror since: a note
// that says where and when, and the messages, up to the last complete answer. The
// model that own used last stays the same. It returns how many messages it
// appended.
func Merge(ctx context.Context, st session.Store, own session.Info, c session.Clock) (n int, err error) {
	release, err := session.LockSoon(ctx, st, string(own.ID), "goclaw, merging")
	if err != nil {
		return 0, err
	}
	defer release()
	mirror, from, err := takenUpTo(ctx, st, own)
	if err != nil || mirror.Last <= from {
		return 0, err
	}
	theirs, err := session.Replay(mirror.ID, st.Read(ctx, mirror.ID, 0))
	if err != nil {
		return 0, err
	}
	news := sayings(theirs.Branch, from)
	if len(news) == 0 {
		return 0, nil
	}
	s, err := session.Replay(own.ID, st.Read(ctx, own.ID, 0))
	if err != nil {
		return 0, err
	}
	last := news[len(news)-1]
	details, err := json.Marshal(merged{mirror.ID, last.Seq})
	if err != nil {
		return 0, err
	}
	note := fmt.Sprintf("[Meanwhile in %s of %s, %s:]", mirror.Key, mirror.Origin.Program, span(news[0].Time.UTC(), last.Time.UTC()))
	bodies := []session.Body{session.CustomMessage{Type: typeMerged, Blocks: []llm.Block{llm.Text{Text: note}}, Display: true, Details: details}}
	for _, r := range news {
		bodies = append(bodies, r.Body)
	}
	used, known := s.LastModel()
	if known {
		bodies = append(bodies, session.ModelChange{Provider: used.Provider, Model: used.Model})
	}
	var recs []session.Record
	for i, b := range bodies {
		r := s.Next(b, c)
		if i > 0 && i <= len(news) {
			if id := news[i-1].ID; id != "" && !s.Has(id) {
				r.ID = id
			}
			if m, ok := b.(session.Message); ok {
				m.Usage = llm.Usage{} // of their window, not ours
				if m.At.IsZero() {
					m.At = news[i-1].Time
				}
				if !known { // no model was used here, and theirs was not either
					m.Provider, m.Model = "", ""
				}
				r.Body = m
				if len(m.Results()) == 0 {
					n++
				}
			}
		}
		if err := s.Apply(r); err != nil {
			return 0, err
		}
		recs = append(recs, r)
	}
	return n, st.Append(ctx, own.ID, recs...)
}

func span(from, to time.Time) string {
	const minute = "2006-01-02 15:04"
	end := to.Format(minute)
	if from.Format(time.DateOnly) == to.Format(time.DateOnly) {
		end = to.Format("15:04")
	}
	return fmt.Sprintf("%s to %s UTC", from.Format(minute), end)
}

// sayings returns what was said on a branch after the record from, up to the last
// complete answer: the rest may not be finished.
func sayings(branch []session.Record, from session.Seq) (out []session.Record) {
	end := 0
	for _, r := range branch {
		if r.Seq <= from {
			continue
		}
		switch b := r.Body.(type) {
		case session.Message:
			out = append(out, r)
			if b.Role == llm.Assistant && len(b.Calls()) == 0 {
				end = len(out)
			}
		case session.CustomMessage, session.Shell, session.BranchSummary:
			out = append(out, r)
		}
	}
	return out[:end]
}
