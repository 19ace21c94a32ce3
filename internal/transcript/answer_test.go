package transcript

import (
	"fmt"
	"goclaw/internal/terminal"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var (
	escape = regexp.MustCompile("\x1b\\[([0-9;]*)m")
	style  = regexp.MustCompile(`^<([0-9;]*)>`)
	letter = regexp.MustCompile(`[^a-zä中0-9]`)
	marked = regexp.MustCompile("<[0-9;]*>|[•│─]")
)

func unlimited() int { return 0 }

// shown renders text that comes in pieces. Styles are written as <1> ... <0>.
func shown(pieces ...string) string { return shownIn(0, true, pieces...) }

// shownIn renders text for a terminal of that width.
func shownIn(width int, colour bool, pieces ...string) string {
	var b strings.Builder
	m := NewAnswer(func(s string) { b.WriteString(s) }, Style{Colour: colour}, func() int { return width })
	for _, p := range pieces {
		m.Write(p)
	}
	m.Close()
	return escape.ReplaceAllString(terminal.Text(b.String()), "<$1>")
}

func TestMarkdown(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":                 {"hello world", "hello world\n"},
		"bold":                  {"a **b c** d", "a <1>b c<0> d\n"},
		"bold by underscores":   {"a __b__ d", "a <1>b<0> d\n"},
		"italic":                {"a *b* _c_ d", "a <3>b<0> <3>c<0> d\n"},
		"both":                  {"***x***", "<1;3>x<0>\n"},
		"nested":                {"**a *b* c**", "<1>a <1;3>b<0><1> c<0>\n"},
		"struck":                {"~~a~~ ~5", "<9>a<0> ~5\n"},
		"code":                  {"run `go *test*` now", "run <36>go *test*<0> now\n"},
		"code with backquotes":  {"a `` b`c `` d", "a <36>b`c<0> d\n"},
		"bold around code":      {"**a `*` b**", "<1>a <1;36>*<0><1> b<0>\n"},
		"not closed":            {"a **b and `c", "a **b and `c\n"},
		"not closed, next line": {"a **b\nc** d", "a **b\nc** d\n"},
		"product":               {"2 * 3 * 4 and 2*3*4", "2 * 3 * 4 and 2*3*4\n"},
		"snake_case_names":      {"a_b_c and __init__.py x", "a_b_c and <1>init<0>.py x\n"},
		"pointer":               {"char *p, **q;", "char *p, **q;\n"},
		"escaped":               {`\*a\* \n`, "*a* \\n\n"},
		"link":                  {"see [the *docs*](https://x.y/z_a_b).", "see <4>the <3;4>docs<0><4><0><2> (https://x.y/z_a_b)<0>.\n"},
		"link as text":          {"[https://x](https://x)", "<4>https://x<0>\n"},
		"brackets":              {"a[0] [x] [y](not a link)", "a[0] [x] [y](not a link)\n"},
		"headings":              {"# One\n## Two *x*\n#hash\n####### seven", "<1;4>One<0>\n<1>Two <1;3>x<0><1><0>\n#hash\n####### seven\n"},
		"list":                  {"- a\n* b\n  + **c**\n1. d\n-e", "• a\n• b\n  • <1>c<0>\n1. d\n-e\n"},
		"quotation":             {"> a *b*\n>c", "<2>│ <0><3>a <3>b<0><3><0>\n<2>│ <0><3>c<0>\n"},
		"rule":                  {"a\n---\nb\n***\n- - -", "a\n<2>" + strings.Repeat("─", 40) + "<0>\nb\n<2>" + strings.Repeat("─", 40) + "<0>\n• - -\n"},
		"fence":                 {"x\n```go\n# a **b**\n\n  - c\n```\n**d**", "x\n<2>```go<0>\n<36># a **b**<0>\n\n<36>  - c<0>\n<2>```<0>\n<1>d<0>\n"},
		"fence not closed":      {"```\na", "<2>```<0>\n<36>a<0>\n"},
		"longer fence":          {"````\n```\n````\nx", "<2>````<0>\n<36>```<0>\n<2>````<0>\nx\n"},
		"code that is no fence": {"```a``` b", "<36>a<0> b\n"},
		"empty lines":           {"a\n\n\nb\n", "a\n\n\nb\n"},
		"table":                 {"| a | **b** |\n|---|---|\n| `c` | d |\nx", "<1>a<0> │ <1><1>b<0><0>\n<2>──┼──<0>\n<36>c<0> │ d\nx\n"},
		"ends in a mark":        {"a *", "a *\n"},
		"wide":                  {"**ä中** `é`", "<1>ä中<0> <36>é<0>\n"},
		"long bold":             {"**" + strings.Repeat("x", maxHeld) + "** y", "**" + strings.Repeat("x", maxHeld) + "** y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, shown(c.text)); d != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, d)
			}
		})
	}
}

