package markdown

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shown renders text, its styles written as <1> ... <>.
func shown(text string, st Style, width int) string {
	return sgr.ReplaceAllStringFunc(Render(text, st, width), func(s string) string {
		return "<" + s[2:len(s)-1] + ">"
	})
}

func TestElements(t *testing.T) {
	const rule = "────────────────────────"
	for name, c := range map[string]struct{ text, want string }{
		"plain":                  {"hello world", "hello world\n"},
		"nothing":                {" \n\n", ""},
		"bold":                   {"a **b c** d", "a <1>b c<> d\n"},
		"italic":                 {"a *b* _c_ d", "a <3>b c<> d\n"},
		"both":                   {"***x***", "<1;3>x<>\n"},
		"nested":                 {"**a *b* c**", "<1>a <3>b<0;1> c<>\n"},
		"struck":                 {"~~a~~ ~5", "<9>a<> ~5\n"},
		"code":                   {"run `go *test*` now", "run <36>go *test*<> now\n"},
		"code with backquotes":   {"a `` b`c `` d", "a <36>b`c<> d\n"},
		"not closed":             {"a **b and `c", "a **b and `c\n"},
		"product":                {"2 * 3 * 4", "2 * 3 * 4\n"},
		"snake_case_names":       {"a_b_c and x", "a_b_c and x\n"},
		"pointer":                {"char *p, **q;", "char *p, **q;\n"},
		"escaped":                {`\*a\* \n \&lt;`, "*a* \\n &lt;\n"},
		"entities":               {"a &amp; b &#65; &copy; &nothing; &", "a & b A © &nothing; &\n"},
		"escape as an entity":    {"a &#27;[31m &#x202e;b `\x1b[2J`", "a \uFFFD[31m \uFFFDb <36>\uFFFD[2J<>\n"},
		"link":                   {"see [the *docs*](https://x.y/z_a_b).", "see <4>the <3>docs<0;2> (https://x.y/z_a_b)<>.\n"},
		"link as text":           {"[https://x](https://x) <https://y.z>", "<4>https://x<> <4>https://y.z<>\n"},
		"bare address":           {"at https://x.y/z.", "at <4>https://x.y/z<>.\n"},
		"link with an escape":    {"[a](http://x&#27;]0;b)", "<4>a<0;2> (http://x\uFFFD]0;b)<>\n"},
		"reference":              {"[a][r]\n\n[r]: http://x.y", "[a][r]\n\n[r]: <4>http://x.y<>\n"},
		"image":                  {"![a *b*](http://x/y.png) ![](data:abc)", "[image: a b]<2> (http://x/y.png)<> [image]\n"},
		"brackets":               {"a[0] [x] [y](not a link)", "a[0] [x] [y](not a link)\n"},
		"html":                   {"a <b>c</b><br>d\n\n<div>\n&amp;</div>", "a <b>c</b>\nd\n\n<div>\n&amp;</div>\n"},
		"headings":               {"# One\n## Two *x*\n### Three\n#hash", "<1;4>One<>\n\n<1>Two <3>x<>\n\n<1;3>Three<>\n#hash\n"},
		"heading by underlining": {"One\n===\nTwo\n---\nx", "<1;4>One<>\n\n<1>Two<>\nx\n"},
		"list":                   {"- a\n- b\n  + **c**\n\n1. d\n-e", "• a\n• b\n  • <1>c<>\n\n1. d\n   -e\n"},
		"numbers":                {"3. a\n3. b\n3. c", "3. a\n4. b\n5. c\n"},
		"loose list":             {"- a\n\n  b\n\n- c\n- d", "• a\n\n  b\n\n• c\n• d\n"},
		"tasks":                  {"- [ ] a\n- [x] b\n1. [X] c", "[ ] a\n[x] b\n1. [x] c\n"},
		"empty items":            {"-\n- a\n-", "•\n• a\n•\n"},
		"quotation":              {"> a *b*\n>c\n> > d", "<2>│ <>a <3>b<>\n<2>│ <>c\n<2>│ │ <>d\n"},
		"rule":                   {"a\n\n---\nb\n***", "a\n\n<2>" + rule + "<>\nb\n<2>" + rule + "<>\n"},
		"fence":                  {"x\n```nolang\n# a **b**\n\n  - c\n```\n**d**", "x\n<2>── nolang<>\n# a **b**\n\n  - c\n<2>──<>\n<1>d<>\n"},
		"fence not closed":       {"```\na", "<2>──<>\na\n<2>──<>\n"},
		"longer fence":           {"````\n```\n````\nx", "<2>──<>\n```\n<2>──<>\nx\n"},
		"indented fence":         {"  ~~~\n  a\n    b\n c\n  ~~~~", "<2>──<>\na\n  b\nc\n<2>──<>\n"},
		"fence in a list":        {"- a\n  ```\n  b\n  ```\n- c", "• a\n  <2>──<>\n  b\n  <2>──<>\n• c\n"},
		"code that is no fence":  {"```a``` b", "<36>a<> b\n"},
		"indented code":          {"a\n\n    b **c**\n\tt", "a\n\n    b **c**\n    t\n"},
		"tabs in code":           {"```\na\tb\n中\tc\n```", "<2>──<>\na   b\n中  c\n<2>──<>\n"},
		"empty lines":            {"\n\na\n\n\nb\n\n", "a\n\nb\n"},
		"lines":                  {"a\nb  \nc\\\nd", "a\nb\nc\nd\n"},
		"carriage returns":       {"a\r\n\r\nb\r\n", "a\n\nb\n"},
		"table":                  {"| a | **b** |\n|---|--:|\n| `c` | d |\n\nx", "<1>a<0;2> │ <0;1>b<>\n<2>──┼──<>\n<36>c<0;2> │ <>d\n\nx\n"},
		"table after text":       {"x\n|a|b|\n|-|-|\n|c|", "x\n\n<1>a<0;2> │ <0;1>b<>\n<2>──┼──<>\nc<2> │<>\n"},
		"no table":               {"| a | b |\n| c |", "| a | b |\n| c |\n"},
		"wide":                   {"**ä中** `é`", "<1>ä中 <0;36>é<>\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, shown(c.text, Style{Colour: true}, 80)); d != "" {
				t.Errorf("%q (-want +got):\n%s", c.text, d)
			}
		})
	}
}

