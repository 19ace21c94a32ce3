package fuzzy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"goclaw/internal/tui/fuzzy"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		query, text, want string // want: the text with the letters found in brackets; "": no match
	}{
		{"", "anything", "anything"},
		{"pick", "internal/tui/pick.go", "internal/tui/[pick].go"},
		{"pick tui", "internal/tui/pick.go", "internal/[tui]/[pick].go"},
		{"tui pick zebra", "internal/tui/pick.go", ""},
		{"itp", "internal/tui/pick.go", "[i]nternal/[t]ui/[p]ick.go"},
		{"gclw", "goclaw", "[g]o[cl]a[w]"},
		{"fb", "fooBar baz", "[f]oo[B]ar baz"},
		{"GO", "a goclaw", "a [go]claw"},
		{"law", "claws of law", "claws of [law]"}, // a word's beginning goes first
		{"uber", "Über Züge", "[Über] Züge"},
		{"zuge", "Über Züge", "Über [Züge]"},
		{"ñu", "el nu", "el [nu]"},
		{"会议", "下午的会议记录", "下午的[会议]记录"},
		{"cnvrstn", "a conversation", "a [c]o[nv]e[rs]a[t]io[n]"},
		{"lisbon", "no list can show in one line because it goes on", ""},
		{"aeiou", "a very long text, in which every one of those happens somewhere, but never close to each other; you see", ""},
	} {
		_, at, ok := fuzzy.Match(c.query, c.text)
		got := ""
		if ok {
			got = marked(c.text, at)
		}
		if got != c.want {
			t.Errorf("Match(%q, %q) = %q, want %q", c.query, c.text, got, c.want)
		}
	}
}

func marked(text string, at []int) string {
	var b strings.Builder
	for i, r := range text {
		if slices.Contains(at, i) {
			b.WriteString("[" + string(r) + "]")
		} else {
			b.WriteRune(r)
		}
	}
	return strings.ReplaceAll(b.String(), "][", "")
}

func TestBetterFirst(t *testing.T) {
	for _, c := range []struct{ query, better, worse string }{
		{"pick", "the picker", "epicke"},
		{"pick", "picker", "p-i-c-k"},
		{"tp", "tui/pick", "stopped"},
		{"main", "main.go", "domain.go"},
	} {
		a, _, _ := fuzzy.Match(c.query, c.better)
		b, _, _ := fuzzy.Match(c.query, c.worse)
		if a <= b {
			t.Errorf("%q: %q has %d, %q has %d", c.query, c.better, a, c.worse, b)
		}
	}
}

// Whatever is typed, the letters found are in the text, each once and in order,
// and a part of a text always finds it.
func TestPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab cdÄé/_X漢\u0301\U0001F600")), 0, 40, -1).Draw(t, "text")
		query := rapid.StringOfN(rapid.RuneFrom([]rune("abcdäéx漢 ")), 0, 6, -1).Draw(t, "query")
		_, at, _ := fuzzy.Match(query, text)
		for i, p := range at {
			if i > 0 && at[i-1] >= p || !utf8.RuneStart(text[p]) {
				t.Fatalf("Match(%q, %q): positions %v", query, text, at)
			}
		}
		if words := strings.Fields(text); len(words) > 0 {
			w := rapid.SampledFrom(words).Draw(t, "word")
			if _, _, ok := fuzzy.Match(w, text); !ok {
				t.Fatalf("%q does not find %q", w, text)
			}
		}
	})
}

// BenchmarkKey is one key press in a list of 10,000.
func BenchmarkKey(b *testing.B) {
	var texts []fuzzy.Text
	for i := range 10_000 {
		texts = append(texts, fuzzy.Fold(fmt.Sprintf("Fix the flaky test of the importer, case %d main:cli:20261116-%06d /home/user/projects/some-service-%d/internal", i, i, i%97)))
	}
	for _, query := range []string{"e", "flaky 123", "sshmt", "zzz"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				p := fuzzy.New(query)
				for _, t := range texts {
					p.Score(t)
				}
			}
		})
	}
}
