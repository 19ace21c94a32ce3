package offline

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// kind is what a user wants.
type kind int

const (
	statement kind = iota // nothing that is known here
	greet
	whoami
	help
	clock
	recap
	memories
	run
	remember
	list
	read
	search
	summarise // asked by a program
)

// wish is what was understood of the user's words.
type wish struct {
	kind     kind
	path     string
	text     string // to remember, run or look for
	from, to int    // lines
}

// rules are how a wish can be said, tried in order. A space is any white space,
// an apostrophe either of the two. The whole text must match, ignoring case.
var rules = []struct {
	kind kind
	form string
}{
	{greet, `(?:hi|hello|hey|howdy|good (?:morning|afternoon|evening|night)|thanks|thank you|goodbye|bye|ok|okay|yes|no|great|fine|never mind)(?: (?:there|again|goclaw|a lot|you|all))*`},
	{whoami, `(?:who|what) are you|(?:what|which) (?:model|llm|ai) (?:are you|is this)|are you (?:an? )?(?:real )?(?:ai|llm|language model|chatbot|bot|human|person)`},
	{help, `/?help(?: me)?|what can (?:you do|i (?:do|ask|say))(?: here| for me)?|commands|\?+`},
	{clock, `what(?:'s| is)? (?:the )?(?:current )?(?:time|date|day)(?: is it| is today)?(?: now| today)?|what(?:'s| is) today(?:'s date)?`},
	{recap, `(?:summari[sz]e|recap|sum up)(?: (?:this|it|everything|the|our|conversation|chat|session|so far))*|(?:give me )?a (?:summary|recap)|what (?:did|have) (?:we|i) (?:just )?(?:talk(?:ed)? about|discuss(?:ed)?|sa(?:y|id)|done?)(?: so far)?|where were we`},
	{memories, `what do you (?:remember|know)(?: about me)?|(?:show|list|read)(?: me)? (?:your |my |the )?(?:memory|memories|notes)`},
	{run, `(?:\$|run) {text}`},
	{remember, `(?:remember|note|keep in mind|don't forget)(?: that| this)?(?: ?: ?| ){text}`},
	{list, `(?:list|ls|(?:what|which) files are (?:there|here))(?: (?:the |all |my )?files)?(?: (?:in|of))?(?: {path})?`},
	{read, `(?:read|cat|open|show(?: me)?|what(?:'s| is) in)(?: the)?(?: file)? {path}(?:,? (?:from )?lines? (?P<from>\d+)(?: ?(?:-|to) ?(?P<to>\d+))?)?`},
	{search, `(?:search|find|look)(?: for)? {text}`},
}

var forms = strings.NewReplacer(
	"{path}", `(?P<path>"[^"\n]+"|`+"`[^`\n]+`"+`|[^\s"`+"`"+`]+)`,
	"{text}", `(?P<text>.+)`,
	" ?", `\s*`, " ", `\s+`, "'", `['’]`,
)

// compiled are the rules' forms, made when first needed.
var compiled = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(rules))
	for i, r := range rules {
		out[i] = regexp.MustCompile(`(?is)^(?:` + forms.Replace(r.form) + `)[\s.!?]*$`)
	}
	return out
})

var (
	polite   = regexp.MustCompile(`(?i)^(?:(?:please|hey|hi|hello|ok(?:ay)?|so|now|and|goclaw|(?:can|could|would|will) you)[\s,!:]+)+`)
	question = regexp.MustCompile(`(?i)^(?:what|when|where|which|who|whom|whose|why|how|did|do|does|have|has|is|are|was|were|should|tell me|show me|remind me)\s`)
	toldTo   = regexp.MustCompile(`(?i)\byou\b`)
)

// longest is how many bytes a request may have. A longer text is material.
const longest = 400

// understand makes a wish of the user's words.
func understand(text string) wish {
	text = strings.TrimSpace(text)
	if (strings.HasPrefix(text, "<conversation>") || strings.HasPrefix(text, "<previous-summary>")) && strings.Contains(text, "</conversation>") {
		return wish{kind: summarise, text: text}
	}
	if w := match(text); w.kind != statement {
		return w
	}
	// A pasted text must not be taken for an order: with one, only a search is
	// understood.
	if first, _, many := strings.Cut(text, "\n"); many {
		if w := match(first); w.kind == search {
			return w
		}
	}
	return wish{text: text}
}

// match tries the rules on text without its pleasantries.
func match(text string) wish {
	bare := polite.ReplaceAllString(text, "")
	for i, r := range rules {
		s := bare
		if r.kind == greet {
			s = text
		}
		re := compiled()[i]
		m := re.FindStringSubmatch(s)
		if m == nil || len(s) > longest && r.kind != remember && r.kind != run {
			continue
		}
		w := wish{kind: r.kind}
		for j, name := range re.SubexpNames() {
			w.set(name, m[j])
		}
		if w.meant() {
			return w
		}
	}
	asks := strings.HasSuffix(strings.TrimRight(bare, " .!"), "?") || strings.HasSuffix(bare, "？") || question.MatchString(bare)
	if asks && len(bare) <= longest && !strings.Contains(bare, "\n") && !toldTo.MatchString(strings.TrimSuffix(text, bare)) {
		return wish{kind: search, text: bare}
	}
	return wish{text: text}
}

func (w *wish) set(name, val string) {
	switch name {
	case "path":
		w.path = strings.TrimRight(unquote(val), "?!,;:")
		if !strings.HasSuffix(w.path, "..") && w.path != "." {
			w.path = strings.TrimSuffix(w.path, ".")
		}
	case "text":
		w.text = strings.TrimSpace(val)
	case "from":
		w.from, _ = strconv.Atoi(val)
	case "to":
		w.to, _ = strconv.Atoi(val)
	}
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == s[len(s)-1] && strings.ContainsRune("\"`", rune(s[0])) {
		return s[1 : len(s)-1]
	}
	return s
}

var (
	pathLike = regexp.MustCompile(`[/\\]|^[^/\\]*[^./\\]\.\w*[A-Za-z]\w*$|^(?:README|LICENSE|CHANGELOG|MEMORY|TODO|NOTES|Makefile|Dockerfile|\.\w[\w.-]*)$`)
	inWords  = regexp.MustCompile(`(?i)^(?:the|a|an|my|our|this|that|it|all|some|your)(?:\s|$)`)
	asking   = regexp.MustCompile(`(?i)^(?:when|what|how|who|where|why|which|if)\s`)
)

// maxFact is how long a thing to remember may be: a pasted log that begins
// with "Note:" is not one.
const maxFact = 2000

// meant reports whether a wish is what it looks like: "remember when we met?" is
// a question, and "show me the way" names no file.
func (w *wish) meant() bool {
	switch w.kind {
	case read:
		return pathLike.MatchString(w.path) && !strings.Contains(w.path, "://")
	case list:
		if w.path == "" {
			w.path = "."
		}
		return !strings.Contains(w.path, "://")
	case run:
		return !inWords.MatchString(w.text)
	case remember:
		return len(w.text) <= maxFact && !strings.HasSuffix(w.text, "?") && !asking.MatchString(w.text)
	}
	return true
}
