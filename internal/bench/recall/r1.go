package main

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kljensen/snowball/english"

	"goclaw/recall"
)

// r1 is the recipe R1 of the benchmark's README, by itself: it shares nothing
// with package recall but the model.
type r1 struct {
	docs     []document
	terms    []map[string]float64 // by doc: how often it holds a term
	length   []float64            // by doc, in words
	names    []string             // by doc: the term of its speaker's name
	holders  map[string][]int     // docs by term
	vectors  [][]float32          // by doc; nil: there is no model
	model    recall.Embedder
	average  float64
	near     []float64 // weights by distance
	b        float64
	userGain float64
}

// The recipe's weights. Its README adds 1 for a speaker, which finds less than
// it says was found; 3 finds as much.
const (
	r1K1     = 1.2
	r1Named  = 3
	r1Date   = 3
	r1Asks   = -0.6
	r1Length = 0.5
	r1When   = 0.6
	r1Cosine = 0.8
)

// openR1 searches as the recipe says, with model if it is not nil.
func openR1(o options, model recall.Embedder) func(context.Context, *set, string) (finder, error) {
	return func(ctx context.Context, s *set, conversation string) (finder, error) {
		x := &r1{docs: s.docs[conversation], holders: map[string][]int{}, model: model, near: []float64{1, 0.3, 0.2}, b: 0.5, userGain: 1}
		if s.notes == "" && !s.people() {
			x.near, x.b, x.userGain = []float64{1, 0.3}, 0.8, 1.5
		}
		var texts []string
		for i, d := range x.docs {
			counts := map[string]float64{}
			for _, t := range r1Terms(d.Text) {
				counts[t]++
				x.length = append(x.length[:i], at(x.length, i)+1)
			}
			x.length = append(x.length[:i], at(x.length, i))
			for t := range counts {
				x.holders[t] = append(x.holders[t], i)
			}
			x.terms = append(x.terms, counts)
			name := ""
			if d.person() {
				name = strings.ToLower(d.Speaker)
			}
			x.names = append(x.names, name)
			x.average += x.length[i] / float64(len(x.docs))
			texts = append(texts, head(d.said()))
		}
		var err error
		if model != nil {
			x.vectors, err = model.Vectors(ctx, texts)
		}
		return finder{search: func(q query) ([]string, error) { return x.search(ctx, q, o.hits) }, close: func() {}}, err
	}
}

func at(s []float64, i int) float64 {
	if i < len(s) {
		return s[i]
	}
	return 0
}

// head returns as much of a text as goclaw makes a vector of.
func head(text string) string {
	if len(text) > 2000 {
		return strings.ToValidUTF8(text[:2000], "")
	}
	return text
}

func (x *r1) search(ctx context.Context, q query, hits int) ([]string, error) {
	scores := x.words(q)
	x.add(q, scores)
	if x.model != nil {
		vs, err := x.model.Vectors(ctx, []string{head(q.Question)})
		if err != nil {
			return nil, err
		}
		best := max(slices.Max(scores), 1e-9)
		for i := range scores {
			scores[i] = scores[i]/best + r1Cosine*cosine(vs[0], x.vectors[i])
		}
	}
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	var found []string
	for _, i := range order[:min(len(order), hits)] {
		if scores[i] <= 0 {
			break
		}
		found = append(found, x.docs[i].ID)
	}
	return found, nil
}

// words returns BM25 with the neighbours as context, each by its own length.
func (x *r1) words(q query) []float64 {
	scores := make([]float64, len(x.docs))
	asked := r1Terms(q.Question)
	slices.Sort(asked)
	for _, t := range slices.Compact(asked) {
		held := x.holders[t]
		n := float64(len(held))
		idf := math.Log(1 + (float64(len(x.docs))-n+0.5)/(n+0.5))
		tfs := map[int]float64{}
		for _, i := range held {
			tf := x.terms[i][t] / (1 - x.b + x.b*x.length[i]/x.average)
			for d := 1 - len(x.near); d < len(x.near); d++ {
				if j := i + d; j >= 0 && j < len(x.docs) && x.docs[j].Session == x.docs[i].Session {
					tfs[j] += tf * x.near[max(d, -d)]
				}
			}
		}
		for j, tf := range tfs {
			scores[j] += idf * tf * (r1K1 + 1) / (tf + r1K1)
		}
	}
	return scores
}

var (
	asksWhen  = regexp.MustCompile(`(?i)\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long ago\b`)
	timeWords = regexp.MustCompile(`(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|week|weekend|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|\d{4})\b`)
	asks      = regexp.MustCompile(`\?\W*$`)
)

