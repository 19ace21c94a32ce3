package markdown

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func init() { patience, enough = time.Hour, time.Hour }

// painted highlights lines of code, their styles written as <1> ... <>.
func painted(lang string, lines ...string) (out []string) {
	h := newHighlighter(lang)
	for _, l := range lines {
		s := Style{Colour: true}.paint(h.line(l, &onDark))
		out = append(out, sgr.ReplaceAllStringFunc(s, func(s string) string { return "<" + s[2:len(s)-1] + ">" }))
	}
	return out
}

func TestHighlight(t *testing.T) {
	for _, c := range []struct {
		lang        string
		lines, want []string
	}{
		{"go", []string{"func f() { // x", "\treturn `a", "b` + \"c\" /* d", "e */", "}"},
			[]string{"<35>func <94>f<>() { <2>// x<>", "\t<35>return <32>`a<>", "<32>b` <>+ <32>\"c\" <0;2>/* d<>", "<2>e */<>", "}"}},
		{"py", []string{`def f(x):`, `    """a`, `    b"""`, `    return 1 # c`},
			[]string{"<35>def <94>f<>(x):", `    <32>"""a<>`, `<32>    b"""<>`, "    <35>return <33>1 <0;2># c<>"}},
		{"js", []string{"/* see a/b", "it's */ let x = `y", "z`"},
			[]string{"<2>/* see a/b<>", "<2>it's */ <0;35>let <>x = <32>`y<>", "<32>z`<>"}},
		{"c", []string{"/* a", "b */ int x;"}, []string{"<2>/* a<>", "<2>b */ <0;36>int <>x;"}},
		{"java", []string{`String s = """`, `  it's`, `  """;`}, []string{`String s = <32>"""<>`, `<32>  it's<>`, `<32>  """<>;`}},
		{"html", []string{"<!-- a", "b --> <a>x</a>"}, []string{"<2><!-- a<>", "<2>b --> <><<94>a<>>x</<94>a<>>"}},
		{"json", []string{`{"a": [1, true, "b"]}`}, []string{`{<94>"a"<>: [<33>1<>, <33>true<>, <32>"b"<>]}`}},
		{"diff", []string{"-a", "+b", " c"}, []string{"<31>-a<>", "<32>+b<>", " c"}},
		{"SQL", []string{"select 'a'"}, []string{"<35>select <32>'a'<>"}},
		{"nolang", []string{"func f()"}, []string{"func f()"}},
		{"", []string{"func f()"}, []string{"func f()"}},
	} {
		if got := painted(c.lang, c.lines...); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.lang, got, c.want)
		}
	}
}

// Each language that is named has its file, each file is named, and each knows
// how to end: no line of any keeps it busy, nor loses a character.
func TestLanguages(t *testing.T) {
	files := map[string]bool{}
	for _, name := range languages {
		files[name] = true
	}
	entries, err := lexerFiles.ReadDir("lexers")
	if err != nil || len(entries) != len(files) {
		t.Errorf("there are %d files for %d languages (%v)", len(entries), len(files), err)
	}
	pool := []string{"/*", "*/", "//", "#", "\"", "'", "`", "\"\"\"", "<", "</", ">", "<!--", "-->", "(", ")", "{", "}", "[", "]", "${", "$(", "\\", ":", ";", ",", ".", "=", "==", "+", "-", "--", "%", "&", "|", "!", "?", "@", "~", "^", "_", " ", "  ", "\t", "x", "foo", "if", "def", "class", "function", "end", "do", "RUN", "FROM", "select", "0", "12", "0x1f", "ä", "中", "👍", "\uFFFD", "<?php", "?>", "<script>", "</script>", "<style>", "<<EOF", "EOF", "r#\"", "b'", "f\"{", "$x", "[[", "]]", "---", "|-"}
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if lexerFor(name) == nil {
			t.Errorf("there is no lexer for %s", name)
			continue
		}
		h := newHighlighter(name)
		for range 40 {
			var line, got strings.Builder
			for range rnd.IntN(12) {
				line.WriteString(pool[rnd.IntN(len(pool))])
			}
			for _, r := range h.line(line.String(), &onDark) {
				got.WriteString(r.text)
			}
			if got.String() != line.String() {
				t.Fatalf("%s: %q became %q", name, line.String(), got.String())
			}
		}
	}
}

// Code that is written to keep a lexer busy is shown as it is, soon.
func TestHighlightGivesUp(t *testing.T) {
	forget := func() { lexers.loaded = nil }
	forget()
	patience, enough = 50*time.Millisecond, 300*time.Millisecond
	defer func() { patience, enough = time.Hour, time.Hour; forget() }()
	for _, line := range []string{strings.Repeat("(", 300), strings.Repeat("\"\\", 200), strings.Repeat("a.", 200), strings.Repeat("x ", 200) + "{", strings.Repeat("/", 400), strings.Repeat("[[", 200), strings.Repeat("a", 100_000)} {
		for _, lang := range []string{"go", "js", "python", "swift"} {
			h := newHighlighter(lang)
			h.line(line, &onDark)
		}
	}
}
