package window_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"goclaw/internal/fixtures"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// refuse returns a log with records that leave out what e names.
func refuse(t interface{ Fatal(...any) }, log []session.Body, e *llm.RefusedError) (after []session.Body, places []window.Place) {
	s, err := session.Replay("s", Yield(Log(log...)...))
	if err != nil {
		t.Fatal(err)
	}
	places = window.Refused(s, prompt, window.Loose, e)
	after = log
	for _, at := range places {
		after = append(after[:len(after):len(after)], session.Refused{Target: at.Record, Block: at.Block, Why: "why"})
	}
	return after, places
}

func TestRefusedBlocksAreLeftOut(t *testing.T) {
	png := llmtest.Images[0]
	look := User("look")
	look.Blocks = append(look.Blocks, png)
	shown := Result("c1", "a picture")
	r := shown.Blocks[0].(llm.ToolResult)
	r.Blocks = append(r.Blocks, png)
	shown.Blocks[0] = r
	log := []session.Body{look, Calls(llm.ToolCall{ID: "c1", Name: "shoot"}, llm.ToolCall{ID: "c2", Name: "list"}), shown, Result("c2", "a.txt"), Answer("ok"), User("and now?")}
	all := []string{"user look", "user (image)", "call c1 shoot {}", "call c2 list {}",
		"result c1 false a picture(image)", "result c2 false a.txt", "assistant ok", "user and now?"}
	with := func(change map[int]string) []string {
		out := []string{}
		for i, line := range all {
			if other, ok := change[i]; ok {
				line = other
			}
			if line != "" {
				out = append(out, line)
			}
		}
		return out
	}
	image, result := "user [image left out: the API refused it: why]", "result c1 false [result left out: the API refused it: why]"
	for _, c := range []struct {
		name string
		e    llm.RefusedError
		want []string
	}{
		{"an image", llm.RefusedError{Message: 0, Block: 1}, with(map[int]string{1: image})},
		{"a message with an image", llm.RefusedError{Message: 0, Block: -1}, with(map[int]string{1: image})},
		{"a result", llm.RefusedError{Message: 2, Block: 0}, with(map[int]string{4: result})},
		{"a call, and its result", llm.RefusedError{Message: 1, Block: 0}, with(map[int]string{2: "assistant [a call of shoot left out: the API refused it: why]", 4: ""})},
		{"an answer", llm.RefusedError{Message: 3, Block: -1}, with(map[int]string{6: "assistant [text left out: the API refused it: why]"})},
		{"an image somewhere", llm.RefusedError{Message: -1, Block: -1, Image: true}, with(map[int]string{1: image, 4: result})},
		{"the question", llm.RefusedError{Message: 4, Block: 0}, all},
		{"the question's message", llm.RefusedError{Message: 4, Block: -1}, all},
		{"what is not there", llm.RefusedError{Message: 5, Block: 0}, all},
		{"no such block", llm.RefusedError{Message: 0, Block: 9}, all},
		{"nothing", llm.RefusedError{Message: -1, Block: -1}, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, _ := refuse(t, log, &c.e)
			req := window.Build(Replay(t, after...), prompt, window.Loose)
			if diff := cmp.Diff(c.want, fixtures.Lines(req)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if err := llmtest.Validate(req); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is left out stays out after an edit of another record, a reset that
// keeps its record, and a compaction that keeps the question; a later edit of
// the record replaces it.
func TestRefusedStaysLeftOut(t *testing.T) {
	look := User("look")
	look.Blocks = append(look.Blocks, llmtest.Images[0])
	refused := session.Refused{Target: "e1", Block: 1, Why: "why"}
	left := "user [image left out: the API refused it: why]"
	for name, log := range map[string][]session.Body{
		"reset":      {look, refused, Answer("a"), session.Reset{Reason: "daily", FirstKept: "e1"}, User("q")},
		"compaction": {look, refused, Call("c1", "read"), Result("c1", "r"), session.Compaction{Summary: "sum", FirstKept: "e1", Resume: "e6"}, Call("c2", "read"), Result("c2", "r")},
		"edit":       {look, refused, Answer("a"), session.Edit{Target: "e3", Drop: true}, User("q")},
	} {
		lines := fixtures.Lines(window.Build(Replay(t, log...), prompt, window.Loose))
		found := false
		for _, l := range lines {
			found = found || l == left
		}
		if !found {
			t.Errorf("%s: %q, want %q among them", name, lines, left)
		}
	}
	edited := []session.Body{look, refused, session.Edit{Target: "e1", Blocks: []llm.Block{llm.Text{Text: "never mind"}, llmtest.Images[1]}}, Answer("a"), User("q")}
	if got, want := fixtures.Lines(window.Build(Replay(t, edited...), prompt, window.Loose))[:2], []string{"user never mind", "user (image)"}; !cmp.Equal(got, want) {
		t.Errorf("after an edit %q, want %q", got, want)
	}
}

// Whatever an API refuses of whatever log, the request without it is valid and
// says that it was left out.
func TestAnyBlockCanBeLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := append(AnyBodies(t, "anthropic", "claude"), User("and now?"))
		s, err := session.Replay("s", Yield(Log(log...)...))
		if err != nil {
			t.Fatal(err)
		}
		req := window.Build(s, prompt, window.Loose)
		e := &llm.RefusedError{Message: rapid.IntRange(-1, len(req.Messages)).Draw(t, "message"), Block: -1, Image: rapid.Bool().Draw(t, "image")}
		if e.Message >= 0 && e.Message < len(req.Messages) {
			e.Block = rapid.IntRange(-1, len(req.Messages[e.Message].Blocks)).Draw(t, "block")
		}
		after, places := refuse(t, log, e)
		s, err = session.Replay("s", Yield(Log(after...)...))
		if err != nil {
			t.Fatal(err)
		}
		now := window.Build(s, prompt, window.Loose)
		if err := llmtest.Validate(now); err != nil {
			t.Fatal(err)
		}
		if len(places) > 0 && cmp.Equal(fixtures.Lines(req), fixtures.Lines(now)) {
			t.Fatalf("%v were left out of %q, and nothing has changed", places, fixtures.Lines(req))
		}
	})
}
