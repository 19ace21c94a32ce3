package recall

import (
	"strings"
	"unicode"

	"goclaw/internal/text"
	"goclaw/recall/embed"
)

// knowing is an Embedder that does not know all languages. A text that it does
// not know gets no vector: it would say nothing, or something wrong.
type knowing interface{ Knows(text string) bool }

// knows reports whether the model may be asked for the vector of a text.
func (e *embedding) knows(text string) bool {
	k, ok := e.model.(knowing)
	return !ok || k.Knows(text)
}

// Knows reports whether text is English, or may be.
func (Local) Knows(s string) bool {
	t := toldBy(text.Head(s, maxTold))
	switch {
	case t.letters == 0 || 5*t.foreign > t.letters:
		return false
	case t.english+t.other > 0:
		return t.english > t.other+t.marked
	case 2*t.marked > t.words:
		return false
	}
	// None of the words tells. Those of other languages, and most names in
	// code, are not in the vocabulary of the model: it cuts them into pieces.
	return float64(embed.Load().Pieces(text.Head(s, maxTold))) <= maxPieces*float64(t.words)
}

const (
	maxTold   = 600 // bytes of a text that tell its language
	maxPieces = 2.5 // that the words of an English text have on average, at most
)

// told is what tells the language of a text.
type told struct {
	letters, foreign      int // foreign: of another script than the Latin one
	words, english, other int // english and other: words that only English has, that only others have
	marked                int // words with a letter that English does not have
}

func toldBy(s string) (t told) {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || r == '\'' || r == '’' }
	for w := range strings.FieldsFuncSeq(s, func(r rune) bool { return !word(r) }) {
		marked := false
		for _, r := range w {
			if !unicode.IsLetter(r) {
				continue
			}
			t.letters++
			if !unicode.Is(unicode.Latin, r) {
				t.foreign++
			}
			marked = marked || r > unicode.MaxASCII
		}
		t.words++
		w = strings.ToLower(strings.ReplaceAll(w, "’", "'"))
		switch {
		case onlyEnglish[w]:
			t.english++
		case onlyOthers[w] || elided(w):
			t.other++
		case marked:
			t.marked++
		}
	}
	return t
}

// elided reports whether a word begins as French ones do before a vowel.
func elided(w string) bool {
	before, after, ok := strings.Cut(w, "'")
	return ok && len(after) > 1 && (before == "qu" || len(before) == 1 && strings.Contains("cdjlmnst", before))
}

// onlyEnglish are words that English sentences are made of, and those of other
// languages are not.
var onlyEnglish = wordSet(`the and with that this from have what when where which who how why you your my our their they she his her it it's its
i'm i've i'll don't does did done can could should would there about because into than then these those were been being are isn't doesn't didn't can't won't
we're you're let's not for is but by any some only just after before please of to we if at use used using need get got make made new
like know think want time back out up now here more other first last which while each every both than too very much many most never always
if else true false return error file test run fix add read write check look next find found work works show see day year week today yesterday tomorrow`)

// onlyOthers are such words of German, French, Spanish, Italian, Portuguese,
// Dutch, the Scandinavian languages, Polish, Turkish and Finnish.
var onlyOthers = wordSet(`der das und ist nicht ich wir sie ein eine einen einer eines einem mit auf von dem den des zu bei oder aber wenn wie wer wo wann warum welche
welcher welches haben hatte sind wird werden kann nach noch nur auch dass sich durch ohne gegen mein meine meinen unser unsere unseren dein ihr ihre vom zum zur
bitte schon heute gestern morgen immer wieder mir mich uns hier dann weil soll sollte muss gibt keine kein
le la les une du et est dans que qui avec sont nous vous ils elle elles au aux ce cette ces mes notre votre leur quand comment pourquoi mais donc avoir fait quel
quelle je tu ne pas chez cela tout tous sans sous depuis
el los las uno del por para con pero como donde cuando quien mi su sus nuestro nuestra muy hay fue ser tiene porque este esta esto ya hoy ayer sin sobre
il gli della di che non sono nel nella alla dei delle questo questa dove mio mia anche ho sulla degli
os um uma dos das em na nos nas com meu minha seu sua tem foi onde quem isso
het een ik je niet dat voor zijn maar ook als bij uit naar heeft hebben wordt waar wanneer waarom wat onze mijn deze wij
och det att som inte jag av ett og ikke til jeg hvordan hvor vad hur ett
nie jest na jak gdzie kiedy dla przez ma tak
bir ve bu ne ile gibi
ja ei se mutta kun joka`)

func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}
