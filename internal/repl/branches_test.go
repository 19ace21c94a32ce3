//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package repl

import (
	"context"
	"strings"
	"testing"

	"goclaw/llm/llmtest"
	"goclaw/session"
)

// TestRewind goes back to before a message, says something else, and switches
// between the two.
func TestRewind(t *testing.T) {
	b := newBench(llmtest.Say("again"), llmtest.Say("third"), llmtest.Say("anew"))
	b.seed(t, "s1", "main:cli:user", talk...)
	got := b.person(t, "/tree\n/rewind\nanother question\n/history\n/tree\n/tree 1\nmore\n/history\n/rewind 99\n/rewind x\n/tree 9\n/rewind 2\nfirst again\n/tree\n/history\n/rewind\n/tree 1\n/tree\n")
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
		"back to before record 2; what came after is kept as a branch (/tree). Files are as they are now.\nThe message was: first question",
		"\n   1  2      8          another question\n   2  3      5          second question\n*  3  1                 (you are here) first again\n",
		"> user  2026-11-15 00:00  #14\nfirst again\n\nassistant",
		"back to before record 14",
		"\n*  1  2                 (you are here) another question\n   2  3      5          second question\n   3  1      14         first again\n> ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestRewindImported: an imported session is never written to, also not by a
// turn after its title was set.
func TestRewindImported(t *testing.T) {
	for _, first := range []string{"/rewind 5\n", "/title mine\n"} {
		b := newBench(llmtest.Say("again"))
		head := session.Header{Version: session.Version, ID: "s1", Key: "pi:x:1", Origin: session.Origin{Program: "pi", Path: "/x", Key: "pi:x:1", ID: "s1"}}
		if err := b.store.Append(context.Background(), "s1", Log(append([]session.Body{head}, talk...)...)...); err != nil {
			t.Fatal(err)
		}
		got := b.person(t, "/switch pi:x:1\n"+first+"another question\n/history\n")
		if !strings.Contains(got, "another question\n\nassistant") {
			t.Errorf("%s: nothing was said\n%s", first, got)
		}
		for r, err := range b.store.Read(context.Background(), "s1", session.Seq(len(talk)+1)) {
			if _, title := r.Body.(session.Title); err != nil || !title {
				t.Errorf("%s: %T was added to the imported session (%v)\n%s", first, r.Body, err, got)
			}
		}
		if rewound := strings.Contains(got, "second question\n\nassistant"); rewound != strings.HasPrefix(first, "/title") {
			t.Errorf("%s\n%s", first, got)
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
	p.Await("the message in the input", func(text string, _, col int) bool {
		return strings.Contains(text, "as they are now.\n> second question\n") && col == len("> second question")
	})
	p.Press(", please\r")
	p.See("> second question, please\none\n")
	p.Press("/quit\r")
	over()
}
