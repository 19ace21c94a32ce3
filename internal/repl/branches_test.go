package repl

import (
	"context"
	"strings"
	"testing"

	"goclaw/llm/llmtest"
)

// TestRewind goes back to before a message, says something else, and switches
// between the two.
func TestRewind(t *testing.T) {
	b := newBench(llmtest.Say("again"), llmtest.Say("third"))
	b.seed(t, "s1", "main:cli:user", talk...)
	got := b.person(t, "/tree\n/rewind\nanother question\n/history\n/tree\n/tree 1\nmore\n/history\n/rewind 99\n/rewind x\n/tree 9\n/rewind 2\n")
	for _, want := range []string{
		"there is one branch",
		"back to before record 5; what came after is kept as a branch (/tree). Files are as they are now.\nThe message was: second question\n",
		"another question\n\nassistant",
		"\n   1  2      5          second question\n",
		"\n*  2  2                 (you are here) another question\n",
		"switched to branch 1; the other is kept",
		"second question\n\nassistant  2026-11-15 00:00  #6\nsecond answer\n\nuser  2026-11-15 00:00  #11\nmore\n",
		"record 99 is not one of your messages here",
		`/rewind takes the number of one of your messages, not "x"`,
		`/tree takes a number from 1 to 2, not "9"`,
		"this was the first message: the session as it was is kept, as s1",
		"The message was: first question",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestRewindAtATerminal: the text is in the input again, to be changed.
func TestRewindAtATerminal(t *testing.T) {
	b := newBench(llmtest.Say("one"), llmtest.Say("two"))
	b.seed(t, "s1", "main:cli:user", talk...)
	p, over := b.sit(t, context.Background())
	p.See("\n>")
	p.Press("/rewind\r")
	p.See("> second question")
	p.Press(", please\r")
	p.See("> second question, please\none\n")
	p.Press("/quit\r")
	over()
}
