package repl

import (
	"context"
	"strings"
	"testing"

	"goclaw/internal/repl/line"
	"goclaw/llm"
	"goclaw/llm/llmtest"
)

// hasty types into the turn that runs.
type hasty struct {
	Input
	texts []string
}

func (h *hasty) Steered() llm.Message {
	if h.texts == nil {
		return llm.Message{}
	}
	text := strings.Join(h.texts, "\n\n")
	h.texts = nil
	return llm.UserText(text)
}

func (h *hasty) Steering() (done func()) { return func() {} }

func TestTypedIntoATurn(t *testing.T) {
	b := newBench(llmtest.Say("one"), llmtest.Say("two"))
	var out, errs strings.Builder
	in := &hasty{Input: line.NewPlain(strings.NewReader("hello\n"), nil), texts: []string{"wait", "and this"}}
	if err := New(b.options(&out, &errs)).Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	want(t, "answers", out.String(), "one\n")
	reqs := b.model.Requests()
	want(t, "the request", reqs[0].Messages[0].Text(), "hello\nwait\n\nand this")
}

func TestShow(t *testing.T) {
	b := newBench(llmtest.Call("c1", "look", `{}`), llmtest.Say("done"))
	out, errs, err := b.pipe(t, "/show\ngo\n/show\n/show 4\n/show 2\n/show 99\n/show x\n")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "shown", out, "done\nseen\nseen\ngo\n")
	want(t, "notes", errs, "error: no tool was called in this session\n→ look()\n  seen\n← 1.0 s\n"+
		"error: record 99 is not a message of this session: /history shows the numbers\nerror: /show takes the number of a record, not \"x\"\n")
}
