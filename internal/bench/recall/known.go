package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxGold is how many messages may hold what a known-item question asks for.
const maxGold = 3

// What known-item questions are made of.
var (
	camel    = regexp.MustCompile(`\b[A-Za-z][a-z0-9]+(?:[A-Z][a-zA-Z0-9]+)+\b`)
	option   = regexp.MustCompile(`--[a-z][a-z0-9]*(?:-[a-z0-9]+)*`)
	snake    = regexp.MustCompile(`\b[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+\b`)
	filePath = regexp.MustCompile(`[\w.@~-]*(?:/[\w.@-]*[\w@-]){2,}`)
	fileName = regexp.MustCompile(`\b[A-Za-z0-9_-]{3,}\.(?:go|md|json|jsonl|ts|tsx|js|yml|yaml|sh|toml|txt|py|rb|mod|sum)\b`)
	uuid     = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	commit   = regexp.MustCompile(`\b[0-9a-f]{9,40}\b`)
	anyLine  = regexp.MustCompile(`[^\n]+`)
	sentence = regexp.MustCompile(`[A-Z][A-Za-z][^.!?\n|]{38,110}`)
	failure  = regexp.MustCompile(`(?i)error|fail|panic|fatal|exception|denied|not found`)
	quoted   = regexp.MustCompile("\"[^\"\n]*\"|'[^'\n]*'|`[^`\n]*`")
	digits   = regexp.MustCompile(`\d+`)
	number   = regexp.MustCompile(`\b\d{2,6}\b`)
	longWord = regexp.MustCompile(`[A-Za-z]{4,}`)
)

// kind is one kind of question: which strings of the messages it is about, and
// how it asks for one.
type kind struct {
	name string
	of   *regexp.Regexp
	fits func(s string) bool
	ask  func(g *generator, s string) string
}

var kinds = []kind{
	{"identifier", camel, between(9, 40), asIs},
	{"identifier as words", camel, func(s string) bool {
		return len(s) >= 12 && len(humps(s)) >= 3 && !digits.MatchString(s) && !slices.ContainsFunc(humps(s), func(h string) bool { return len(h) < 3 })
	}, func(_ *generator, s string) string { return strings.ToLower(strings.Join(humps(s), " ")) }},
	{"identifier, beginning", camel, between(14, 40), func(g *generator, s string) string {
		if h := humps(s); g.rng.IntN(2) == 0 && len(h) > 2 {
			return s[:max(8, len(s)-len(h[len(h)-1]))]
		}
		return s[:max(8, len(s)*6/10)]
	}},
	{"identifier, typo", camel, between(9, 40), (*generator).typo},
	{"identifier in a question", camel, between(9, 40), func(g *generator, s string) string {
		return fmt.Sprintf([]string{"what did we change in %s?", "where is %s defined?", "why does %s fail?", "how does %s work?"}[g.rng.IntN(4)], s)
	}},
	{"flag", option, between(5, 60), asIs},
	{"env or snake", snake, between(7, 40), asIs},
	{"path", filePath, between(12, 90), asIs},
	{"file name", fileName, between(5, 60), asIs},
	{"error line", anyLine, func(s string) bool { return between(25, 160)(s) && failure.MatchString(s) }, asIs},
	{"error, other numbers and names", anyLine, func(s string) bool {
		return between(30, 160)(s) && failure.MatchString(s) && blank(s) != strings.Join(strings.Fields(s), " ") && len(strings.Fields(blank(s))) >= 3
	}, func(_ *generator, s string) string { return blank(s) }},
	{"sentence", sentence, prose, asIs},
	{"sentence, two typos", sentence, prose, (*generator).typos},
	{"session id, first 8", uuid, between(36, 36), first8},
	{"commit, first 8", commit, func(s string) bool { return strings.ContainsAny(s, "abcdef") && digits.MatchString(s) }, first8},
}

func asIs(_ *generator, s string) string   { return s }
func first8(_ *generator, s string) string { return s[:8] }

func between(from, to int) func(string) bool {
	return func(s string) bool { return len(s) >= from && len(s) <= to }
}

// prose reports whether s is a sentence of a language, not of code.
func prose(s string) bool { return len(strings.Fields(s)) >= 7 && !strings.ContainsAny(s, "{}();→=") }

// generator makes questions for which the answers are known: strings that few
// messages hold.
type generator struct {
	rng  *rand.Rand
	docs []document
	low  []string // their texts in lower case
	out  []query
}

// generate makes up to each questions of each kind about docs.
func generate(docs []document, seed uint64, each int) []query {
	g := &generator{rng: rand.New(rand.NewPCG(seed, 1)), docs: docs}
	for _, d := range docs {
		g.low = append(g.low, strings.ToLower(d.Text))
	}
	for _, k := range kinds {
		g.strings(k, each)
	}
	g.words("number with two words", each, (*generator).numberAndTwo)
	g.words("three key words", each, (*generator).keyWords)
	g.requests(each)
	return g.out
}

func (g *generator) add(kind, question string, gold []int) {
	q := query{QID: fmt.Sprintf("%s-%d", kind, len(g.out)), Conversation: g.docs[gold[0]].Conversation, Question: question, Category: kind, AskedAt: g.docs[len(g.docs)-1].TS}
	for _, i := range gold {
		q.Gold = append(q.Gold, g.docs[i].ID)
	}
	g.out = append(g.out, q)
}

