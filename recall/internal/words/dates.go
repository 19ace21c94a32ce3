package words

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Span is a time that a text names: From, inclusive, to To, exclusive. Of a day it
// includes the next one, on which what happened may still be told; Day is the end
// of the day itself, To for other times.
type Span struct {
	From, Day, To time.Time
	At            [2]int // the bytes of the text that name it
}

// Dates finds the times that text names, in the zone of now. English only.
func Dates(text string, now time.Time) []Span {
	spans := find(absolute, text, now)
	if len(spans) == 0 { // "last week" beside a date is the week before that date
		return find(relative, text, now)
	}
	joinEnds(text, spans)
	return spans
}

// rule finds times of one kind. What its groups are named is up to span, which
// returns the time that a match means.
type rule struct {
	re   *regexp.Regexp
	span func(m match) (from, to time.Time)
}

// match is the groups of a match by their names, in lower case.
type match struct {
	groups map[string]string
	now    time.Time
}

// Rules that name a date. Those before go first: of two matches that overlap,
// the later one is dropped.
var absolute = []rule{
	{re(`\b(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})\b`), days},
	{re(`\b(?P<part>early|mid|late|(?:beginning|start|middle|end|(?:first|second) half|(?:first|second|third|last) week(?:end)?) of)[ -](?:in )?MONTH,?(?: YEAR)?\b`), days},
	{re(`\b(?:between|from) (?:the )?DAY (?:and|to|until) (?:the )?LAST(?: of)? MONTH,?(?: YEAR)?\b`), days},
	{re(`\bMONTH DAY ?(?:-|–|to|until|and) ?LAST\b,?(?: YEAR)?`), days},
	{re(`\bDAY(?: of)? MONTH,?(?: YEAR)?\b`), days},
	{re(`\bMONTH DAY\b,?(?: YEAR)?`), days},
	{re(`\bon the (?P<d>\d{1,2})(?:st|nd|rd|th)\b`), dayOfMonth},
	{re(`\b(?P<season>spring|summer|autumn|fall|winter)(?: of)? YEAR\b`), season},
	{re(`\bMONTH,?(?: of)? YEAR\b`), month},
	{re(`\b(?:in|during|of|this|last) (?P<m>` + monthNames + `)\b`), month},
	{re(`\b(?:in|during|of|by) (?P<y>(?:19|20)\d{2})\b`), year},
}

// Rules that say how long before now it was.
var relative = []rule{
	{re(`\b(?P<day>today|yesterday|this (?:morning|afternoon|evening|week)|last (?:night|week)|tonight|the other day)\b`), recentDays},
	{re(`\b(?P<which>this|last) month\b`), recentMonth},
	{re(`\b(?P<which>this|last) year\b`), recentYear},
	{re(`\b(?P<n>\d{1,5}|an?|(?:a )?couple(?: of)?|(?:a )?few|two|three|four|five|six) (?P<unit>day|week|month|year)s? ago\b`), ago},
	{re(`\b(?:on|last|this) (?P<day>monday|tuesday|wednesday|thursday|friday|saturday|sunday|weekend)\b`), weekday},
}

const monthNames = `january|february|march|april|may|june|july|august|september|october|november|december`

// re compiles a pattern. A word in capitals in it is a group.
func re(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.NewReplacer(
		"DAY", `(?P<d>\d{1,2})(?:st|nd|rd|th)?`,
		"LAST", `(?P<last>\d{1,2})(?:st|nd|rd|th)?`,
		"MONTH", `(?P<m>`+monthNames+`|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?`,
		"YEAR", `(?P<y>\d{4})`,
	).Replace(pattern))
}

// asOf is what stands before a date up to which something holds. What a question
// about it asks for was said at any time before.
var asOf = regexp.MustCompile(`(?i)\bas (?:of (?:the )?)?$`)

// find returns what rules find in text.
func find(rules []rule, text string, now time.Time) (spans []Span) {
	var taken [][2]int
	overlaps := func(from, to int) bool {
		return slices.ContainsFunc(taken, func(t [2]int) bool { return from < t[1] && t[0] < to })
	}
	for _, r := range rules {
		for _, at := range r.re.FindAllStringSubmatchIndex(text, -1) {
			if overlaps(at[0], at[1]) {
				continue
			}
			if asOf.MatchString(text[:at[0]]) {
				taken = append(taken, [2]int{at[0], at[1]})
				continue
			}
			m := match{map[string]string{}, now}
			for i, name := range r.re.SubexpNames() {
				if name != "" && at[2*i] >= 0 {
					m.groups[name] = strings.ToLower(text[at[2*i]:at[2*i+1]])
				}
			}
			if from, to := r.span(m); from.Before(to) {
				day := to
				if m.groups["d"] != "" && m.groups["last"] == "" {
					day = from.AddDate(0, 0, 1)
				}
				spans = append(spans, Span{from, day, to, [2]int{at[0], at[1]}})
				taken = append(taken, spans[len(spans)-1].At)
			}
		}
	}
	return spans
}

func (m match) number(group string) int {
	n, _ := strconv.Atoi(m.groups[group])
	return n
}

// month returns the month, which has a name or a number.
func (m match) month() time.Month {
	name := m.groups["m"]
	for mon := time.January; mon <= time.December; mon++ {
		if len(name) >= 3 && strings.HasPrefix(strings.ToLower(mon.String()), name[:3]) {
			return mon
		}
	}
	return time.Month(m.number("m"))
}

// year returns the year. If none is named, it is that of the last such day
// before now.
func (m match) year(mon time.Month, day int) int {
	switch {
	case m.groups["y"] != "":
		return m.number("y")
	case m.date(m.now.Year(), mon, day).After(m.now):
		return m.now.Year() - 1
	}
	return m.now.Year()
}

