package sessiontest

import (
	"encoding/json"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"goclaw/llm"
	"goclaw/session"
)

// Crooked draws a log such as other programs leave behind: dead branches,
// absent, blank, dangling and later parents, repeated and missing ids, side
// and leaf records, resets, folds, and kinds nobody knows. Some are so all
// along, some now and then, some at their beginning. Its id is s1.
func Crooked(t *rapid.T) []session.Record {
	recs := Log()
	n := rapid.IntRange(0, 25).Draw(t, "records")
	mood := rapid.SampledFrom([]string{"wild", "tame", "wild, then tame"}).Draw(t, "mood")
	for len(recs) <= n {
		wild := mood == "wild" || mood == "wild, then tame" && len(recs) < n/3 || rapid.IntRange(0, 14).Draw(t, "wild") == 0
		recs = append(recs, draw(t, recs, wild))
	}
	return recs
}

// Crook draws a record that may follow recs.
func Crook(t *rapid.T, recs []session.Record) session.Record { return draw(t, recs, true) }

// draw draws a record that may follow recs; a tame one continues the leaf.
func draw(t *rapid.T, recs []session.Record, wild bool) session.Record {
	r := session.Record{Seq: session.Seq(len(recs)) + 1, Time: Start.Add(time.Duration(rapid.IntRange(-5, 5).Draw(t, "ms")) * time.Millisecond)}
	known := func(what string) string {
		return recs[rapid.IntRange(0, len(recs)-1).Draw(t, what)].ID // "" where it is the header's
	}
	r.ID = fmt.Sprintf("e%d", len(recs))
	roll := func(n int, what string) int {
		if !wild {
			return n
		}
		return rapid.IntRange(0, n).Draw(t, what)
	}
	switch roll(19, "id") {
	case 0:
		r.ID = known("again")
	case 1:
		r.ID = ""
	}
	s, err := session.Replay(recs[0].Body.(session.Header).ID, Yield(recs...))
	if err != nil {
		t.Fatalf("replay of %d records: %v", len(recs), err)
	}
	r.Parent = s.Leaf
	switch roll(19, "parent") {
	case 0, 1:
		r.Parent = known("branch")
	case 2:
		r.Parent = ""
	case 3:
		r.Parent = fmt.Sprintf("e%d", len(recs)+2)
	case 4:
		r.Parent = r.ID
	case 5, 6:
		r.Parent, r.Link = "", session.Absent
	case 7:
		r.Parent, r.Link = "", session.Blank
	}
	r.Side = roll(14, "side") == 0
	target := func() string {
		if rapid.IntRange(0, 4).Draw(t, "dangling") == 0 {
			return "zz"
		}
		return known("target")
	}
	text := rapid.SampledFrom([]string{"", "hi", "two\nlines", "🦀"}).Draw(t, "text")
	kinds := 20 // those that continue a branch
	if wild {
		kinds = 24
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0, 1, 2, 3, 4:
		r.Body = User(text)
	case 5, 6, 7, 8:
		m := Answer(text)
		if rapid.Bool().Draw(t, "used") {
			m = Used(rapid.IntRange(2, 999).Draw(t, "tokens"), m)
		}
		m.Provider, m.Model = rapid.SampledFrom([]string{"", "a", "openclaw"}).Draw(t, "provider"), rapid.SampledFrom([]string{"", "m", "gateway-injected"}).Draw(t, "model")
		m.Stop = rapid.SampledFrom([]llm.Stop{llm.StopEnd, llm.StopError, llm.StopAborted, llm.StopLength}).Draw(t, "stop")
		r.Body = m
	case 9:
		r.Body = Call(fmt.Sprintf("c%d", len(recs)), "read")
	case 10:
		r.Body = named(Result(fmt.Sprintf("c%d", len(recs)-1), text), map[string]string{fmt.Sprintf("c%d", len(recs)-1): "read"})
	case 11, 12:
		r.Body = session.Compaction{Summary: "sum", FirstKept: target(), Usage: llm.Usage{Output: rapid.IntRange(0, 2).Draw(t, "cost")}}
	case 13:
		r.Body = session.Unfold{Target: target()}
	case 14:
		r.Body = session.Reset{Reason: "new"}
		if rapid.Bool().Draw(t, "keeps") {
			r.Body = session.Reset{Reason: "daily", FirstKept: target()}
		}
	case 21, 22:
		l := session.Leaf{Target: target()}
		if rapid.Bool().Draw(t, "appends") {
			l.AppendParent = target()
		}
		r.Body = l
	case 23:
		r.Body = session.Unknown{Type: "hologram"}
		r.Raw = stranger(r)
	case 15:
		r.Body = session.Title{Title: text}
	case 16:
		r.Body = session.ModelChange{Provider: "b", Model: "n"}
	case 17:
		r.Body = session.ThinkingChange{Level: "high"}
	case 18:
		r.Body = session.Label{Target: target(), Label: text}
	case 19:
		r.Body = session.Custom{Type: "x", Data: json.RawMessage(`{"a":1}`)}
	case 20:
		r.Body = session.Checkpoint{Summary: text, Covers: target(), Usage: llm.Usage{Input: len(text), Output: 1}}
	case 24:
		// A second header is no part of the tree and has no place in it.
		r.Body = session.Header{Version: session.Version, ID: "other", Key: "elsewhere"}
		r.ID, r.Parent, r.Link, r.Side = "", "", session.Given, false
	}
	return r
}

// stranger is the line of a record whose kind nobody knows.
func stranger(r session.Record) json.RawMessage {
	line := map[string]any{"type": "hologram", "timestamp": r.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "beam": len(r.ID)}
	if r.ID != "" {
		line["id"] = r.ID
	}
	switch {
	case r.Link == session.Blank:
		line["parentId"] = ""
	case r.Link == session.Given && r.Parent == "":
		line["parentId"] = nil
	case r.Link == session.Given:
		line["parentId"] = r.Parent
	}
	if r.Side {
		line["appendMode"] = "side"
	}
	raw, err := json.Marshal(line)
	if err != nil {
		panic(err) // strings and numbers only
	}
	return raw
}
