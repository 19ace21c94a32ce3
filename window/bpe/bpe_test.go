package bpe

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// corpus is testdata by file name, and the texts of a real session where the
// file with it is at hand.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %d files, %v", len(files), err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(f), ".txt")] = string(b)
	}
	if b, err := os.ReadFile("../../../shared/fixtures/real-usage/large-session.jsonl"); err == nil {
		texts["session"] = string(b)
		var all []string
		for line := range strings.Lines(string(b)) {
			var v any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			all = appendStrings(all, v)
		}
		texts["session texts"] = strings.Join(all, "")
	}
	return texts
}

func appendStrings(all []string, v any) []string {
	switch v := v.(type) {
	case string:
		all = append(all, v)
	case []any:
		for _, e := range v {
			all = appendStrings(all, e)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = appendStrings(all, v[k])
		}
	}
	return all
}

func TestCorpus(t *testing.T) {
	for name, text := range corpus(t) {
		for _, o := range oracles() {
			t.Run(name+"/"+o.encoding.String(), func(t *testing.T) {
				want := o.tokens(t, text)
				// cmp takes seconds for a hundred thousand tokens.
				if got := o.encoding.Tokens(text); !slices.Equal(want, got) {
					t.Errorf("Tokens (-want +got):\n%s", cmp.Diff(want, got))
				}
				if got := o.encoding.Count(text); got != len(want) {
					t.Errorf("Count: got %d, want %d", got, len(want))
				}
			})
		}
	}
}

// partedLines finds the space in which the library goes wrong, see oracle.
var partedLines = regexp.MustCompile(`[\r\n]([\t\v\f \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+[\r\n]+)+`)

func TestLibrary(t *testing.T) {
	for name, text := range corpus(t) {
		text = partedLines.ReplaceAllString(text, "\n")
		for _, o := range oracles() {
			want, err := o.library.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := o.encoding.Count(text); got != want {
				t.Errorf("%s, %s: got %d, want %d", name, o.encoding, got, want)
			}
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, tt := range []struct {
		text   string
		cl100k []string
		o200k  []string
	}{
		{"", nil, nil},
		{"Hello world", []string{"Hello", " world"}, []string{"Hello", " world"}},
		{"don't", []string{"don", "'t"}, []string{"don't"}},
		{"WE'RE", []string{"WE", "'RE"}, []string{"WE'RE"}},
		{"x'ſ", []string{"x", "'ſ"}, []string{"x'ſ"}},
		{"x'l", []string{"x", "'l"}, []string{"x", "'l"}},
		{"'s", []string{"'s"}, []string{"'s"}},
		{"'", []string{"'"}, []string{"'"}},
		{"camelCase", []string{"camelCase"}, []string{"camel", "Case"}},
		{"XMLHttp", []string{"XMLHttp"}, []string{"XMLHttp"}},
		{"ABʰCD", []string{"ABʰCD"}, []string{"ABʰ", "CD"}},
		{"\u0301ABC", []string{"\u0301ABC"}, []string{"\u0301", "ABC"}},
		{"A\u0301b", []string{"A", "\u0301b"}, []string{"A\u0301b"}},
		{"1234567", []string{"123", "456", "7"}, []string{"123", "456", "7"}},
		{"a  b", []string{"a", " ", " b"}, []string{"a", " ", " b"}},
		{"a  1", []string{"a", " ", " ", "1"}, []string{"a", " ", " ", "1"}},
		{"a  ", []string{"a", "  "}, []string{"a", "  "}},
		{"a\n  \n\t b", []string{"a", "\n  \n", "\t", " b"}, []string{"a", "\n  \n", "\t", " b"}},
		{"a \n  ", []string{"a", " \n", "  "}, []string{"a", " \n", "  "}},
		{"();\n\n/x", []string{"();\n\n", "/x"}, []string{"();\n\n/", "x"}},
		{"  !?", []string{" ", " !?"}, []string{" ", " !?"}},
		{"\u3000中", []string{"\u3000中"}, []string{"\u3000中"}},
		{"中文，好", []string{"中文", "，好"}, []string{"中文", "，好"}},
	} {
		for i, want := range [][]string{tt.cl100k, tt.o200k} {
			o := oracles()[i]
			if got := pieces(o.encoding, tt.text); !slices.Equal(got, want) {
				t.Errorf("%s %q: got pieces %q, want %q", o.encoding, tt.text, got, want)
			}
			if got := o.pieces(t, tt.text); !slices.Equal(got, want) {
				t.Errorf("%s %q: the pattern's pieces are %q, want %q", o.encoding, tt.text, got, want)
			}
		}
	}

	// From the ranks as published.
	if got, want := CL100K().Tokens("hello world"), []uint32{15339, 1917}; !slices.Equal(got, want) {
		t.Errorf("cl100k_base: got %d, want %d", got, want)
	}
	if got, want := O200K().Tokens("hello world"), []uint32{24912, 2375}; !slices.Equal(got, want) {
		t.Errorf("o200k_base: got %d, want %d", got, want)
	}
}

func pieces(e *Encoding, text string) []string {
	var pieces []string
	for i := 0; i < len(text); {
		end := e.split(text, i)
		pieces = append(pieces, text[i:end])
		i = end
	}
	return pieces
}

// awkward runes: one or more of every class, and what the patterns name.
var awkward = []rune("aeslrvdtmLSRVEMTDxyzABC0129 \t\n\r\n\v'''/.!-_{(\u00a0\u0085\u3000\u2028ſKßİıǅʰªéñ\u0301\u0308\u200d\ufe0f中文日本한국ेकाสวัс١٢Ⅷ½²😀👩🏽\ufffd\U00020000\U0010ffff")

// text draws short texts and, since rapid prefers short ones, texts that are long
// by force.
func text(t *rapid.T) string {
	every := rapid.SampledFrom(awkward)
	return rapid.OneOf(
		rapid.StringOf(every),
		rapid.String(),
		rapid.StringOfN(every, 40, 100, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("ab \n")), 40, 200, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune(" \t\n\r\u00a0x")), 20, 60, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("etaoinshrdlu")), 40, 200, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("ETaoInShR'sʰ\u0301")), 40, 100, -1),
		rapid.StringOfN(rapid.SampledFrom([]rune("的是不了人我在有他这为之大来以个中上们")), 40, 100, -1),
	).Draw(t, "text")
}

func TestRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := text(t)
		for _, o := range oracles() {
			if got, want := pieces(o.encoding, text), o.pieces(t, text); !slices.Equal(got, want) {
				t.Fatalf("%s: got pieces %q, want %q", o.encoding, got, want)
			}
			got, want := o.encoding.Tokens(text), o.tokens(t, text)
			if !slices.Equal(got, want) {
				t.Fatalf("%s: got %d, want %d", o.encoding, got, want)
			}
			if n := o.encoding.Count(text); n != len(want) {
				t.Fatalf("%s: got %d tokens, want %d", o.encoding, n, len(want))
			}
		}
	})
}

// FuzzCount is best run with -fuzzminimizetime 10x: the engine takes the oracle's
// maps for new coverage and would minimise for minutes.
func FuzzCount(f *testing.F) {
	oracles() // before the clock of an execution starts
	for _, text := range corpus(f) {
		f.Add(valid(text[:min(len(text), 200)]))
	}
	f.Add("\xff\xfea\x80\xe4\xbd")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			t.Skip("the oracle takes quadratic time")
		}
		for _, o := range oracles() {
			want := o.tokens(t, string([]rune(text)))
			if got := o.encoding.Tokens(text); !slices.Equal(got, want) {
				t.Errorf("%s: got %d, want %d", o.encoding, got, want)
			}
			if got := o.encoding.Count(text); got != len(want) {
				t.Errorf("%s: got %d tokens, want %d", o.encoding, got, len(want))
			}
		}
	})
}

// long makes texts of about n bytes that are one piece each, or nearly.
func long(n int) map[string]string {
	random := make([]byte, n*3/4)
	x := uint64(1)
	for i := range random {
		x = x*6364136223846793005 + 1442695040888963407
		random[i] = byte(x >> 56)
	}
	fill := func(s string) string { return strings.Repeat(s, n/len(s)+1) }
	return map[string]string{
		"a":      fill("a"),
		"ab":     fill("ab"),
		"space":  fill(" "),
		"lines":  fill("\n"),
		"signs":  fill("=-"),
		"base64": base64.StdEncoding.EncodeToString(random),
		"hex":    fill("deadbeefcafe"),
		"family": fill("👩‍👩‍👧‍👦"),
		"han":    fill("我们在讨论如何把一个很长的会话保持在模型的窗口之内"),
		"thai":   fill("ภาษาไทยไม่มีช่องว่างระหว่างคำ"),
		"marks":  fill("\u0301"),
	}
}

// The library is the judge here: it merges long pieces with a heap.
func TestLongPieces(t *testing.T) {
	for name, text := range long(1 << 17) {
		for _, o := range oracles() {
			want, err := o.library.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := o.encoding.Count(text); got != want {
				t.Errorf("%s, %s: got %d, want %d", name, o.encoding, got, want)
			}
		}
	}
}

