package recall

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxAsked is how many bytes of a query are looked at.
const maxAsked = 16 << 10

// ask reads a query. Nothing in it is syntax. Dates are understood as said at
// now.
func ask(text string, now time.Time) *question {
	if len(text) > maxAsked {
		text = strings.ToValidUTF8(text[:maxAsked], "")
	}
	q := &question{asks: asking(text)&flagAsks != 0}
	var used [][2]int
	q.spans, used = dates(text, now)
	seen := map[string]bool{}
	words(text, func(w word) {
		for _, u := range used {
			if w.from >= u[0] && w.to <= u[1] {
				return
			}
		}
		if w.inner || seen[w.term] || len(q.terms) == maxTerms {
			return
		}
		seen[w.term] = true
		a := asked{term: w.term, weight: 1}
		if weak[w.term] {
			a.weight = weakWeight
		}
		q.terms = append(q.terms, a)
	})
	if len(q.terms) == 0 { // nothing but stop words, or a date: they are all there is
		everyWord(text, func(t string) {
			if !seen[t] && len(q.terms) < maxTerms {
				seen[t] = true
				q.terms = append(q.terms, asked{term: t, weight: 1})
			}
		})
	}
	return q
}

const weakWeight = 0.5

// weak are words that questions are made of.
var weak = termSet(`kind type sort name many much often describe mention say tell think feel did does get like recently currently would
might likely considered consider person people thing things someone way specific particular according`)

// termSet returns the terms of the words in s.
func termSet(s string) map[string]bool {
	m := map[string]bool{}
	for w := range set(s) {
		if t := term(w); t != "" {
			m[t] = true
		}
	}
	return m
}

// maxTerms is how many different words of a query are searched for.
const maxTerms = 64

var months = map[string]time.Month{}

func init() {
	for m := time.January; m <= time.December; m++ {
		months[strings.ToLower(m.String())] = m
		months[strings.ToLower(m.String()[:3])] = m
	}
	months["sept"] = time.September
}

const monthName = `(january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\.?`

