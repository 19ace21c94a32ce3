package compact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/text"
	"goclaw/session"
)

// maxTask is how long the task of a summary may be, in bytes, and maxOpenTask
// how long if its words stay in the context anyhow.
const (
	maxTask     = 1200
	maxOpenTask = 300
)

// task returns the current task and the tasks before it: the latest request of
// its own that stays, or what a model takes for the task (hint), in the user's
// words where the user said it. A follow-up ("and now in German") is no task,
// even if a model says so. Without a model it is the latest request of the
// past; then what an earlier summary says; then the latest message that says
// much, in whatever language; then what was said first.
func (p past) task(hint string) (now string, earlier []string) {
	past, asked := said(p.all), said(p.asked)
	stays := said(p.kept[len(p.asked):])
	now = latestRequest(stays, isRequest)
	open := now != ""
	if now == "" {
		seen := append(past[:len(past):len(past)], asked...)
		now = p.hinted(hint, seen, stays)
		if now == "" {
			now = latestRequest(seen, isRequest)
		}
		if now == "" && isRequest(p.prev.Task) {
			now = p.prev.Task
		}
		if now == "" {
			now = latestRequest(seen, saysMuch)
		}
		if now == "" {
			now = p.prev.Task
		}
		if now == "" && len(seen) > 0 {
			now = seen[0]
		}
		for _, t := range asked {
			open = open || t == now
		}
	}
	earlier = append(earlier, p.prev.Earlier...)
	if p.prev.Task != "" {
		earlier = append(earlier, p.prev.Task)
	} else if len(past) > 0 {
		earlier = append(earlier, past[0])
	}
	for _, t := range past {
		if isRequest(t) {
			earlier = append(earlier, t)
		}
	}
	if open {
		return text.Clip(now, maxOpenTask), earlierThan(now, earlier)
	}
	return text.Clip(now, maxTask), earlierThan(now, earlier)
}

// hinted returns the task that hint names: in the user's words, in those of an
// earlier summary, or in its own. It is "" if hint is a follow-up, or has
// nothing to do with what the user said.
func (p past) hinted(hint string, seen, stays []string) string {
	if hint = strings.TrimSpace(hint); hint == "" {
		return ""
	}
	if t := latestRequest(seen, func(t string) bool { return !leans(t) && names(t, hint) }); t != "" {
		return t
	}
	if names(p.prev.Task, hint) {
		return p.prev.Task
	}
	follows := func(t string) bool { return names(t, hint) }
	if leans(hint) || latestRequest(seen, follows) != "" || latestRequest(stays, follows) != "" {
		return ""
	}
	said := strings.Join(slices.Concat(seen, stays, []string{p.prev.Task}), "\n")
	if !touches(said, hint) {
		return ""
	}
	return hint
}

// touches reports whether text has a word of hint, whatever its ending.
func touches(text, hint string) bool {
	has := map[string]bool{}
	for _, w := range wordsOf(text) {
		has[stem(w)] = true
	}
	return slices.ContainsFunc(wordsOf(hint), func(w string) bool { return utf8.RuneCountInString(w) >= stemLen && has[stem(w)] })
}

// stemLen is how many letters of a word stand for it, about.
const stemLen = 4

func stem(w string) string {
	r := []rune(w)
	return string(r[:min(len(r), stemLen)])
}

// How long a message is that says much, and a question.
const (
	muchSaid  = 40
	muchAsked = 35
)

// saysMuch reports whether text may be a request, by its length: in any
// language a follow-up is short.
func saysMuch(text string) bool {
	if leans(text) {
		return false
	}
	n := 0
	for _, r := range text {
		if n++; r >= 0x2e80 { // a letter of Chinese or Japanese says as much as three
			n += 2
		}
	}
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？") {
		return n >= muchAsked
	}
	return n >= muchSaid
}

// maxEarlier is how many earlier tasks a summary names: the first, and the
// latest.
const maxEarlier = 5

// earlierThan returns tasks in a line each, without the one of now.
func earlierThan(now string, tasks []string) []string {
	var out []string
	for _, t := range tasks {
		if t != now && !strings.HasPrefix(now, strings.TrimSuffix(t, " …")) {
			out = append(out, text.OneLine(t, 160))
		}
	}
	out = union(nil, out)
	if n := len(out) - maxEarlier; n > 0 {
		out = append(out[:1], out[n+1:]...)
	}
	return out
}

// said returns what the user said in recs, greetings apart.
func said(recs []session.Record) []string {
	var out []string
	for _, r := range recs {
		if session.IsTurn(r.Body) {
			if t := plainText(r.Body); len(t) > 8 || t != "" && !greeting.MatchString(t) {
				out = append(out, t)
			}
		}
	}
	return out
}

func latestRequest(turns []string, is func(string) bool) string {
	for i := len(turns) - 1; i >= 0; i-- {
		if is(turns[i]) {
			return turns[i]
		}
	}
	return ""
}

