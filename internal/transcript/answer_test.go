package transcript_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// shown shows an answer that comes in pieces.
func shown(width int, render bool, pieces ...string) string {
	var b strings.Builder
	a := transcript.NewAnswer(func(s string) { b.WriteString(s) }, transcript.Style{Colour: render, Render: render}, func() int { return width })
	for _, p := range pieces {
		a.Write(p)
	}
	a.Close()
	return terminal.Text(b.String())
}

const answerText = "Some **bold words** in a line.\n- an item that goes on\n```\ncode that is longer than the line\n```\n| a | b |\n|---|--:|\n| x y z w v u t | 1 |\n\nend"

// On a terminal an answer is rendered, or printed as it is, prose broken between
// words; in a pipe it is printed byte for byte.
func TestAnswer(t *testing.T) {
	const rendered = "Some bold words\nin a line.\n• an item that\n  goes on\n──\ncode that is longer than the line\n──\na           │ b\n────────────┼──\nx y z w v u │ 1\nt           │\n\nend\n"
	const printed = "Some **bold\nwords** in a\nline.\n- an item that\n  goes on\n```\ncode that is longer than the line\n```\n| a | b |\n|---|--:|\n| x y z w v u t | 1 |\n\nend\n"
	letters := strings.Split(answerText, "")
	sgr := regexp.MustCompile("\x1b\\[[0-9;]*m")
	if d := cmp.Diff(rendered, sgr.ReplaceAllString(shown(15, true, letters...), "")); d != "" {
		t.Errorf("rendered (-want +got):\n%s", d)
	}
	if d := cmp.Diff(printed, shown(15, false, letters...)); d != "" {
		t.Errorf("printed (-want +got):\n%s", d)
	}
	for _, render := range []bool{true, false} {
		if d := cmp.Diff(answerText+"\n", shown(0, render, letters...)); d != "" {
			t.Errorf("in a pipe (-want +got):\n%s", d)
		}
	}
	if got, want := shown(40, true, "**a** \x1b[2J &#27;[2J"), "\x1b[1ma\x1b[m \uFFFD[2J \uFFFD[2J\n"; got != want {
		t.Errorf("the terminal gets %q, want %q", got, want)
	}
}

// What is printed does not depend on the pieces it comes in, and no letter is
// lost.
func TestPrinterInPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pool := []string{"a", "bc ", " ", "`", "```", "~~~", "|", "- ", "> ", "\n", "\n", "1. ", "ä", "中", "long words here "}
	for i := range 2000 {
		var b strings.Builder
		for range rnd.IntN(25) {
			b.WriteString(pool[rnd.IntN(len(pool))])
		}
		text := b.String()
		var pieces []string
		for rest := []rune(text); len(rest) > 0; {
			n := 1 + rnd.IntN(min(4, len(rest)))
			pieces = append(pieces, string(rest[:n]))
			rest = rest[n:]
		}
		width := 8 + rnd.IntN(30)
		whole := shown(width, false, text)
		if got := shown(width, false, pieces...); got != whole {
			t.Fatalf("case %d: %q in pieces %q\n%s", i, text, pieces, cmp.Diff(whole, got))
		}
		if got, want := strings.Join(strings.Fields(whole), ""), strings.Join(strings.Fields(text), ""); got != want {
			t.Fatalf("case %d: of %q, %q is printed", i, text, got)
		}
	}
}

// Words are printed when they come, not when the line or the answer is over.
func TestPrinterStreams(t *testing.T) {
	var b strings.Builder
	p := transcript.NewPrinter(func(s string) { b.WriteString(s) }, func() int { return 40 })
	for _, step := range []struct {
		in, want string
		open     bool
	}{
		{"Hel", "", true}, {"lo wor", "Hello", true}, {"ld, ", "Hello world,", true}, {"x\n", "Hello world, x\n", false},
		{"``", "Hello world, x\n", false}, {"`go\n", "Hello world, x\n```go\n", false}, {"some co", "Hello world, x\n```go\nsome co", true},
	} {
		p.Write(step.in)
		if got := b.String(); got != step.want || p.Open() != step.open {
			t.Fatalf("after %q the screen has %q (open: %v), want %q", step.in, got, p.Open(), step.want)
		}
	}
}