func TestVocabulary(t *testing.T) {
	for _, o := range oracles() {
		v := &o.encoding.vocabulary
		if got, want := len(v.lengths), len(o.ranks); got != want {
			t.Fatalf("%s: got %d tokens, want %d", o.encoding, got, want)
		}
		text := make([]string, len(o.ranks))
		for s, rank := range o.ranks {
			text[rank] = s
		}
		for rank, s := range text {
			token, n := v.longest(s)
			if token != uint32(rank) || n != len(s) || int(v.lengths[token]) != n {
				t.Fatalf("%s %q: got token %d of length %d, want %d", o.encoding, s, token, n, rank)
			}
			if rank < bytesEnd {
				continue
			}
			a, b := v.halves[rank][0], v.halves[rank][1]
			if text[a]+text[b] != s || a >= token || b >= token || v.pair(a, b) != token {
				t.Fatalf("%s %q: halves %q and %q merge to %d, want %d", o.encoding, s, text[a], text[b], v.pair(a, b), rank)
			}
			if p := v.shorter[rank]; p == none || !strings.HasPrefix(s, text[p]) || len(text[p]) >= n {
				t.Fatalf("%s %q: the shorter token is %d", o.encoding, s, p)
			}
		}
	}
}

// What a vocabulary costs is part of what an idle program costs.
func TestSize(t *testing.T) {
	if got := len(cl100kData) + len(o200kData); got > 2<<20 {
		t.Errorf("embedded: %d bytes", got)
	}
	for _, e := range []*Encoding{CL100K(), O200K()} {
		got := 8*cap(e.nodes) + cap(e.labels) + 4*cap(e.second) + cap(e.lengths) + 4*cap(e.shorter) + 8*cap(e.halves) + 4*cap(e.pairs)
		t.Logf("%s: %.1f MB", e, float64(got)/1e6)
		if got > 10e6 {
			t.Errorf("%s: %d bytes", e, got)
		}
	}
}

func TestInvalid(t *testing.T) {
	for _, text := range []string{"\xff", "a\xffb", "a\xff\xfe\xfdb", "\xe4\xbd", "你\xe5\xa5 好\xf0\x9f\x98", "\xed\xa0\x80", strings.Repeat("\x80", 100)} {
		var asJSON string
		b, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &asJSON); err != nil {
			t.Fatal(err)
		}
		for _, o := range oracles() {
			if got, want := o.encoding.Tokens(text), o.tokens(t, asJSON); !slices.Equal(got, want) {
				t.Errorf("%s %q: got %d, want %d", o.encoding, text, got, want)
			}
			if got, want := o.encoding.Count(text), len(o.tokens(t, asJSON)); got != want {
				t.Errorf("%s %q: got %d tokens, want %d", o.encoding, text, got, want)
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	for _, tt := range []struct {
		text string
		n    int
		want string
	}{
		{"hello world", -1, ""},
		{"hello world", 0, ""},
		{"hello world", 1, "hello"},
		{"hello world", 2, "hello world"},
		{"hello world", 9, "hello world"},
		{"", 3, ""},
		{"a\n\n\n  b", 2, "a\n\n\n"},
		{"龘", 1, ""}, // three tokens, none of them a rune
		{"龘", 3, "龘"},
		{"x龘", 2, "x"},
		{"\u17d2\u1780", 1, ""}, // the first token ends within the second rune, and the first rune alone is two
		{"x\xff\xffy", 2, "x\xff\xff"},
	} {
		if got := CL100K().Prefix(tt.text, tt.n); got != tt.want {
			t.Errorf("Prefix(%q, %d): got %q, want %q", tt.text, tt.n, got, tt.want)
		}
	}
}

// Prefix is the longest prefix of whole runes, no longer than the first n
// tokens, that has no more than n tokens by itself.
func TestPrefixRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := text(t)
		n := rapid.IntRange(0, 40).Draw(t, "n")
		for _, e := range []*Encoding{CL100K(), O200K()} {
			end := 0
			tokens := e.Tokens(text)
			for _, token := range tokens[:min(n, len(tokens))] {
				end += int(e.lengths[token])
			}
			for end > 0 && (end < len(text) && !utf8.RuneStart(text[end]) || e.Count(text[:end]) > n) {
				end--
			}
			if got, want := e.Prefix(text, n), text[:end]; got != want {
				t.Fatalf("%s: got %q, want %q", e, got, want)
			}
		}
	})
}

func TestConcurrent(t *testing.T) {
	text, err := os.ReadFile("testdata/mixed.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := len(oracles()[1].tokens(t, string(text)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := O200K().Count(string(text)); got != want {
					t.Errorf("got %d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}
