package offline

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"

	"goclaw/internal/text"
	"goclaw/llm"
)

// hit is a line of what memory_search or session_search found.
type hit struct {
	who, when string // of what was said; "" for a note
	where     string // its citation
	text      string
	words     int  // of the question that it holds
	announces bool // it only says what is done next
}

var (
	noteLine = regexp.MustCompile(`^([^\s#][^#]*?:\d+)  (.+?)(?: \[[^\[\]]*\]){0,2}$`)
	saidLine = regexp.MustCompile(`^(\S+#\d+)  (\d{4}-\d\d-\d\d \d\d:\d\d|.*?,) (user|assistant|tool|summary)(?: \[.*?\])?: (.+?)(?: \[and \d+ more like it[^\]]*\])?$`)
	// callPart is where the calls of an answer begin: a tool's name and its arguments.
	callPart = regexp.MustCompile(`(?:^|\s)\w+ \{(?:"|\}|$|…)`)
	// inCall is text from within arguments: what JSON makes of lines, and fields.
	inCall = regexp.MustCompile(`\\[nt]\S*.*\\[nt]|","\w+":`)
	// quoteLine is how a quote in an answer of this model is introduced.
	quoteLine = regexp.MustCompile(`(?:In memory|(?:You said|The answer|A tool put out|A summary) (?:on \d{4}-\d\d-\d\d \d\d:\d\d|at an unknown time)(?: was| says)?): >|^… >`)
)

// How answers begin that only repeat something. They are not quoted again.
var echoes = []string{"I found nothing", "Noted in", "What was said so far", "MEMORY.md:", "memory/", helpOpening}

// hits reads the lines of a search, without those that this model added to
// the log itself.
func hits(found string) (out []hit) {
	for l := range strings.Lines(found) {
		l = strings.TrimSpace(l)
		if m := saidLine.FindStringSubmatch(l); m != nil {
			own, announces := false, false
			if m[3] == "assistant" {
				own = strings.Contains(m[4], whatIAm) || quoteLine.MatchString(m[4]) || slices.ContainsFunc(echoes, func(e string) bool { return strings.HasPrefix(m[4], e) })
				m[4], announces = spoken(m[4])
				own = own || m[4] == ""
			}
			when := "on " + m[2]
			if strings.HasSuffix(m[2], ",") {
				when = strings.TrimSuffix(m[2], ",") // "at an unknown time,"
			}
			if !own {
				out = append(out, hit{who: m[3], when: when, where: m[1], text: m[4], announces: announces})
			}
		} else if m := noteLine.FindStringSubmatch(l); m != nil {
			out = append(out, hit{where: m[1], text: m[2]})
		}
	}
	return out
}

// spoken returns what an answer says besides its calls, "" if it has only those,
// and whether it only announces them: "Let me look at the tests:".
func spoken(answer string) (text string, announces bool) {
	text = answer
	if at := callPart.FindStringIndex(answer); at != nil {
		text = answer[:at[0]]
	}
	if inCall.MatchString(text) {
		return "", false
	}
	text = strings.Trim(text, " …")
	return text, announcement.MatchString(text)
}

// announcement is one sentence that ends in a colon, after an exclamation at most.
var announcement = regexp.MustCompile(`^(?:[\w']+(?: \w+)?[!.] )?[^.!?]{1,160}:$`)

