package sessiontest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/llm"
	"goclaw/session"
)

func TestLogIsStraight(t *testing.T) {
	got := Log(User("hi"), Call("c1", "read", `{"path":"x"}`), Result("c1", "ok"))
	want := []session.Record{
		{Seq: 1, Time: Start, Body: session.Header{Version: 3, ID: "s1", Key: "main:cli:user"}},
		{Seq: 2, ID: "e1", Time: Start, Body: User("hi")},
		{Seq: 3, ID: "e2", Parent: "e1", Time: Start, Body: Call("c1", "read", `{"path":"x"}`)},
		{Seq: 4, ID: "e3", Parent: "e2", Time: Start, Body: session.Message{Message: llm.Message{Role: llm.User, Blocks: []llm.Block{
			llm.ToolResult{CallID: "c1", Name: "read", Blocks: []llm.Block{llm.Text{Text: "ok"}}}}}}},
	}
	if d := cmp.Diff(want, got, Same); d != "" {
		t.Errorf("Log (-want +got):\n%s", d)
	}
	own := session.Header{Version: 3, ID: "x", Key: "k"}
	if got := Replay(t, own, Title("a name")); got.ID != "x" || got.Key != "k" || got.Info.Title != "a name" || got.Leaf != "e1" {
		t.Errorf("Replay with its own header = %+v", got.Info)
	}
}

func TestClock(t *testing.T) {
	var c Clock
	if a, b := c.Now(), c.Now(); !a.Equal(Start) || !b.Equal(Start) {
		t.Errorf("a clock that stands still says %v, then %v", a, b)
	}
	back := &Clock{Step: -time.Second}
	if a, b := back.Now(), back.Now(); !b.Equal(a.Add(-time.Second)) {
		t.Errorf("a clock that runs back says %v, then %v", a, b)
	}
	c.Move(time.Hour)
	if got := c.Now(); !got.Equal(Start.Add(time.Hour)) {
		t.Errorf("moved by an hour it says %v", got)
	}
	seen := map[uint64]bool{}
	for range 1000 {
		seen[c.Rand()] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 calls of Rand gave %d numbers", len(seen))
	}
}

func TestDiff(t *testing.T) {
	log := Log(User("hi"), Call("c1", "read", `{"path":"x"}`), Result("c1", "ok"))
	alike := Log(User("hi"), Call("c1", "read", `{"path":"x"}`), Result("c1", "ok"))
	alike[1].Raw = []byte("{}")                        // does not count
	alike[2].Time = Start.In(time.FixedZone("", 3600)) // the same moment
	m := alike[3].Body.(session.Message)               // an empty list equals nil
	m.Details, alike[3].Body = []byte{}, m
	if d := Diff(log, alike); d != "" {
		t.Errorf("logs that are alike (-want +got):\n%s", d)
	}
	if d := Diff(nil, []session.Record{}); d != "" {
		t.Errorf("logs without a record (-want +got):\n%s", d)
	}
	other := Log(User("hi"), Call("c1", "read", `{"path":"y"}`), Result("c1", "ok"))
	for name, got := range map[string][]session.Record{"an argument": other, "a record less": log[:3], "none": nil, "another order": {log[0], log[2], log[1], log[3]}} {
		if Diff(log, got) == "" || Diff(got, log) == "" {
			t.Errorf("%s: no difference", name)
		}
	}
}