// Everything fits a narrow terminal: prose is broken between words, cells within
// their column, code after a mark.
func TestNarrow(t *testing.T) {
	const text = "Some **bold words** in a line.\n- an item that goes on\n  1. and on and on\n\n> quoted words here and there\n\n" +
		"```\ncode that is longer than the line\n```\n| a | b |\n|---|--:|\n| x y z w v u t s r q p | 1 |\n\n" +
		"東京の天気は、とても良いですね。\n\nMissbräuchlicherweiseundsoweiter e\u0301e\u0301e\u0301 👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧"
	const want = "Some bold words in a\nline.\n• an item that goes\n  on\n  1. and on and on\n\n│ quoted words here\n│ and there\n\n" +
		"──\ncode that is longer↵\n than the line\n──\na                │ b\n─────────────────┼──\nx y z w v u t s  │ 1\nr q p            │\n\n" +
		"東京の天気は、とても\n良いですね。\n\nMissbräuchlicherweis\neundsoweiter e\u0301e\u0301e\u0301 👩‍👧\n👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧👩‍👧\n"
	if d := cmp.Diff(want, unstyled(Render(text, Style{Colour: true}, 20))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTables(t *testing.T) {
	const sizes = "| Name | Size | State |\n|:--|--:|:-:|\n| a | 12 | ok |\n| long name | 3 | broken |"
	for name, c := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"aligned": {sizes, 80, "Name      │ Size │ State\n──────────┼──────┼───────\na         │   12 │   ok\nlong name │    3 │ broken\n"},
		"narrow": {"| What | Why |\n|---|---|\n| one two three | four five six |", 20,
			"What     │ Why\n─────────┼──────────\none two  │ four five\nthree    │ six\n"},
		"a long word": {"| a | b |\n|---|---|\n| abcdefghijklmnop | x |", 12, "a        │ b\n─────────┼──\nabcdefgh │ x\nijklmnop │\n"},
		"too many columns": {"| one | two | three | four |\n|---|---|---|---|\n| 12345 | 67890 | abcdef | ghijkl |\n| x | | y | z |", 20,
			"one: 12345\ntwo: 67890\nthree: abcdef\nfour: ghijkl\n\none: x\nthree: y\nfour: z\n"},
		"escaped bar":  {"| a |\n|---|\n| x \\| y |", 80, "a\n─────\nx | y\n"},
		"ragged":       {"| a | b |\n|---|---|\n| 1 |\n| 1 | 2 |", 80, "a │ b\n──┼──\n1 │\n1 │ 2\n"},
		"wide letters": {"| 天気 | x |\n|---|---|\n| 東京 | 晴れ |", 80, "天気 │ x\n─────┼─────\n東京 │ 晴れ\n"},
		"line break":   {"| a |\n|---|\n| x<br>yz |", 80, "a\n──\nx\nyz\n"},
		"no rule":      {"| a | b |\n| c | d |", 80, "| a | b |\n| c | d |\n"},
		"other rule":   {"| a | b |\n|---|", 80, "| a | b |\n|---|\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.want, unstyled(Render(c.text, Style{Colour: true}, c.width))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
	for width := 20; width < 60; width++ {
		check(t, Render(sizes, Style{Colour: true}, width), width)
	}
}

// A cell's colour does not run into its neighbours when it is wrapped.
func TestCellsKeepTheirColour(t *testing.T) {
	got := shown("| a | b |\n|---|---|\n| `one two three` | x |", Style{Colour: true}, 13)
	if want := "<1>a        <0;2> │ <0;1>b<>\n<2>──────────┼──<>\n<36>one two  <0;2> │ <>x\n<36>three    <0;2> │<>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Lists and quotes in each other leave room for text.
func TestNested(t *testing.T) {
	var text strings.Builder
	for i := range 12 {
		text.WriteString(strings.Repeat("  ", i) + "- words in level\n")
	}
	out := Render(text.String()+"\n"+strings.Repeat("> ", 30)+"quoted so deep that there is no room\n", Style{}, 20)
	check(t, out, 20)
	if n := strings.Count(out, "words"); n != 12 || !strings.Contains(out, "quoted so") {
		t.Errorf("%d of 12 items are shown:\n%s", n, out)
	}
}

func TestWithoutColour(t *testing.T) {
	got := shown("# a\n`b` **c**\n```go\nfunc f() {}\n```", Style{}, 40)
	if want := "<1;4>a<>\n`b` <1>c<>\n<2>── go<>\nfunc f() {}\n<2>──<>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDim(t *testing.T) {
	got := shown("a **b**", Style{Colour: true, Dim: true}, 40)
	if want := "<2>a <1>b<>\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A paragraph is alive while it arrives, and given out as soon as it is over; so
// are the items of a list and the lines of code.
func TestTakeAndLive(t *testing.T) {
	s := New(Style{}, func() int { return 20 })
	for i, step := range []struct{ in, taken, live string }{
		{"Hel", "", "Hel"},
		{"lo **wor", "", "Hello **wor"},
		{"ld**, and so on", "", "Hello world, and so\non"},
		{"\n", "", "Hello world, and so\non"},
		{"\n", "Hello world, and so\non\n", ""},
		{"\nNext", "", "\nNext"},
		{"\n- a\n- b", "\nNext\n", "• a\n• b"},
		{"\n", "• a\n", "• b"},
		{"lazy text\n", "", "• b\n  lazy text"},
		{"\nT", "• b\n  lazy text\n", "\nT"},
		{"ext\n```go\n", "\nText\n── go\n", ""},
		{"x := 1\ny", "x := 1\n", "y"},
		{" := 2", "", "y := 2"},
		{"\n```\n", "y := 2\n──\n", ""},
		{"| a | b |\n|--", "", "| a | b |\n|--"},
		{"|--|\n| c | d |\n", "", "a │ b\n──┼──\nc │ d"},
		{"\n", "a │ b\n──┼──\nc │ d\n", ""},
		{"# Head", "", "\nHead"},
		{"ing\n", "\nHeading\n", ""},
	} {
		s.Write(step.in)
		if got := unstyled(s.Take()); got != step.taken {
			t.Errorf("step %d: after %q, %q is given out, want %q", i, step.in, got, step.taken)
		}
		if got := unstyled(s.Live(20)); got != step.live {
			t.Errorf("step %d: after %q, %q is alive, want %q", i, step.in, got, step.live)
		}
	}
	if rest := s.Close(); rest != "" || s.Live(20) != "" {
		t.Errorf("at the end %q is given out, and %q is alive", rest, s.Live(20))
	}
}

// After a resize, what is alive has the new width, and so has what is given out
// from then on.
func TestResize(t *testing.T) {
	width := 40
	s := New(Style{}, func() int { return width })
	s.Write("some words in a paragraph that is\n\nmore words in another one of them")
	if got, want := s.Take(), "some words in a paragraph that is\n"; got != want {
		t.Errorf("%q is given out, want %q", got, want)
	}
	width = 20
	if got, want := s.Live(20), "\nmore words in\nanother one of them"; got != want {
		t.Errorf("%q is alive, want %q", got, want)
	}
	if got, want := s.Close(), "\nmore words in\nanother one of them\n"; got != want {
		t.Errorf("%q is given out, want %q", got, want)
	}
}

// Real answers, and our own documents, fit their terminals and are shown whole.
func TestRealAnswers(t *testing.T) {
	const root = "../.."
	var texts []string
	docs, _ := filepath.Glob(root + "/docs/*.md")
	guides, _ := filepath.Glob(root + "/docs/*/*.md")
	for _, path := range append(docs, guides...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b[:min(len(b), 1<<11)]))
	}
	if len(texts) < 10 {
		t.Fatalf("there are only %d of our documents", len(texts))
	}
	_ = filepath.WalkDir(root+"/../shared/fixtures", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".jsonl" {
			return nil
		}
		b, _ := os.ReadFile(path)
		for line := range strings.Lines(string(b[:min(len(b), 1<<16)])) {
			var record any
			if json.Unmarshal([]byte(line), &record) == nil {
				texts = append(texts, saidIn(record)...)
			}
		}
		return nil
	})
	seen := map[string]bool{}
	for _, text := range texts {
		if seen[text] || len(seen) > 400 {
			continue
		}
		seen[text] = true
		for _, width := range []int{40, 80} {
			out := Render(text, Style{Colour: true}, width)
			check(t, out, width)
			var pieces []string
			for rest := text; rest != ""; rest = rest[min(4, len(rest)):] {
				pieces = append(pieces, rest[:min(4, len(rest))])
			}
			got, work := stream(pieces, width, false)
			if got != out {
				t.Fatalf("%q\n(-at once +in pieces):\n%s", text, cmp.Diff(out, got))
			}
			if most := 20*len(text) + 1000; work > most {
				t.Errorf("of %d bytes %d were parsed, more than %d", len(text), work, most)
			}
		}
	}
}

// saidIn returns what an assistant says in a record of any program.
func saidIn(v any) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		if text, ok := v["text"].(string); ok && len(text) > 20 && len(text) < 1<<14 {
			out = append(out, text)
		}
		for _, x := range v {
			out = append(out, saidIn(x)...)
		}
	case []any:
		for _, x := range v {
			out = append(out, saidIn(x)...)
		}
	}
	return out
}