// search looks for what was said or noted, by the tools that every model has,
// and quotes it.
func (t *turn) search(w wish) string {
	notes, ok1 := t.call("memory_search", args{"query": w.text, "limit": 5})
	said, ok2 := t.call("session_search", args{"query": w.text, "limit": 20})
	if !ok1 || !ok2 {
		return ""
	}
	words := wordsOf(w.text)
	var found, near [2][]hit // of notes, and of what was said; near have no word of the question
	problems := ""
	for i, o := range []llm.ToolResult{notes, said} {
		if o.IsError {
			problems += fmt.Sprintf("%s failed: %s\n", o.Name, o.Text())
			continue
		}
		for _, h := range hits(o.Text()) {
			if h.asks() {
				continue
			}
			if h.words = held(wordsOf(h.text), words); h.words > 0 {
				found[i] = append(found[i], h)
			} else {
				near[i] = append(near[i], h)
			}
		}
	}
	if len(found[0])+len(found[1]) > 0 {
		// What a question is about may be named just before or after the answer.
		said := found[1]
		for _, h := range near[1] {
			if len(said) < enough && h.who != "tool" && slices.ContainsFunc(found[1], h.beside) {
				said = append(said, h)
			}
		}
		said = latest(said, w.text)
		sort.SliceStable(said, func(i, j int) bool { return !said[i].announces && said[j].announces })
		return quoteHits(latest(found[0], w.text), said, words) + problems
	}
	text := fmt.Sprintf("I found nothing that was said or noted with the words of %q.\n\n", text.Head(w.text, 120))
	switch {
	case len(near[0]) > 0:
		text += "The nearest is this:\n\n" + quoteHits(near[0][:1], nil, words)
	case len(near[1]) > 0:
		text += "The nearest is this:\n\n" + quoteHits(nil, near[1][:1], words)
	}
	return text + problems + cannot + " " + connect
}

// asks reports whether a hit is a request of the user, which has no information.
func (h hit) asks() bool {
	k := understand(h.text).kind
	return h.who == "user" && k != statement && k != remember
}

// besides is how many records apart two things are that belong together.
const besides = 3

// beside reports whether two things were said one after the other.
func (h hit) beside(o hit) bool {
	log, n, _ := strings.Cut(h.where, "#")
	log2, n2, _ := strings.Cut(o.where, "#")
	a, err := strconv.Atoi(n)
	b, err2 := strconv.Atoi(n2)
	return err == nil && err2 == nil && log == log2 && max(a-b, b-a) <= besides
}

// held returns how many of words are among those of a text.
func held(text, words []string) (n int) {
	for i, w := range words {
		if slices.Contains(text, w) && !slices.Contains(words[:i], w) {
			n++
		}
	}
	return n
}

var (
	// changed is how people say that something is no longer as it was.
	changed = regexp.MustCompile(`(?i)\b(?:now|instead|moved?|changed?|switch(?:ed)?|again|anymore|no longer|actually|after all|in the end|finally|decided|decision|cancell?ed|postponed|replaced?|from (?:today|now))\b`)
	// first is how they ask for what was before that.
	first = regexp.MustCompile(`(?i)\b(?:first|originally|original|initially|before|used to|old|earlier)\b`)
)

// latest puts before the best hit those among the next ones that were said later
// and hold as many words of the question: what was said last is usually what
// holds. For a single word, and for what a model said, they must speak of a
// change.
func latest(hits []hit, question string) []hit {
	if len(hits) == 0 || first.MatchString(question) {
		return hits
	}
	best := hits[0]
	later := func(h hit) bool {
		return h.who != "" && h.words >= max(best.words, 1) && h.when > best.when && (h.words > 1 && h.who == "user" || changed.MatchString(h.text))
	}
	var ahead, rest []hit
	for i, h := range hits {
		if i < maxHits && later(h) {
			ahead = append(ahead, h)
		} else {
			rest = append(rest, h)
		}
	}
	sort.SliceStable(ahead, func(i, j int) bool { return ahead[i].when > ahead[j].when })
	return append(ahead, rest...)
}

const (
	maxHits  = 6   // things said that are quoted
	enough   = 5   // fewer are filled up with what was said near them
	maxNotes = 3   // notes
	maxQuote = 320 // bytes of one
)