var (
	isoDate   = regexp.MustCompile(`\b(\d{4})-(\d{1,2})-(\d{1,2})\b`)
	dayMonth  = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthName + `,?(?: (\d{4}))?\b`)
	monthDay  = regexp.MustCompile(`(?i)\b` + monthName + ` (\d{1,2})(?:st|nd|rd|th)?\b,?(?: (\d{4}))?`)
	monthYear = regexp.MustCompile(`(?i)\b` + monthName + `,?(?: of)? (\d{4})\b`)
	inMonth   = regexp.MustCompile(`(?i)\b(?:in|during|of|this|last) (january|february|march|april|may|june|july|august|september|october|november|december)\b`)
	yearOnly  = regexp.MustCompile(`\b(?:in|during|of|by) ((?:19|20)\d{2})\b`)
	relative  = regexp.MustCompile(`(?i)\b(today|yesterday|this week|last week|this month|last month|this year|last year|(\d+|a|two|three|four|five|six) (day|week|month|year)s? ago)\b`)
	partOf    = regexp.MustCompile(`(?i)\b(early|mid|late|(?:beginning|start|middle|end|first half|second half|first week(?:end)?|second week(?:end)?|third week(?:end)?|last week(?:end)?) of)[ -](?:in )?` + monthName + `,?(?: (\d{4}))?\b`)
	fromTo    = regexp.MustCompile(`(?i)\b(?:between|from) (?:the )?(\d{1,2})(?:st|nd|rd|th)? (?:and|to|until) (?:the )?(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthName + `,?(?: (\d{4}))?\b`)
	monthDays = regexp.MustCompile(`(?i)\b` + monthName + ` (\d{1,2})(?:st|nd|rd|th)? ?(?:-|–|to|until|and) ?(\d{1,2})(?:st|nd|rd|th)?\b,?(?: (\d{4}))?`)
	weekday   = regexp.MustCompile(`(?i)\b(?:on|last|this) (monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekend)\b`)
	season    = regexp.MustCompile(`(?i)\b(spring|summer|autumn|fall|winter)(?: of)? (\d{4})\b`)
)

// What happened on a day or in a month may be told of a little later.
const graceDays, monthGrace = 3, 3

// parts are the days of a month that a part of it has: from, to.
var parts = map[string][2]int{
	"early": {1, 11}, "beginning of": {1, 11}, "start of": {1, 11}, "mid": {10, 21}, "middle of": {10, 21}, "late": {20, 32}, "end of": {20, 32},
	"first half of": {1, 16}, "second half of": {15, 32}, "first week of": {1, 8}, "second week of": {8, 15}, "third week of": {15, 22}, "last week of": {24, 32},
	"first weekend of": {1, 9}, "second weekend of": {7, 16}, "third weekend of": {14, 23}, "last weekend of": {24, 32},
}

// dates finds the times that text names, in the zone of now, and where it does.
func dates(text string, now time.Time) (spans []span, used [][2]int) {
	day := func(y int, m time.Month, d, n int) span {
		from := time.Date(y, m, d, 0, 0, 0, 0, now.Location())
		return span{from, from.AddDate(0, 0, n)}
	}
	taken := func(m []int) bool {
		for _, u := range used {
			if m[0] < u[1] && u[0] < m[1] {
				return true
			}
		}
		return false
	}
	sub := func(m []int, i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return text[m[2*i]:m[2*i+1]]
	}
	num := func(s string) int { n, _ := strconv.Atoi(s); return n }
	// year is of a date that names none: the last one before now.
	year := func(s string, m time.Month, d int) int {
		if s != "" {
			return num(s)
		}
		if time.Date(now.Year(), m, d, 0, 0, 0, 0, now.Location()).After(now) {
			return now.Year() - 1
		}
		return now.Year()
	}
	each := func(re *regexp.Regexp, f func(m []int) (span, bool)) {
		for _, m := range re.FindAllStringSubmatchIndex(text, -1) {
			if taken(m) {
				continue
			}
			if s, ok := f(m); ok {
				spans, used = append(spans, s), append(used, [2]int{m[0], m[1]})
			}
		}
	}
	each(isoDate, func(m []int) (span, bool) {
		return day(num(sub(m, 1)), time.Month(num(sub(m, 2))), num(sub(m, 3)), graceDays), true
	})
	// few are days of one month.
	few := func(y string, m time.Month, from, to int) (span, bool) {
		return day(year(y, m, from), m, from, to-from+graceDays), from >= 1 && from < to && to <= 32
	}
	each(partOf, func(m []int) (span, bool) {
		p := parts[strings.ToLower(sub(m, 1))]
		return few(sub(m, 3), months[strings.ToLower(sub(m, 2))], p[0], p[1])
	})
	each(fromTo, func(m []int) (span, bool) {
		return few(sub(m, 4), months[strings.ToLower(sub(m, 3))], num(sub(m, 1)), num(sub(m, 2)))
	})
	each(monthDays, func(m []int) (span, bool) {
		return few(sub(m, 4), months[strings.ToLower(sub(m, 1))], num(sub(m, 2)), num(sub(m, 3)))
	})
	each(dayMonth, func(m []int) (span, bool) {
		mon, d := months[strings.ToLower(sub(m, 2))], num(sub(m, 1))
		return day(year(sub(m, 3), mon, d), mon, d, graceDays), d >= 1 && d <= 31
	})
	each(monthDay, func(m []int) (span, bool) {
		mon, d := months[strings.ToLower(sub(m, 1))], num(sub(m, 2))
		return day(year(sub(m, 3), mon, d), mon, d, graceDays), d >= 1 && d <= 31
	})
	month := func(y int, m time.Month) span {
		from := time.Date(y, m, 1, 0, 0, 0, 0, now.Location())
		return span{from, from.AddDate(0, 1, monthGrace)}
	}
	each(season, func(m []int) (span, bool) {
		first := map[string]time.Month{"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}[strings.ToLower(sub(m, 1))]
		from := time.Date(num(sub(m, 2)), first, 1, 0, 0, 0, 0, now.Location())
		return span{from, from.AddDate(0, 3, 0)}, true
	})
	each(monthYear, func(m []int) (span, bool) {
		return month(num(sub(m, 2)), months[strings.ToLower(sub(m, 1))]), true
	})
	each(inMonth, func(m []int) (span, bool) {
		mon := months[strings.ToLower(sub(m, 1))]
		return month(year("", mon, 1), mon), true
	})
	each(yearOnly, func(m []int) (span, bool) {
		return day(num(sub(m, 1)), 1, 1, 365), true
	})
	if len(spans) > 0 { // "last week" is then one before that, not before now
		return between(text, spans, used)
	}
	each(relative, func(m []int) (span, bool) {
		s := strings.ToLower(sub(m, 1))
		y, mo, d := now.Date()
		switch s {
		case "today":
			return day(y, mo, d, 1), true
		case "yesterday":
			return day(y, mo, d-1, 1), true
		case "this week":
			return day(y, mo, d-6, 7), true
		case "last week":
			return day(y, mo, d-13, 10), true
		case "this month":
			return month(y, mo), true
		case "last month":
			return month(y, mo-1), true
		case "this year":
			return day(y, 1, 1, 366), true
		case "last year":
			return day(y-1, 1, 1, 365), true
		}
		n := map[string]int{"a": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}[strings.ToLower(sub(m, 2))]
		if n == 0 {
			n = num(sub(m, 2))
		}
		switch strings.ToLower(sub(m, 3)) {
		case "day":
			return day(y, mo, d-n, 1), true
		case "week":
			return day(y, mo, d-7*n-3, 7), true
		case "month":
			return day(y, mo-time.Month(n), d-15, 30), true
		}
		return day(y-n, mo-3, d, 180), true
	})
	each(weekday, func(m []int) (span, bool) {
		y, mo, d := now.Date()
		for back := 1; back < 7; back++ { // the last one that is over
			name := strings.ToLower(sub(m, 1))
			if w := now.AddDate(0, 0, -back).Weekday(); strings.EqualFold(w.String(), name) || name == "weekend" && w == time.Saturday {
				n := 1
				if name == "weekend" {
					n = 2
				}
				return day(y, mo, d-back, n), true
			}
		}
		return day(y, mo, d-7, 1), true
	})
	return spans, used
}

// between makes one span of two that are the ends of one, as in "from 28 May
// to 3 June".
func between(text string, spans []span, used [][2]int) ([]span, [][2]int) {
	for i := range spans {
		for j := range spans {
			a, b := used[i], used[j]
			if a[1] > b[0] {
				continue
			}
			before := strings.ToLower(strings.TrimRight(text[:a[0]], " "))
			switch strings.ToLower(strings.Trim(text[a[1]:b[0]], " ,")) {
			case "and", "to", "until", "till", "-", "–":
				if (strings.HasSuffix(before, "between") || strings.HasSuffix(before, "from")) && spans[i].from.Before(spans[j].to) {
					spans[i].to = spans[j].to
				}
			}
		}
	}
	return spans, used
}