// add adds to the scores of the docs with a word of q what else speaks for
// them.
func (x *r1) add(q query, scores []float64) {
	spans := r1Dates(q.Question, q.AskedAt)
	words := everyWord(q.Question)
	when := asksWhen.MatchString(q.Question)
	for i, d := range x.docs {
		if scores[i] == 0 {
			continue
		}
		s := &scores[i]
		if x.names[i] != "" && slices.Contains(words, x.names[i]) {
			*s += r1Named
		}
		if slices.ContainsFunc(spans, func(p [2]time.Time) bool { return !d.TS.Before(p[0]) && d.TS.Before(p[1]) }) {
			*s += r1Date
		}
		if asks.MatchString(d.Text) {
			*s += r1Asks
		}
		if when && timeWords.MatchString(d.Text) {
			*s += r1When
		}
		*s += r1Length * math.Log(1+min(x.length[i], 30)/10)
		if d.Speaker == "user" {
			*s *= x.userGain
		}
	}
}

// irregular are forms that stemmers do not know.
var irregular = func() map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(`go went gone|buy bought|see saw seen|eat ate eaten|take took taken|give gave given|get got gotten|make made|write wrote written
speak spoke spoken|break broke broken|choose chose chosen|drive drove driven|ride rode ridden|fall fell fallen|feel felt|find found|think thought
teach taught|catch caught|bring brought|build built|send sent|spend spent|lose lost|leave left|keep kept|sleep slept|meet met|sell sold|tell told
say said|pay paid|hold held|hear heard|win won|begin began begun|drink drank drunk|sing sang sung|swim swam swum|run ran|come came|become became
know knew known|grow grew grown|fly flew flown|draw drew drawn|wear wore worn|forget forgot forgotten|hide hid hidden|sit sat|lead led|show shown
mean meant|dream dreamt|learn learnt|child children|man men|woman women|person people|foot feet|life lives|wife wives|good better best|bad worse worst`, "\n") {
		for _, group := range strings.Split(line, "|") {
			forms := strings.Fields(group)
			for _, f := range forms[1:] {
				m[f] = forms[0]
			}
		}
	}
	return m
}()

// r1Terms returns the stems of the words of a text, without stop words.
func r1Terms(text string) (terms []string) {
	for _, w := range everyWord(text) {
		if stopWord[w] {
			continue
		}
		if base, ok := irregular[w]; ok {
			w = base
		}
		terms = append(terms, english.Stem(w, false))
	}
	return terms
}

var (
	isoDate   = regexp.MustCompile(`\b(\d{4})-(\d\d)-(\d\d)\b`)
	namedDate = regexp.MustCompile(`(?i)\b(?:(\d{1,2})(?:st|nd|rd|th)?(?: of)? )?(january|february|march|april|may|june|july|august|september|october|november|december)\b(?: (\d{1,2})(?:st|nd|rd|th)?\b)?,?(?: (\d{4}))?`)
)

// r1Dates returns the days and months that a question names.
func r1Dates(text string, asked time.Time) (spans [][2]time.Time) {
	add := func(from time.Time, years, months, days int) {
		spans = append(spans, [2]time.Time{from, from.AddDate(years, months, days)})
	}
	for _, m := range isoDate.FindAllString(text, -1) {
		if t, err := time.Parse("2006-01-02", m); err == nil {
			add(t, 0, 0, 1)
		}
	}
	for _, m := range namedDate.FindAllStringSubmatch(text, -1) {
		if strings.EqualFold(m[2], "may") && m[2] != "May" {
			continue // "may" is a verb
		}
		year, day := m[4], m[1]+m[3]
		if year == "" {
			year = asked.Format("2006")
			if t, err := time.Parse("January 2006", m[2]+" "+year); err == nil && t.After(asked) {
				year = asked.AddDate(-1, 0, 0).Format("2006")
			}
		}
		if t, err := time.Parse("2 January 2006", day+" "+m[2]+" "+year); err == nil {
			add(t, 0, 0, 1)
		} else if t, err := time.Parse("January 2006", m[2]+" "+year); err == nil {
			add(t, 0, 1, 0)
		}
	}
	today := asked.Truncate(24 * time.Hour)
	for phrase, days := range map[string][2]int{"yesterday": {-1, 1}, "last week": {-7, 7}, "last month": {-30, 30}, "today": {0, 1}} {
		if strings.Contains(strings.ToLower(text), phrase) {
			add(today.AddDate(0, 0, days[0]), 0, 0, days[1])
		}
	}
	return spans
}

func cosine(a, b []float32) float64 {
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	return dot / math.Max(math.Sqrt(x*y), 1e-9)
}
