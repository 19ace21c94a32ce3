// Package sessiontest helps to test sessions: short names for bodies, literal
// logs with ids e1, e2 ..., random logs, and a clock that can stand still or
// run back.
//
//	s := sessiontest.Replay(t, User("hi"), Call("c1", "read"), Result("c1", "ok"))
package sessiontest

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"goclaw/llm"
	"goclaw/session"
)

// ID and Key are those of a log whose first body is not a header.
const (
	ID  session.ID  = "s1"
	Key session.Key = "main:cli:user"
)

// Start is the first time of a Clock, and the time of every record of Log.
var Start = time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)

// User is a message of a person.
func User(text string) session.Message {
	return session.Message{Message: llm.UserText(text)}
}

// Answer is a complete answer in words.
func Answer(text string) session.Message {
	return session.Message{Message: llm.AssistantText(text), Stop: llm.StopEnd}
}

// Call is an answer that asks for one tool. args is a JSON object; without it
// the arguments are {}.
func Call(id, name string, args ...string) session.Message {
	c := llm.ToolCall{ID: id, Name: name, Args: json.RawMessage("{}")}
	if len(args) > 0 {
		c.Args = json.RawMessage(args[0])
	}
	return Calls(c)
}

// Calls is an answer that asks for several tools at once.
func Calls(calls ...llm.ToolCall) session.Message {
	m := session.Message{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopTool}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, c)
	}
	return m
}

// Result answers the call id. Log fills in the tool's name.
func Result(id, text string) session.Message {
	return result(llm.Result(llm.ToolCall{ID: id}, text))
}

// Failed answers the call id with an error. Log fills in the tool's name.
func Failed(id, text string) session.Message {
	return result(llm.Failed(llm.ToolCall{ID: id}, text))
}

func result(r llm.ToolResult) session.Message {
	return session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{r}}}
}

// Used is m with a reported usage of tokens in total, one of them output.
func Used(tokens int, m session.Message) session.Message {
	m.Usage = llm.Usage{Input: tokens - 1, Output: 1}
	return m
}

// By is m as the answer of a model.
func By(provider, model string, m session.Message) session.Message {
	m.Provider, m.Model = provider, model
	return m
}

// Stopped is m, ended by stop.
func Stopped(stop llm.Stop, m session.Message) session.Message {
	m.Stop = stop
	return m
}

// Compaction covers what comes before the record firstKept.
func Compaction(summary, firstKept string) session.Compaction {
	return session.Compaction{Summary: summary, FirstKept: firstKept}
}

// Undo undoes the compaction target.
func Undo(target string) session.Undo { return session.Undo{Target: target} }

// Reset starts over and keeps nothing.
func Reset() session.Reset { return session.Reset{Reason: "new"} }

// Title gives the session a title.
func Title(title string) session.Title { return session.Title{Title: title} }

// Model says which model is asked from here on.
func Model(provider, model string) session.ModelChange {
	return session.ModelChange{Provider: provider, Model: model}
}

// Pin keeps the record target word for word.
func Pin(target string) session.Label { return session.Label{Target: target, Label: session.Pin} }

// Checkpoint summarises everything up to the record covers.
func Checkpoint(summary, covers string) session.Checkpoint {
	return session.Checkpoint{Summary: summary, Covers: covers}
}

// Log returns bodies as a straight log: a header, then records e1, e2 ... each
// of which continues the one before, all at Start. A header among the bodies
// is used if it comes first.
func Log(bodies ...session.Body) []session.Record {
	h := session.Header{Version: session.Version, ID: ID, Key: Key}
	if len(bodies) > 0 {
		if own, ok := bodies[0].(session.Header); ok {
			h, bodies = own, bodies[1:]
		}
	}
	recs := []session.Record{{Seq: 1, Time: Start, Body: h}}
	names := map[string]string{}
	parent := ""
	for i, b := range bodies {
		r := session.Record{Seq: session.Seq(i) + 2, ID: fmt.Sprintf("e%d", i+1), Parent: parent, Time: Start, Body: named(b, names)}
		recs = append(recs, r)
		parent = r.ID
	}
	return recs
}

// named returns b with names for its results: those of the calls so far.
func named(b session.Body, names map[string]string) session.Body {
	m, ok := b.(session.Message)
	if !ok {
		return b
	}
	blocks := append([]llm.Block(nil), m.Blocks...)
	for i, bl := range blocks {
		switch bl := bl.(type) {
		case llm.ToolCall:
			names[bl.ID] = bl.Name
		case llm.ToolResult:
			if bl.Name == "" {
				bl.Name = names[bl.CallID]
				blocks[i] = bl
			}
		}
	}
	m.Blocks = blocks
	return m
}

// Replay returns the session that Log(bodies...) adds up to.
func Replay(t testing.TB, bodies ...session.Body) *session.Session {
	t.Helper()
	recs := Log(bodies...)
	s, err := session.Replay(recs[0].Body.(session.Header).ID, Yield(recs...))
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	return s
}

// Yield yields recs, as a Store's Read does.
func Yield(recs ...session.Record) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for _, r := range recs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Collect returns everything that seq yields, up to the first error.
func Collect[T any](seq iter.Seq2[T, error]) ([]T, error) {
	var all []T
	for v, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Same compares records and sessions by content: Raw does not count, and an
// empty list equals nil.
var Same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmp.FilterValues(func(a, b json.RawMessage) bool { return len(a) > 0 || len(b) > 0 }, cmp.Comparer(bytesEqual)), // not byte by byte
	cmpopts.IgnoreFields(session.Record{}, "Raw"),
	cmpopts.IgnoreUnexported(session.Session{}),
}

// Diff returns how the log got differs from want by Same, or "". Most records
// are alike in every field, and reflect finds that out sooner than cmp does; cmp
// looks at the others.
func Diff(want, got []session.Record) string {
	same := len(want) == len(got)
	for i := 0; same && i < len(want); i++ {
		a, b := want[i], got[i]
		a.Raw, b.Raw = nil, nil
		same = reflect.DeepEqual(a, b) || cmp.Equal(a, b, Same)
	}
	if same {
		return ""
	}
	return cmp.Diff(want, got, Same)
}

func bytesEqual(a, b json.RawMessage) bool { return string(a) == string(b) }

// SameInfo compares Infos; of Trashed only whether it is set, since each store
// has its own clock.
var SameInfo = cmp.Options{
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Trashed" },
		cmp.Comparer(func(a, b time.Time) bool { return a.IsZero() == b.IsZero() })),
}

// Clock is a session.Clock for tests. Each reading moves it by Step, which may be
// zero or negative. The zero value stands still at Start.
type Clock struct {
	Step time.Duration
	Seed uint64 // where Rand begins

	mu    sync.Mutex
	moved time.Duration
	n     uint64
}

// Now implements session.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := Start.Add(c.moved)
	c.moved += c.Step
	return now
}

// Move puts the clock forward or, with a negative d, back.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved += d
}

// Rand implements session.Clock. Every Clock with one Seed yields the same
// numbers.
func (c *Clock) Rand() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	x := (c.n + c.Seed<<32) * 0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
