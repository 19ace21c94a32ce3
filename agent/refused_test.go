package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/agent"
	"goclaw/internal/fixtures"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/session"
	. "goclaw/session/sessiontest"
	"goclaw/window"
)

// refusing is a model that refuses every request with an image, by the place of
// the first one.
func refusing() *llmtest.Model {
	return &llmtest.Model{Rest: func(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
		for i, m := range req.Messages {
			for j, b := range m.Blocks {
				if llm.SizeOf([]llm.Block{b}).Images > 0 {
					api := &llm.APIError{Provider: "llmtest", Status: 400, Message: "the request was refused: bad image", Kind: llm.ErrRefused}
					return func(yield func(llm.Delta, error) bool) {
						yield(llm.Delta{}, &llm.RefusedError{Message: i, Block: j, Image: true, Why: "bad image", Err: api})
					}
				}
			}
		}
		return llmtest.Say("ok")(ctx, req)
	}}
}

func look(images int) llm.Message {
	m := llm.UserText("look")
	for range images {
		m.Blocks = append(m.Blocks, llmtest.Images[0])
	}
	return m
}

// A block that the API refuses is left out, once in a turn, and stays left out;
// the user is told. A second refusal in the same turn ends it, and the next turn
// gets past it.
func TestRefusedBlockIsLeftOut(t *testing.T) {
	const left = "user [image left out: the API refused it: bad image]"
	model := refusing()
	s := Replay(t)
	env := agent.Env{Provider: model}

	kept, events, err := play(t, context.Background(), s, look(2), env)
	if !errors.Is(err, llm.ErrRefused) || len(model.Requests()) != 2 {
		t.Fatalf("two images: %d requests and %v, want 2 and the refusal", len(model.Requests()), err)
	}
	if want := []string{"user: look", "session.Refused"}; !cmp.Equal(kept, want) {
		t.Errorf("recorded %q, want %q", kept, want)
	}
	told := 0
	for _, ev := range events {
		if l, ok := ev.(agent.LeftOut); ok {
			told++
			if p := l.Parts[0]; p.Seq != 2 || p.Block != llmtest.Images[0] || l.Err.Why != "bad image" {
				t.Errorf("told %+v", l)
			}
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}

	if _, _, err := play(t, context.Background(), s, llm.UserText("and now?"), env); err != nil {
		t.Fatalf("the next turn: %v", err)
	}
	reqs := model.Requests()
	if got, want := fixtures.Lines(reqs[len(reqs)-1]), []string{"user look", left, left, "user and now?"}; !cmp.Equal(got, want) {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got := fixtures.Lines(window.Build(s, window.Prompt{}, window.Loose)); !cmp.Equal(got[:4], []string{"user look", left, left, "user and now?"}) {
		t.Errorf("the context shows %q", got)
	}
	if n := llm.SizeOf(s.Branch[0].Body.(session.Message).Blocks).Images; n != 2 {
		t.Errorf("the log has %d images, want both", n)
	}

	before := len(reqs)
	if _, _, err := play(t, context.Background(), s, llm.UserText("still there?"), env); err != nil || len(model.Requests()) != before+1 {
		t.Errorf("a later turn: %v after %d requests, want one", err, len(model.Requests())-before)
	}
}

// What cannot be left out ends the turn with the API's own words.
func TestRefusedQuestionIsAnError(t *testing.T) {
	model := &llmtest.Model{Rest: func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			yield(llm.Delta{}, &llm.RefusedError{Message: 0, Block: 0, Why: "no", Err: &llm.APIError{Message: "the request was refused: no", Kind: llm.ErrRefused}})
		}
	}}
	kept, _, err := play(t, context.Background(), Replay(t), llm.UserText("q"), agent.Env{Provider: model})
	if !errors.Is(err, llm.ErrRefused) || !strings.Contains(err.Error(), "refused: no") || len(model.Requests()) != 1 || len(kept) != 1 {
		t.Errorf("%v after %d requests, recorded %q", err, len(model.Requests()), kept)
	}
}
