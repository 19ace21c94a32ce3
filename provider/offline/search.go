package offline

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"goclaw/internal/text"
	"goclaw/llm"
)

// hit is a line of what memory_search or session_search found.
type hit struct {
	who, when string // of what was said; "" for a note
	where     string // of a note
	text      string
}

var (
	noteLine = regexp.MustCompile(`^([^\s#][^#]*?:\d+)  (.+?)(?: \[[^\[\]]*\]){0,2}$`)
	saidLine = regexp.MustCompile(`^\S+#\d+  (\d{4}-\d\d-\d\d \d\d:\d\d|.*?,) (user|assistant|summary)(?: \[.*?\])?: (.+?)(?: \[and \d+ more like it[^\]]*\])?$`)
	callLine = regexp.MustCompile(`^\w+ \{`)
)

// How answers begin that only repeat something. They are not quoted again.
var echoes = []string{"In memory:", "You said on", "The answer on", "A summary on", "I found nothing", "Noted in", "What was said so far", "MEMORY.md:", "memory/", helpOpening}

// hits reads the lines of a search, without those that this model added to
// the log itself.
func hits(found string) (out []hit) {
	for l := range strings.Lines(found) {
		l = strings.TrimSpace(l)
		if m := saidLine.FindStringSubmatch(l); m != nil {
			own := m[2] == "assistant" && (strings.Contains(m[3], whatIAm) || callLine.MatchString(m[3]) ||
				slices.ContainsFunc(echoes, func(e string) bool { return strings.HasPrefix(m[3], e) }))
			when := "on " + m[1]
			if strings.HasSuffix(m[1], ",") {
				when = strings.TrimSuffix(m[1], ",") // "at an unknown time,"
			}
			if !own {
				out = append(out, hit{who: m[2], when: when, text: m[3]})
			}
		} else if m := noteLine.FindStringSubmatch(l); m != nil {
			out = append(out, hit{where: m[1], text: m[2]})
		}
	}
	return out
}

// search looks for what was said or noted, by the tools that every model has,
// and quotes it.
func (t *turn) search(w wish) string {
	notes, ok1 := t.call("memory_search", args{"query": w.text, "limit": 5})
	said, ok2 := t.call("session_search", args{"query": w.text, "limit": 10})
	if !ok1 || !ok2 {
		return ""
	}
	var found []hit
	problems := ""
	for _, o := range []llm.ToolResult{notes, said} {
		if o.IsError {
			problems += fmt.Sprintf("%s failed: %s\n", o.Name, o.Text())
		} else {
			found = append(found, hits(o.Text())...)
		}
	}
	words := wordsOf(w.text)
	fits := slices.DeleteFunc(slices.Clone(found), func(h hit) bool {
		return h.asks() || !slices.ContainsFunc(wordsOf(h.text), func(w string) bool { return slices.Contains(words, w) })
	})
	if len(fits) > 0 {
		return quoteHits(fits) + problems
	}
	text := fmt.Sprintf("I found nothing that was said or noted with the words of %q.\n\n", text.Head(w.text, 120))
	if found = slices.DeleteFunc(found, hit.asks); len(found) > 0 {
		text += "The nearest is this:\n\n" + quoteHits(found[:1])
	}
	return text + problems + cannot + " " + connect
}

// asks reports whether a hit is a request of the user, which has no information.
func (h hit) asks() bool {
	k := understand(h.text).kind
	return h.who == "user" && k != statement && k != remember
}

const maxHits = 4 // notes that are quoted, and things that were said

func quoteHits(all []hit) string {
	var notes, said []string
	for _, h := range all {
		line := "> " + text.Head(h.text, 600)
		switch h.who {
		case "":
			notes = append(notes, line+" ("+h.where+")\n")
		case "user":
			said = append(said, "You said "+h.when+":\n"+line+"\n")
		case "assistant":
			said = append(said, "The answer "+h.when+" was:\n"+line+"\n")
		default:
			said = append(said, "A summary "+h.when+" says:\n"+line+"\n")
		}
	}
	var b strings.Builder
	if len(notes) > 0 {
		b.WriteString("In memory:\n" + strings.Join(notes[:min(maxHits, len(notes))], "") + "\n")
	}
	b.WriteString(strings.Join(said[:min(maxHits, len(said))], "\n"))
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// common are words that say nothing about what is searched for.
var common = regexp.MustCompile(`^(?:about|all|also|and|any|are|asked?|can|could|did|does|for|from|had|has|have|her|him|his|how|its|know|let|mean|mention|more|not|off|one|our|out|please|remember|said|say|see|should|some|something|talk|tell|than|that|the|their|them|then|there|these|they|thing|this|was|were|what|when|where|which|who|whom|whose|why|will|with|would|you|your)$`)

// wordsOf returns the words of a text that may say what it is about, without
// common endings.
func wordsOf(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if _, err := strconv.Atoi(w); err != nil && (len(w) < 3 || common.MatchString(w)) {
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
