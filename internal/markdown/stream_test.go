package markdown

import (
	"regexp"
	"strings"
	"testing"

	"github.com/clipperhouse/displaywidth"
	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"goclaw/internal/terminal"
)

// sgr is the only sequence that may reach the terminal.
var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// unstyled takes the styles out of a rendered text.
func unstyled(s string) string { return sgr.ReplaceAllString(s, "") }

// check holds what was rendered against what must be true of all of it.
func check(t interface {
	Helper()
	Fatalf(string, ...any)
}, out string, width int) {
	t.Helper()
	if out != "" && !strings.HasSuffix(out, "\n") {
		t.Fatalf("the last line does not end: %q", out)
	}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		plain := unstyled(line)
		if w := displaywidth.String(plain); w > width {
			t.Fatalf("a line of %d columns in a terminal of %d: %q", w, width, plain)
		}
		if i := strings.IndexFunc(plain, func(r rune) bool { return r == '\t' || terminal.Hidden(r) }); i >= 0 {
			t.Fatalf("a control character at %d of %q", i, plain)
		}
		if all := sgr.FindAllString(line, -1); len(all) > 0 && all[len(all)-1] != "\x1b[m" {
			t.Fatalf("a line leaves its style to the next: %q", line)
		}
	}
}

// stream renders text that comes in pieces, and draws what is alive between them.
func stream(pieces []string, width int, live bool) (out string, work int) {
	s := New(Style{Colour: true}, func() int { return width })
	var b strings.Builder
	for _, p := range pieces {
		s.Write(p)
		b.WriteString(s.Take())
		if live {
			s.Live(width)
		}
	}
	b.WriteString(s.Close())
	return b.String(), s.work
}

// words are what random answers are made of.
var words = []string{
	"a", "bc ", " ", "  ", "    ", "\t", "*", "**", "***", "_", "`", "``", "~~", "[", "](", ")", "![", "<", ">", "\\", "&amp;", "&#27;[2J",
	"\n", "\n", "\n", "\n\n", "# ", "## ", "- ", "* ", "+ ", "1. ", "2) ", "7. ", "> ", "---", "===", "***\n", "- [x] ", "```", "```go\n", "\n```\n", "~~~\n",
	"| a | b |\n", "|---|--:|\n", "| x |\n", "<div>", "</div>", "<!--", "-->", "<br>", "[r]: http://x.y\n", "http://x.y/z ",
	"ä", "e\u0301", "中文", "日本語、", "👩‍👧", "🇩🇪", "\u200b", "\x1b[31m", "\x07", "\u202e", "\xff", "\r\n", "long words here that go on and on ",
	"func f() { return \"x\" }\n", "/* c\n", "*/\n", "averyveryverylongwordthatfitsnowhereatallinanarrowterminal",
}

func answers() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(words), 0, 40).Draw(t, "words"), "")
	})
}

// split cuts text anywhere, also within characters.
func split(t *rapid.T, text string) (pieces []string) {
	for text != "" {
		n := rapid.IntRange(1, min(len(text), 12)).Draw(t, "n")
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return pieces
}

// What is given out does not depend on the pieces that an answer comes in, nor
// on what is drawn in between, and it fits every terminal.
func TestStreamInPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := answers().Draw(t, "text")
		width := rapid.IntRange(20, 60).Draw(t, "width")
		want := Render(text, Style{Colour: true}, width)
		check(t, want, width)
		got, _ := stream(split(t, text), width, rapid.Bool().Draw(t, "live"))
		if got != want {
			t.Fatalf("in pieces (-at once +in pieces):\n%s", cmp.Diff(want, got))
		}
	})
}

// What is alive fits the terminal too, whatever has arrived.
func TestLiveFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(20, 60).Draw(t, "width")
		s := New(Style{Colour: true}, func() int { return width })
		for _, p := range split(t, answers().Draw(t, "text")) {
			s.Write(p)
			s.Take()
			if live := s.Live(width); live != "" {
				check(t, live+"\n", width)
			}
		}
	})
}

// What is given out block by block is what the whole text is, parsed at once:
// of text as people and models write it, with lists and code of any depth.
func TestStreamIsTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := document(t, 2)
		const width = 40
		p := &page{style: Style{Colour: true}, src: []byte(src), from: -1}
		var want strings.Builder
		for _, l := range p.blocks(full.Parse(text.NewReader(p.src)), width) {
			want.WriteString(p.style.paint(l) + "\n")
		}
		got, _ := stream(strings.SplitAfter(src, " "), width, false)
		if got != want.String() {
			t.Fatalf("%s\n(-whole +blocks):\n%s", src, cmp.Diff(want.String(), got))
		}
	})
}

