package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/session"
)

// Replayed is a session and all of its records.
type Replayed struct {
	*session.Session
	Log []session.Record
}

// Replay adds up a log and keeps its records.
func Replay(id session.ID, recs iter.Seq2[session.Record, error]) (Replayed, error) {
	var out Replayed
	s, err := session.Replay(id, func(yield func(session.Record, error) bool) {
		for r, err := range recs {
			if err == nil {
				r.Seq = session.Seq(len(out.Log) + 1)
				out.Log = append(out.Log, r)
			}
			if !yield(r, err) {
				return
			}
		}
	})
	out.Session = s
	return out, err
}

// maxUndated is how many records without a time are looked at for the time of a
// log's beginning, and maxUndatedSize how large they may be together.
const (
	maxUndated     = 1000
	maxUndatedSize = 4 << 20
)

// Dated yields recs, the first of which has a time if one of them does: its own,
// or that of the first one that has. Files may begin with lines without a time.
func Dated(recs iter.Seq2[session.Record, error]) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		type one struct {
			rec session.Record
			err error
		}
		var held []one
		size, done := 0, false
		flush := func() bool {
			done = true
			for _, h := range held {
				if !yield(h.rec, h.err) {
					return false
				}
			}
			held = nil
			return true
		}
		for r, err := range recs {
			if done {
				if !yield(r, err) {
					return
				}
				continue
			}
			held = append(held, one{r, err})
			size += len(r.Raw)
			known := err == nil && !r.Time.IsZero()
			if known {
				i := slices.IndexFunc(held, func(h one) bool { return h.err == nil })
				held[i].rec.Time = r.Time
			}
			if (known || len(held) > maxUndated || size > maxUndatedSize) && !flush() {
				return
			}
		}
		if !done {
			flush()
		}
	}
}

// Chain yields records one after the other.
func Chain(lists ...[]session.Record) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for _, l := range lists {
			for _, r := range l {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// Linked returns r as the one that continues parent, everything else in its
// line as it was.
func Linked(r session.Record, parent string) session.Record {
	if r.Link == session.Given && r.Parent == parent || r.ID == "" {
		return r
	}
	bare, sealed := native.Unseal(r.Raw)
	line, err := relink(bare, parent)
	if err == nil {
		if sealed {
			line = native.Seal(line)
		}
		if recs, err := codec.Native.Decode(line); err == nil && len(recs) == 1 {
			recs[0].Seq = r.Seq
			return recs[0]
		}
	}
	r.Link, r.Parent = session.Given, parent
	if _, unknown := r.Body.(session.Unknown); !unknown {
		r.Raw = nil
	}
	return r
}

// relink sets the parentId of a line and leaves the rest as it is, in its
// order.
func relink(line []byte, parent string) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object")
	}
	value := []byte("null")
	if parent != "" {
		value, _ = json.Marshal(parent)
	}
	out := []byte("{")
	done := false
	put := func(name string, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		n, _ := json.Marshal(name)
		out = append(append(append(out, n...), ':'), v...)
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if name == "parentId" {
			if done {
				continue
			}
			v, done = value, true
		}
		put(name, v)
	}
	if !done {
		put("parentId", value)
	}
	return append(out, '}'), nil
}
