package offline

import (
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// word is a word as it stands in a text, and the stem by which it is found.
type word struct {
	stem, raw string
	strong    bool // a name or a number
}

// lexicon makes words of texts and remembers the stems it has seen.
type lexicon map[string]string

// words returns the words of text that say something. Scripts without spaces
// give pairs of neighbouring characters.
func (l lexicon) words(text string) []word {
	var out []word
	begins := true // of a sentence: a capital letter says nothing there
	add := func(raw string) {
		first := []rune(raw)[0]
		strong := unicode.IsDigit(first) || strings.ContainsFunc(raw, unicode.IsDigit) || unicode.IsUpper(first) && !begins
		begins = false
		if s := l.stem(raw); s != "" {
			out = append(out, word{s, raw, strong})
		}
	}
	var run []rune // of a script without spaces
	flush := func() {
		if len(run) == 1 {
			out = append(out, word{stem: string(run), raw: string(run)})
		}
		for i := 0; i+1 < len(run); i++ {
			out = append(out, word{stem: string(run[i : i+2]), raw: string(run[i : i+2])})
		}
		run = run[:0]
	}
	start := -1
	for i, r := range text {
		dense := isDense(r)
		inside := !dense && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r))
		if start >= 0 && !inside {
			add(text[start:i])
			start = -1
		}
		if dense {
			run = append(run, r)
			continue
		}
		flush()
		if inside && start < 0 {
			start = i
		}
		begins = begins || strings.ContainsRune(".!?:\n", r)
	}
	if start >= 0 {
		add(text[start:])
	}
	flush()
	return out
}

// isDense reports whether r is of a script that is written without spaces, or
// whose words carry their endings with them.
func isDense(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
}

// stem returns the stem of a word, or "" for one that says nothing.
func (l lexicon) stem(raw string) string {
	if s, ok := l[raw]; ok {
		return s
	}
	w := fold(raw)
	s := ""
	if !stopWords[w] && (len(w) > 1 || unicode.IsDigit(rune(w[0]))) {
		if base, ok := irregular[w]; ok {
			w = base
		}
		s = english.Stem(w, false)
	}
	l[raw] = s
	return s
}

// fold makes case and accents even.
func fold(s string) string {
	s = strings.ToLower(s)
	if strings.IndexFunc(s, func(r rune) bool { return r >= 0x80 }) < 0 {
		return s
	}
	s = strings.ReplaceAll(s, "ß", "ss")
	out := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(s))
	if out == "" {
		return s
	}
	return out
}

// akin reports whether two stems may be forms of one word in a language whose
// endings the stemmer does not know.
func akin(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n >= 5 && len(a)-n <= 3 && len(b)-n <= 3
}

func set(lists ...string) map[string]bool {
	m := map[string]bool{}
	for _, l := range lists {
		for _, w := range strings.Fields(l) {
			m[w] = true
		}
	}
	return m
}

// stopWords carry no topic: the small words of four languages, and the words
// in which one asks what was said.
var stopWords = set(
	`a an the this that these those there here it its is am are was were be been being do does did done have has had having
	i me my mine we us our ours you your yours he him his she her hers they them their who whom whose what which when where why how
	and or but not no nor if then else than so as at by for from in into of off on onto out over to up with without about again
	can could will would shall should may might must just ever already also too very any some all please ok okay yes
	s t d ll m re ve don didn doesn isn wasn again now once more only same other such both each own`,
	`say said says saying tell told mention mentioned talk talked talking discuss discussed ask asked know knew known remember remind recall
	find search look show know give let get got there thing things anything something`,
	`der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren sein bin bist hat habe haben hatte
	ich mich mir mein meine meinen du dich dir dein deine er sie es wir uns unser ihr euch was wer wen wem wann wo warum wie welche welcher welches
	zu zum zur im am an auf aus bei mit nach von vom vor fur uber um als auch noch schon nur denn dass ob sich gesagt erwahnt gesprochen erzahlt bitte`,
	`le la les un une des du de et ou mais ne pas est sont etait suis es etes ai as avons avez ont je j tu il elle nous vous ils elles
	me te se mon ma mes ton ta tes son sa ses notre votre que qu qui quoi quand ou quel quelle quels quelles comment pourquoi dans sur avec sans pour
	par au aux ce cet cette ces ca dit parle mentionne c l n y en`,
	`el los las una unos unas y o pero no es son era soy eres he has ha hemos han yo tu ella nosotros mi mis su sus nuestro que quien
	cuando donde cual cuales como por para con sin sobre en del al lo se si ya muy dije dicho hablamos mencione decir`,
)

// irregular forms that a stemmer does not bring together.
var irregular = map[string]string{
	"bought": "buy", "met": "meet", "went": "go", "gone": "go", "drove": "drive", "driven": "drive", "ate": "eat", "eaten": "eat",
	"flew": "fly", "flown": "fly", "wrote": "write", "written": "write", "chose": "choose", "chosen": "choose", "paid": "pay",
	"sold": "sell", "thought": "think", "found": "find", "left": "leave", "lost": "lose", "made": "make", "sent": "send",
	"spent": "spend", "taught": "teach", "won": "win", "began": "begin", "begun": "begin", "broke": "break", "broken": "break",
	"built": "build", "came": "come", "cost": "cost", "fell": "fall", "felt": "feel", "gave": "give", "given": "give", "grew": "grow",
	"held": "hold", "kept": "keep", "led": "lead", "lent": "lend", "meant": "mean", "ran": "run", "read": "read", "saw": "see",
	"seen": "see", "slept": "sleep", "spoke": "speak", "spoken": "speak", "took": "take", "taken": "take", "wore": "wear",
	"children": "child", "people": "person", "mice": "mouse", "feet": "foot", "teeth": "tooth", "men": "man", "women": "woman",
}