// document draws blocks with an empty line between them.
func document(t *rapid.T, depth int) string {
	var blocks []string
	for range rapid.IntRange(1, 5).Draw(t, "blocks") {
		blocks = append(blocks, block(t, depth))
	}
	return strings.Join(blocks, "\n\n") + "\n"
}

func block(t *rapid.T, depth int) string {
	prose := rapid.SampledFrom([]string{"One **bold** word", "some `code` and a [link](http://x.y)", "東京の天気はとても良い", "a line\nand another one that is long enough to be broken somewhere", "an *open mark"})
	kinds := []string{"prose", "heading", "code", "table", "rule"}
	if depth > 0 {
		kinds = append(kinds, "list", "numbers", "quote")
	}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	switch kind {
	case "heading":
		return "## " + rapid.SampledFrom([]string{"A", "B *c*"}).Draw(t, "heading")
	case "code":
		return rapid.SampledFrom([]string{"```go\nfunc f() {\n\n\t/* a\n\tb */\n}\n```", "~~~\nx\n```\n~~~", "```\n```"}).Draw(t, "code")
	case "table":
		return "| a | b |\n|---|--:|\n| x | 1 |\n| a cell that is long enough to be broken | 22 |"
	case "rule":
		return "***"
	case "list", "numbers":
		var items []string
		mark := map[string]string{"list": "- ", "numbers": "3. "}[kind]
		for range rapid.IntRange(1, 4).Draw(t, "items") {
			items = append(items, mark+strings.ReplaceAll(strings.TrimSuffix(document(t, depth-1), "\n"), "\n", "\n"+strings.Repeat(" ", len(mark))))
		}
		return strings.Join(items, rapid.SampledFrom([]string{"\n", "\n\n"}).Draw(t, "between"))
	case "quote":
		return "> " + strings.ReplaceAll(strings.TrimSuffix(document(t, depth-1), "\n"), "\n", "\n> ")
	}
	return prose.Draw(t, "prose")
}

// An answer costs about as much as it is long, whatever it is made of and
// however small its pieces are: nothing that is finished is parsed again.
func TestStreamIsLinear(t *testing.T) {
	const size = 1 << 14
	for name, unit := range map[string]string{
		"paragraphs":      strings.Repeat("Some words of a **paragraph** that goes on. ", 12) + "\n\n",
		"one line":        "some words of a paragraph without an end ",
		"one paragraph":   "a line of a paragraph without an end\n",
		"list":            "- an item of a list\n",
		"loose list":      "1. an item of a list\n\n",
		"list in an item": "  - an item of a list\n",
		"code":            "x := foo(1, \"two\")\n",
		"table":           "| a cell | another one |\n",
		"quote":           "> some words that are quoted\n",
		"html":            "<div>x\n",
		"comment":         "<!-- x\n",
		"indented":        "    code without a fence\n",
		"empty lines":     "\n",
		"marks":           "*a _b [c `d ~~e <f ![g \\",
		"brackets":        "[",
		"deep":            "> > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > x\n",
		"deeper and more": "- ",
		"tall":            "a\u0301\u0301\u0301\u0301",
	} {
		t.Run(name, func(t *testing.T) {
			text := map[string]string{"code": "```\n", "table": "| a | b |\n|---|---|\n", "list in an item": "- a\n"}[name] + strings.Repeat(unit, size/len(unit))
			var pieces []string
			for rest := text; rest != ""; rest = rest[min(4, len(rest)):] {
				pieces = append(pieces, rest[:min(4, len(rest))])
			}
			out, work := stream(pieces, 40, false)
			check(t, out, 40)
			if most := 12 * len(text); work > most {
				t.Errorf("of %d bytes %d were parsed, more than %d", len(text), work, most)
			}
		})
	}
}

// To draw each piece of a long table costs more than to give it out, but not
// without a limit.
func TestLiveIsCheap(t *testing.T) {
	text := "| a | b |\n|---|---|\n" + strings.Repeat("| a cell | another one |\n", 400)
	var pieces []string
	for rest := text; rest != ""; rest = rest[min(64, len(rest)):] {
		pieces = append(pieces, rest[:min(64, len(rest))])
	}
	if _, work := stream(pieces, 40, true); work > 60*len(text) {
		t.Errorf("of %d bytes %d were parsed to draw them", len(text), work)
	}
}
