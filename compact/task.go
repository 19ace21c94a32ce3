package compact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/session"
)

// maxTask is how long the task of a summary may be, in bytes, and maxOpenTask
// how long if its words stay in the context anyhow.
const (
	maxTask     = 1200
	maxOpenTask = 300
)

// task returns the current task, in the user's words, and the tasks before it:
// the latest request of its own. A follow-up ("and now in German") is none, and
// what a model takes for the task counts only where the user said it. Without
// any request the task is what an earlier summary says, or what was said first.
func (c Cut) task(hint string) (now string, earlier []string) {
	past, asked := said(c.all), said(c.asked)
	stays := said(c.kept[len(c.asked):])
	now = latestRequest(stays, isRequest)
	open := now != ""
	if now == "" {
		seen := append(past[:len(past):len(past)], asked...)
		now = latestRequest(seen, func(t string) bool { return hint != "" && !leans(t) && names(t, hint) })
		if now == "" && hint != "" && names(c.prev.Task, hint) {
			now = c.prev.Task
		}
		if now == "" {
			now = latestRequest(seen, isRequest)
		}
		if now == "" {
			now = c.prev.Task
		}
		if now == "" && len(seen) > 0 {
			now = seen[0]
		}
		for _, t := range asked {
			open = open || t == now
		}
	}
	earlier = append(earlier, c.prev.Earlier...)
	if c.prev.Task != "" {
		earlier = append(earlier, c.prev.Task)
	} else if len(past) > 0 {
		earlier = append(earlier, past[0])
	}
	for _, t := range past {
		if isRequest(t) {
			earlier = append(earlier, t)
		}
	}
	if open {
		return clip(now, maxOpenTask), earlierThan(now, earlier)
	}
	return clip(now, maxTask), earlierThan(now, earlier)
}

// maxEarlier is how many earlier tasks a summary names: the first, and the
// latest.
const maxEarlier = 5

// earlierThan returns tasks in a line each, without the one of now.
func earlierThan(now string, tasks []string) []string {
	var out []string
	for _, t := range tasks {
		if t != now && !strings.HasPrefix(now, strings.TrimSuffix(t, " …")) {
			out = append(out, oneLine(t, 160))
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
	anew = regexp.MustCompile(`(?i)^(?:(?:a |the |my |your )?(?:new|next|another|different) (?:task|request|topic|question|project|job)|something (?:else|different|new)|(?:a )?change of topic|forget (?:that|about that|all that|everything))\b`)
	// What cannot be understood without what came before.
	leaning  = regexp.MustCompile(`(?i)^\W*(?:and|also|but|or|plus|then|because|so|still|again|yes|yep|yeah|no|nope|not|sure|right|exactly|why|same|instead|rather|maybe|perhaps|actually|wait|(?:what|how) about|in that case|und|auch|aber|oder|et|aussi|mais|y|también|pero)\b`)
	pointing = regexp.MustCompile(`(?i)^\w+(?:\s+(?:up|out|down|over|on|off|me))?\s+(?:it|them|that|this|these|those|again|more|both|everything)(?:\s*$|\s*[.,!?;:]|\s+(?:in|into|to|as|for|with|from|by|on|and|then|too|again|instead|please|now|once|only)\b)`)
	trailing = regexp.MustCompile(`(?i)\b(?:again|too|as well|instead|(?:for|of|in|to|with|from|about|on|than) (?:it|them|that|this))[\s.!?]*$`)

	wanting = regexp.MustCompile(`(?i)^(?:(?:i|we) (?:need|want)|(?:i|we)(?:'d| would) like)\s+(?:a|an|the|some|my|our|to|you|help)\b`)
	verb    = regexp.MustCompile(`(?i)^(?:add|adapt|analy[sz]e|arrange|audit|automate|benchmark|book|build|calculate|change|check|clean|collect|compare|compile|compose|compute|configure|convert|create|debug|delete|deploy|describe|design|develop|diagnose|document|download|draft|draw|edit|estimate|evaluate|examine|explain|explore|export|extend|extract|fetch|figure out|find|fix|format|generate|give me|go through|identify|implement|import|improve|inspect|install|integrate|investigate|list|look (?:at|for|into|up)|make|measure|merge|migrate|model|monitor|move|optimi[sz]e|order|organi[sz]e|outline|parse|patch|plan|port|prepare|produce|profile|program|prove|publish|read|recommend|refactor|release|remove|rename|repair|replace|reproduce|research|restore|review|rewrite|run|scan|schedule|search|send|set up|show me|simplify|solve|sort|split|suggest|summari[sz]e|tell me|test|trace|train|translate|update|upgrade|verify|visuali[sz]e|write)\b`)
)

// fewWords is how many words a request of its own has at least.
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

// isRequest reports whether the user asks for something new with text. It
// knows English only: in other languages a model's word is needed.
func isRequest(text string) bool {
	t := thanks.ReplaceAllString(clip(text, 600), "")
	if anew.MatchString(t) {
		return true
	}
	if leans(t) {
		return false
	}
	t = turning.ReplaceAllString(t, "")
	if anew.MatchString(t) {
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