// What is shown does not depend on the pieces it comes in, and no text is
// lost: without the marks, it is what came.
func TestMarkdownInPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	pool := []string{"a", "bc ", " ", "*", "**", "***", "_", "__", "`", "```", "~~", "[", "](", ")", "\\", "#", "# ", "- ", "> ", "---", "\n", "\n", "1. ", "ä", "中", "long words here "}
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
		whole, byPiece := plainStyle(shown(text)), plainStyle(shown(pieces...))
		if whole != byPiece {
			t.Fatalf("case %d: %q in pieces %q\n%s", i, text, pieces, cmp.Diff(whole, byPiece))
		}
		width := 8 + rnd.IntN(30)
		text += "\n| a | b |\n|---|---|\n| one *two* | x |\n" + text
		pieces = append(append(pieces, "\n| a", " | b |\n|--", "-|---|\n", "| one *two*", " | x |", "\n"), pieces...)
		whole, byPiece = plainStyle(shownIn(width, true, text)), plainStyle(shownIn(width, true, pieces...))
		if whole != byPiece {
			t.Fatalf("case %d: %q in pieces %q at %d columns\n%s", i, text, pieces, width, cmp.Diff(whole, byPiece))
		}
		text = b.String()
		letters := func(s string) string { return letter.ReplaceAllString(s, "") }
		if got, want := letters(marked.ReplaceAllString(shown(text), "")), letters(text); got != want {
			t.Fatalf("case %d: of %q the letters %q are shown, want %q", i, text, got, want)
		}
	}
}

// plainStyle writes the style in front of each character, so that two ways
// to say the same are the same.
func plainStyle(s string) string {
	var b strings.Builder
	now := ""
	for s != "" {
		if m := style.FindStringSubmatch(s); m != nil {
			s = s[len(m[0]):]
			switch {
			case m[1] == "0":
				now = ""
			default:
				now = m[1]
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		fmt.Fprintf(&b, "%s%c", now, r)
		s = s[n:]
	}
	return b.String()
}

// Words appear when they come, not when the line or the answer is over.
func TestMarkdownStreams(t *testing.T) {
	var b strings.Builder
	m := NewAnswer(func(s string) { b.WriteString(s) }, Style{Colour: true}, unlimited)
	for _, step := range []struct{ in, want string }{
		{"Hel", "Hel"}, {"lo wor", "Hello wor"}, {"ld, **bo", "Hello world, "}, {"ld** ", "Hello world, \x1b[1mbold\x1b[0m "}, {"x", "Hello world, \x1b[1mbold\x1b[0m x"},
	} {
		m.Write(step.in)
		if got := terminal.Text(b.String()); got != step.want {
			t.Fatalf("after %q the screen has %q, want %q", step.in, got, step.want)
		}
	}
}

// In a terminal, prose is broken between words and tables are drawn, with colours
// and without; code stays as it is.
func TestMarkdownFitsTheTerminal(t *testing.T) {
	const text = "Some **bold words** in a line.\n- an item that goes on\n> quoted words here\n```\ncode that is longer than the line\n```\n| a | b |\n|---|--:|\n| x y z w v u t | 1 |\n\nend"
	const want = "Some bold words\nin a line.\n• an item that\n  goes on\n│ quoted words\n  here\n```\ncode that is longer than the line\n```\na           │ b\n────────────┼──\nx y z w v u │ 1\nt           │\n\nend\n"
	const plain = "Some **bold\nwords** in a\nline.\n- an item that\n  goes on\n> quoted words\nhere\n```\ncode that is longer than the line\n```\na           │ b\n────────────┼──\nx y z w v u │ 1\nt           │\n\nend\n"
	unstyled := regexp.MustCompile("<[0-9;]*>")
	if d := cmp.Diff(want, unstyled.ReplaceAllString(shownIn(15, true, text), "")); d != "" {
		t.Errorf("with colours (-want +got):\n%s", d)
	}
	if d := cmp.Diff(plain, shownIn(15, false, strings.Split(text, "")...)); d != "" {
		t.Errorf("without colours (-want +got):\n%s", d)
	}
}

func TestMarkdownWithoutColour(t *testing.T) {
	const text = "# a **b**\n```\nc\n```\n- d"
	var b strings.Builder
	m := NewAnswer(func(s string) { b.WriteString(s) }, Style{}, unlimited)
	for _, r := range text {
		m.Write(string(r))
	}
	m.Close()
	if b.String() != text+"\n" {
		t.Errorf("shown is %q, want the text as it is", b.String())
	}
}