// names reports whether hint tells text: whether text has most of its words.
func names(text, hint string) bool {
	has := map[string]bool{}
	for _, w := range wordsOf(text) {
		has[w] = true
	}
	n, found := 0, 0
	for _, w := range wordsOf(hint) {
		n++
		if has[w] {
			found++
		}
	}
	return n > 1 && 4*found >= 3*n
}

// wordsOf returns the words of text that have more than two letters.
func wordsOf(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}), func(w string) bool { return utf8.RuneCountInString(w) < 3 })
}

var (
	greeting = regexp.MustCompile(`(?i)^\W*(?:hi|hello|hey|yo|ok|okay|thanks|test|/\w+)\W*$`)

	// What may stand before a request without being a part of it.
	thanks  = regexp.MustCompile(`(?i)^\W*(?:(?:ok(?:ay)?|thank(?:s| you)(?: (?:a lot|very much|so much))?|thx|great|good|nice|perfect|cool|fine|super|all ?right|well done|hi|hello|hey)\b[\s,.!;:-]*)+`)
	turning = regexp.MustCompile(`(?i)^(?:now|next)\b[\s,:]*`)
	polite  = regexp.MustCompile(`(?i)^(?:please|kindly|(?:can|could|would|will) you|(?:i|we)(?:'d| would) (?:like|love)(?: you)? to|(?:i|we) (?:want|need)(?: you)? to|let(?:'s| us)|help me(?: to| with)?|you (?:should|are to))\b[\s,:]*(?:please\s+)?`)

	// What says that something else begins.
	fresh = regexp.MustCompile(`(?i)^(?:(?:a |the |my |your )?(?:new|next|another|different) (?:task|request|topic|question|project|job)|something (?:else|different|new)|(?:a )?change of topic|forget (?:that|about that|all that|everything))\b`)
	// What cannot be understood without what came before.
	leaning  = regexp.MustCompile(`(?i)^\W*(?:and|also|but|or|plus|then|because|so|still|again|yes|yep|yeah|no|nope|not|sure|right|exactly|why|same|instead|rather|maybe|perhaps|actually|wait|(?:what|how) about|in that case|und|auch|aber|oder|et|aussi|mais|y|también|pero)\b`)
	pointing = regexp.MustCompile(`(?i)^\w+(?:\s+(?:up|out|down|over|on|off|me))?\s+(?:it|them|that|this|these|those|again|more|both|everything)(?:\s*$|\s*[.,!?;:]|\s+(?:in|into|to|as|for|with|from|by|on|and|then|too|again|instead|please|now|once|only)\b)`)
	trailing = regexp.MustCompile(`(?i)\b(?:again|too|as well|instead|(?:for|of|in|to|with|from|about|on|than) (?:it|them|that|this))[\s.!?]*$`)

	wanting = regexp.MustCompile(`(?i)^(?:(?:i|we) (?:need|want)|(?:i|we)(?:'d| would) like)\s+(?:a|an|the|some|my|our|to|you|help)\b`)
	verb    = regexp.MustCompile(`(?i)^(?:add|adapt|analy[sz]e|arrange|audit|automate|benchmark|book|build|calculate|change|check|clean|collect|compare|compile|compose|compute|configure|convert|create|debug|delete|deploy|describe|design|develop|diagnose|document|download|draft|draw|edit|estimate|evaluate|examine|explain|explore|export|extend|extract|fetch|figure out|find|fix|format|generate|give me|go through|identify|implement|import|improve|inspect|install|integrate|investigate|list|look (?:at|for|into|up)|make|measure|merge|migrate|model|monitor|move|optimi[sz]e|order|organi[sz]e|outline|parse|patch|plan|port|prepare|produce|profile|program|prove|publish|read|recommend|refactor|release|remove|rename|repair|replace|reproduce|research|restore|review|rewrite|run|scan|schedule|search|send|set up|show me|simplify|solve|sort|split|suggest|summari[sz]e|tell me|test|trace|train|translate|update|upgrade|verify|visuali[sz]e|write)\b`)
)

// fewWords is the fewest words that make a separate request.
const fewWords = 4

// leans reports whether text cannot be understood without what came before.
func leans(text string) bool {
	t := thanks.ReplaceAllString(text, "")
	if leaning.MatchString(t) {
		return true
	}
	t = turning.ReplaceAllString(t, "")
	return pointing.MatchString(t) || len(strings.Fields(t)) < fewWords-1
}

// isRequest reports whether what the user said asks for something new. It knows
// English only: for other languages see saysMuch.
func isRequest(said string) bool {
	t := thanks.ReplaceAllString(text.Clip(said, 600), "")
	if fresh.MatchString(t) {
		return true
	}
	if leans(t) {
		return false
	}
	t = turning.ReplaceAllString(t, "")
	if fresh.MatchString(t) {
		return true
	}
	first := t
	if s := sentence.FindString(t); s != "" {
		first = s
	}
	if len(strings.Fields(first)) < fewWords || trailing.MatchString(first) {
		return false
	}
	if wanting.MatchString(first) {
		return true
	}
	for polite.MatchString(first) {
		first = polite.ReplaceAllString(first, "")
	}
	return verb.MatchString(first) && !pointing.MatchString(first)
}