func (m match) date(y int, mon time.Month, d int) time.Time {
	return time.Date(y, mon, d, 0, 0, 0, 0, m.now.Location())
}

// days returns n days from the given one on.
func (m match) days(y int, mon time.Month, d, n int) (from, to time.Time) {
	from = m.date(y, mon, d)
	return from, from.AddDate(0, 0, n)
}

// grace is how many days later what happened in a time may still be told; on a
// named day, it is told on that day or the next.
const (
	grace      = 3
	graceOfDay = 2
)

// partsOfMonth are the days of a month that a part of it has: first and last.
var partsOfMonth = map[string][2]int{
	"early": {1, 11}, "beginning of": {1, 11}, "start of": {1, 11},
	"mid": {10, 21}, "middle of": {10, 21}, "late": {20, 32}, "end of": {20, 32},
	"first half of": {1, 16}, "second half of": {15, 32},
	"first week of": {1, 8}, "second week of": {8, 15}, "third week of": {15, 22}, "last week of": {24, 32},
	"first weekend of": {1, 9}, "second weekend of": {7, 16}, "third weekend of": {14, 23}, "last weekend of": {24, 32},
}

// days is a day, some days or a part of a month.
func days(m match) (from, to time.Time) {
	first, last := m.number("d"), m.number("d")
	if m.groups["last"] != "" {
		last = m.number("last")
	}
	if p, ok := partsOfMonth[m.groups["part"]]; ok {
		first, last = p[0], p[1]
	}
	if first < 1 || last > 32 {
		return from, to
	}
	mon, later := m.month(), grace
	if first == last {
		later = graceOfDay
	}
	return m.days(m.year(mon, first), mon, first, last-first+later)
}

// dayOfMonth is the last such day that has begun.
func dayOfMonth(m match) (from, to time.Time) {
	y, mon, today := m.now.Date()
	d := m.number("d")
	if d < 1 || d > 31 {
		return from, to
	}
	if d > today {
		mon--
	}
	for m.date(y, mon, d).Day() != d { // a month without such a day
		mon--
	}
	return m.days(y, mon, d, graceOfDay)
}

func month(m match) (from, to time.Time) {
	mon := m.month()
	from = m.date(m.year(mon, 1), mon, 1)
	return from, from.AddDate(0, 1, grace)
}

var seasons = map[string]time.Month{"spring": time.March, "summer": time.June, "autumn": time.September, "fall": time.September, "winter": time.December}

func season(m match) (from, to time.Time) {
	from = m.date(m.number("y"), seasons[m.groups["season"]], 1)
	return from, from.AddDate(0, 3, 0)
}

func year(m match) (from, to time.Time) { return m.days(m.number("y"), time.January, 1, 365) }

// recent are days before now: how many, and how many from there on.
var recent = map[string][2]int{
	"today": {0, 1}, "this morning": {0, 1}, "this afternoon": {0, 1}, "this evening": {0, 1}, "tonight": {0, 1},
	"yesterday": {1, 1}, "last night": {1, 2}, "the other day": {5, 5}, "this week": {6, 7}, "last week": {13, 10},
}

func recentDays(m match) (from, to time.Time) {
	y, mon, d := m.now.Date()
	r := recent[m.groups["day"]]
	return m.days(y, mon, d-r[0], r[1])
}

func recentMonth(m match) (from, to time.Time) {
	from = m.date(m.now.Year(), m.now.Month(), 1)
	if m.groups["which"] == "last" {
		from = from.AddDate(0, -1, 0)
	}
	return from, from.AddDate(0, 1, grace)
}

func recentYear(m match) (from, to time.Time) {
	y := m.now.Year()
	if m.groups["which"] == "last" {
		y--
	}
	return m.days(y, time.January, 1, 366)
}

func ago(m match) (from, to time.Time) {
	n, about := m.number("n"), 0
	switch name := m.groups["n"]; {
	case strings.Contains(name, "couple"):
		n, about = 2, 1
	case strings.Contains(name, "few"):
		n, about = 3, 2
	case n == 0:
		n = map[string]int{"a": 1, "an": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}[name]
	}
	y, mon, d := m.now.Date()
	switch m.groups["unit"] {
	case "day":
		return m.days(y, mon, d-n-about, 1+2*about)
	case "week":
		return m.days(y, mon, d-7*n-3, 7)
	case "month":
		return m.days(y, mon-time.Month(n), d-15, 30)
	}
	return m.days(y-n, mon-3, d, 180)
}

// weekday is the last such day that is over.
func weekday(m match) (from, to time.Time) {
	name, n := m.groups["day"], 1
	if name == "weekend" {
		name, n = "saturday", 2
	}
	y, mon, d := m.now.Date()
	for back := 1; ; back++ {
		if strings.EqualFold(m.now.AddDate(0, 0, -back).Weekday().String(), name) {
			return m.days(y, mon, d-back, n)
		}
	}
}

// joinEnds makes one span of two that are the ends of one, as in "from 28 May
// to 3 June".
func joinEnds(text string, spans []Span) {
	for i := range spans {
		for j := range spans {
			a, b := spans[i].At, spans[j].At
			if a[1] > b[0] {
				continue
			}
			before := strings.ToLower(strings.TrimRight(text[:a[0]], " "))
			switch strings.ToLower(strings.Trim(text[a[1]:b[0]], " ,")) {
			case "and", "to", "until", "till", "-", "–":
				if (strings.HasSuffix(before, "between") || strings.HasSuffix(before, "from")) && spans[i].From.Before(spans[j].To) {
					spans[i].Day, spans[i].To = spans[j].Day, spans[j].To
				}
			}
		}
	}
}