// quoteHits quotes hits with who said it, when, and where it stands. Notes come
// first unless what was said fits better.
func quoteHits(notes, said []hit, words []string) string {
	quoted := func(all []hit, most int) (out []string, best int) {
		for _, h := range all[:min(most, len(all))] {
			best = max(best, h.words)
			line := "> " + excerpt(h.text, words) + " (" + h.where + ")\n"
			switch h.who {
			case "":
			case "user":
				line = "You said " + h.when + ":\n" + line
			case "assistant":
				line = "The answer " + h.when + " was:\n" + line
			case "tool":
				line = "A tool put out " + h.when + ":\n" + line
			default:
				line = "A summary " + h.when + " says:\n" + line
			}
			out = append(out, line)
		}
		return out, best
	}
	n, bestNote := quoted(notes, maxNotes)
	s, bestSaid := quoted(said, maxHits)
	parts := []string{strings.Join(s, "\n")}
	if len(n) > 0 {
		parts = append(parts, "In memory:\n"+strings.Join(n, ""))
		if bestNote >= bestSaid {
			slices.Reverse(parts)
		}
	}
	return strings.TrimSpace(strings.Join(parts, "\n")) + "\n"
}

var sentence = regexp.MustCompile(`.+?(?:[.!?:;。！？]["”)]*(?:\s+|$)|$)`)

// excerpt returns the sentences of a text that hold most of words, with those
// after them as far as there is room.
func excerpt(s string, words []string) string {
	if len(s) <= maxQuote {
		return s
	}
	all := sentence.FindAllStringIndex(s, -1)
	at, most := 0, -1
	for i := range all {
		// Two together: what is named in one is told in the next.
		n := held(wordsOf(s[all[i][0]:all[min(i+1, len(all)-1)][1]]), words)
		if n += held(wordsOf(s[all[i][0]:all[i][1]]), words); n > most {
			at, most = all[i][0], n
		}
	}
	mark := ""
	if at > 0 {
		mark = "… "
	}
	return mark + text.OneLine(s[at:], maxQuote)
}

// common are words that say nothing about what is searched for.
var common = regexp.MustCompile(`^(?:about|all|also|and|any|are|asked?|can|could|did|does|for|from|had|has|have|her|him|his|how|its|know|let|mean|mention|more|not|off|one|our|out|please|remember|said|say|see|should|some|something|talk|tell|than|that|the|their|them|then|there|these|they|thing|this|was|were|what|when|where|which|who|whom|whose|why|will|with|would|you|your)$`)

// wordsOf returns the words of a text that may say what it is about, without
// common endings.
func wordsOf(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !strings.ContainsAny(w, "0123456789") && (len(w) < 3 || common.MatchString(w)) {
			continue
		}
		for _, end := range []string{"ing", "ed", "es", "s", "e"} {
			if s, ok := strings.CutSuffix(w, end); ok && len(s) > 2 {
				w = s
				break
			}
		}
		out = append(out, w)
	}
	return out
}

var partOfLog = regexp.MustCompile(`(?m)^\[(User|Assistant|User's side)\] (.+)$`)

// extract answers a program that asks for a summary of a conversation, in the
// form that it asks for: with extracts, since anything else would be invented.
func extract(asked string) string {
	_, log, _ := strings.Cut(asked, "<conversation>")
	log, _, _ = strings.Cut(log, "</conversation>")
	var task, last string
	var said []string
	for _, m := range partOfLog.FindAllStringSubmatch(log, -1) {
		if m[1] == "Assistant" {
			continue
		}
		if task == "" {
			task = m[2]
		}
		last = m[2]
		said = append(said, oneLine(m[2]))
	}
	text := "Extracts by a program, " + whatIAm + ". The user said: " + strings.Join(said[max(0, len(said)-maxRecap):], " / ")
	if before, ok := strings.CutPrefix(asked, "<previous-summary>\n"); ok {
		before, _, _ = strings.Cut(before, "\n</previous-summary>")
		text = head(before, 1500) + "\n" + text
	}
	out := map[string]any{"task": oneLine(task), "summary": text}
	if last != "" {
		out["openRequests"] = []string{oneLine(last)}
	}
	return string(encode(out))
}
