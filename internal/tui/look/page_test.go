package look

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"goclaw/internal/terminal"
)

var pieces = []string{
	"a", "word ", "\n", "\n\n", "\t", "\r\n", "日本", "é", "e\u0301", "👩‍👧", "\x1b[2J", "\x1b]0;evil\a", "\x00", "\u202e", "\xff\xfe", "\u0301", "x\u0301\u0301\u0301", strings.Repeat("long", 30),
}

// Whatever the text: the rows from the first to the last have every byte once,
// none is wider than the screen, going up leads back the same way, and nothing
// controls the terminal.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 60).Draw(t, "text"), "")
		text = strings.Repeat(text, rapid.SampledFrom([]int{1, 1, 1, 1, 20}).Draw(t, "times"))
		p := newPage(text, false)
		p.width = rapid.IntRange(1, 90).Draw(t, "width")
		all := p.rows(0, 1<<20, nil)
		at := 0
		for i, r := range all {
			if r.from != at || r.next <= r.from {
				t.Fatalf("row %d is %d to %d, after %d", i, r.from, r.next, at)
			}
			if w := ansi.StringWidth(r.text); w > p.width {
				t.Fatalf("row %d, %q, has %d of %d columns", i, r.text, w, p.width)
			}
			if strings.ContainsFunc(r.text, terminal.Hidden) || strings.ContainsAny(r.text, "\n\t") {
				t.Fatalf("row %d is %q", i, r.text)
			}
			if i > 0 && p.up(r.from, 1) != all[i-1].from {
				t.Fatalf("above row %d, at %d, is %d, want %d", i, r.from, p.up(r.from, 1), all[i-1].from)
			}
			at = r.next
		}
		if at != len(p.text)+1 {
			t.Fatalf("the rows end at %d of %d", at, len(p.text))
		}
		i := rapid.IntRange(0, len(all)-1).Draw(t, "row")
		if got := p.down(0, i); got != all[i].from {
			t.Errorf("%d rows down is %d, want %d", i, got, all[i].from)
		}
		byte := rapid.IntRange(0, len(p.text)).Draw(t, "byte")
		if from := p.at(byte); p.rows(from, 1, nil)[0].next <= byte || from > byte {
			t.Errorf("byte %d is not in the row at %d", byte, from)
		}
		if got, want := p.lineOf(byte), strings.Count(p.text[:byte], "\n")+1; got != want {
			t.Errorf("byte %d is in line %d, want %d", byte, got, want)
		}
		if got, want := p.lineStart(byte), strings.LastIndexByte(p.text[:byte], '\n')+1; got != want {
			t.Errorf("the line of byte %d begins at %d, want %d", byte, got, want)
		}
	})
}

func TestFind(t *testing.T) {
	long := strings.Repeat("x", block-2) + "Needle" + strings.Repeat("y", 2*block) + "needle"
	for _, c := range []struct {
		text, query string
		want, last  int
	}{
		{"one two one", "one", 0, 8},
		{"One TWO", "two", 4, 4},
		{"One two", "Two", -1, -1},
		{"Two two", "Two", 0, 0},
		{"", "x", -1, -1},
		{"abc", "", -1, -1},
		{long, "needle", block - 2, len(long) - 6},
		{long, "Needle", block - 2, block - 2},
	} {
		if got := find(c.text, c.query, 0); got != c.want {
			t.Errorf("%.20q: the first %q is at %d, want %d", c.text, c.query, got, c.want)
		}
		if got := findBack(c.text, c.query, len(c.text)); got != c.last {
			t.Errorf("%.20q: the last %q is at %d, want %d", c.text, c.query, got, c.last)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abA\n")), 0, 80, -1).Draw(t, "text")
		query := rapid.StringOfN(rapid.SampledFrom([]rune("ab")), 1, 3, -1).Draw(t, "query")
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		want := strings.Index(strings.ToLower(text[from:]), query)
		if want >= 0 {
			want += from
		}
		if got := find(text, query, from); got != want {
			t.Errorf("find %q in %q from %d: %d, want %d", query, text, from, got, want)
		}
		end := min(from+len(query)-1, len(text))
		if got, want := findBack(text, query, from), strings.LastIndex(strings.ToLower(text[:end]), query); got != want {
			t.Errorf("find %q in %q before %d: %d, want %d", query, text, from, got, want)
		}
	})
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func FuzzView(f *testing.F) {
	for _, p := range pieces {
		f.Add(p, p, 40)
	}
	f.Fuzz(func(t *testing.T, title, text string, width int) {
		width = min(max(width, 1), 200)
		v := New(st, 2, 0, func(int) Doc { return Doc{Title: title, Text: text, Diff: true} })
		for _, k := range []string{"G", "up", "n", "pgup", "/"} {
			press(v, k)
			lines := strings.Split(v.View(width, 10), "\n")
			if len(lines) > 10 {
				t.Fatalf("%d lines", len(lines))
			}
			for _, line := range lines {
				if bare := sgr.ReplaceAllString(line, ""); ansi.StringWidth(bare) > width || strings.ContainsFunc(bare, func(r rune) bool { return terminal.Hidden(r) || unicode.IsControl(r) }) {
					t.Fatalf("%q", line)
				}
			}
		}
	})
}

// With 100 MB it takes as long a key, but the race detector makes the search slow.
func TestHugeTexts(t *testing.T) {
	lines := strings.Repeat("a line of some thirty characters\n", 20<<20/33)
	one := strings.Repeat("word 日本 ", 10<<20/12)
	wide := strings.Repeat("x\u0301", 2<<20)
	for name, text := range map[string]string{"many lines": lines, "one line": one, "marks": wide, "one long line": strings.ReplaceAll(lines, "\n", " ")} {
		t.Run(name, func(t *testing.T) {
			v := New(st, 1, 0, func(int) Doc { return Doc{Text: text} })
			for _, k := range []string{"G", "pgup", "up", "up", "ctrl+u", "down", "g", "pgdown", "G"} {
				press(v, k)
				v.View(80, 24)
			}
			v.View(40, 20)
			if from, to := v.top, len(text); to-from > 200*24 {
				t.Errorf("the last page begins %d bytes before the end", to-from)
			}
			search(v, "nowhere")
			if v.said != "not found" {
				t.Error(v.said)
			}
		})
	}
}

// Painted text keeps its styles across rows, and is measured without them.
func TestPainted(t *testing.T) {
	v := New(st, 1, 0, func(int) Doc {
		return Doc{Text: fmt.Sprintf("%s and %s\nplain", st.Green("green"), st.Bold("bold")), Painted: true}
	})
	got := strings.Split(v.View(12, 6), "\n")
	want := []string{"", "\x1b[32mgreen\x1b[0m and \x1b[1mbo\x1b[m", "ld\x1b[0m", "plain", ""}
	for i, w := range want {
		if got[i] != w {
			t.Errorf("line %d is %q, want %q", i, got[i], w)
		}
	}
}