// strings adds n questions of a kind, not more than two about one message.
func (g *generator) strings(k kind, n int) {
	in := map[string]int{} // in how many messages
	var found []string
	for _, d := range g.docs {
		for _, s := range distinct(k.of.FindAllString(d.Text, -1)) {
			if s = strings.TrimSpace(s); !k.fits(s) {
				continue
			}
			if in[s]++; in[s] == 1 {
				found = append(found, s)
			}
		}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return in[s] > maxGold })
	g.rng.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	used := map[int]int{}
	for _, s := range found {
		if n == 0 {
			return
		}
		gold := g.holders(func(i int) bool { return strings.Contains(g.docs[i].Text, s) })
		if gold == nil || used[gold[0]] == 2 {
			continue
		}
		used[gold[0]]++
		g.add(k.name, k.ask(g, s), gold)
		n--
	}
}

// holders returns the messages for which holds is true; nil if they are too
// many.
func (g *generator) holders(holds func(i int) bool) (gold []int) {
	for i := range g.docs {
		if holds(i) {
			if gold = append(gold, i); len(gold) > maxGold {
				return nil
			}
		}
	}
	return gold
}

// maxTries is how many messages are looked at for a question.
const maxTries = 500

// words adds n questions of some words of a message.
func (g *generator) words(kind string, n int, pick func(*generator, string) []string) {
	for try := 0; n > 0 && try < n*maxTries; try++ {
		ws := pick(g, g.docs[g.rng.IntN(len(g.docs))].Text)
		if ws == nil {
			continue
		}
		gold := g.holders(func(i int) bool {
			return !slices.ContainsFunc(ws, func(w string) bool { return !hasWord(g.low[i], w) })
		})
		if gold != nil {
			g.add(kind, strings.Join(ws, " "), gold)
			n--
		}
	}
}

// numberAndTwo returns a number of a text and two words near it.
func (g *generator) numberAndTwo(text string) []string {
	m := number.FindAllStringIndex(text, -1)
	if m == nil {
		return nil
	}
	at := m[g.rng.IntN(len(m))]
	ws := longWord.FindAllString(strings.ToLower(text[max(0, at[0]-60):min(len(text), at[1]+60)]), -1)
	if len(ws) < 2 {
		return nil
	}
	i := g.rng.IntN(len(ws) - 1)
	return []string{text[at[0]:at[1]], ws[i], ws[i+1]}
}

// keyWords returns three words of a text that are not far from each other.
func (g *generator) keyWords(text string) []string {
	ws := slices.DeleteFunc(distinct(longWord.FindAllString(strings.ToLower(text), -1)), func(w string) bool { return len(w) < 5 })
	if len(ws) < 6 {
		return nil
	}
	i := g.rng.IntN(max(1, len(ws)-8))
	ws = ws[i:min(len(ws), i+8)]
	g.rng.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
	return ws[:3]
}

// requests asks for what users said by its five rarest words.
func (g *generator) requests(n int) {
	df := map[string]int{}
	for _, low := range g.low {
		for _, w := range distinct(longWord.FindAllString(low, -1)) {
			df[w]++
		}
	}
	for _, i := range g.rng.Perm(len(g.docs)) {
		ws := distinct(longWord.FindAllString(g.low[i], -1))
		if g.docs[i].Speaker != "user" || len(ws) < 7 || n == 0 {
			continue
		}
		slices.SortStableFunc(ws, func(a, b string) int { return df[a] - df[b] })
		ws = ws[:5]
		g.rng.Shuffle(len(ws), func(i, j int) { ws[i], ws[j] = ws[j], ws[i] })
		g.add("user request, its rare words", strings.Join(ws, " "), []int{i})
		n--
	}
}

// typo doubles, drops or swaps a letter of s, not the first one.
func (g *generator) typo(s string) string {
	r := []rune(s)
	if len(r) < 4 {
		return s
	}
	i := 1 + g.rng.IntN(len(r)-2)
	switch g.rng.IntN(3) {
	case 0:
		return string(r[:i]) + string(r[i]) + string(r[i:])
	case 1:
		return string(r[:i]) + string(r[i+1:])
	}
	for j := i; j+1 < len(r); j++ {
		if r[j] != r[j+1] {
			r[j], r[j+1] = r[j+1], r[j]
			return string(r)
		}
	}
	return string(r[:len(r)-1])
}

// typos misspells two of the longer words of s.
func (g *generator) typos(s string) string {
	fields := strings.Fields(s)
	var long []int
	for i, f := range fields {
		if len(f) >= 5 {
			long = append(long, i)
		}
	}
	g.rng.Shuffle(len(long), func(i, j int) { long[i], long[j] = long[j], long[i] })
	for _, i := range long[:min(2, len(long))] {
		fields[i] = g.typo(fields[i])
	}
	return strings.Join(fields, " ")
}

// blank returns a line without what differs from one error to the next.
func blank(s string) string {
	return strings.Join(strings.Fields(digits.ReplaceAllString(quoted.ReplaceAllString(s, ""), "")), " ")
}

// hasWord reports whether w is a word of text, or some.
func hasWord(text, w string) bool {
	inWord := func(c byte) bool { return unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c)) }
	for at := 0; ; at++ {
		i := strings.Index(text[at:], w)
		if i < 0 {
			return false
		}
		at += i
		if (at == 0 || !inWord(text[at-1])) && (at+len(w) == len(text) || !inWord(text[at+len(w)])) {
			return true
		}
	}
}

// humps returns the parts of a name in camel case.
func humps(s string) (out []string) {
	upper := func(i int) bool { return s[i] >= 'A' && s[i] <= 'Z' }
	from := 0
	for i := 1; i < len(s); i++ {
		if upper(i) && (!upper(i-1) || i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z') {
			out, from = append(out, s[from:i]), i
		}
	}
	return append(out, s[from:])
}

func distinct(list []string) (out []string) {
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
