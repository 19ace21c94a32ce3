package recall

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// maxWord is how many bytes of a word count. What is longer is no word, but
// may be asked for by its beginning.
const maxWord = 40

// word is a word of a text: where its term is counted, and where it stands.
type word struct {
	*list
	from, to int  // bytes of the text
	inner    bool // one character of several, which a query means together
}

// lexer remembers the words it has seen: most words of a text were in another
// before. It is for one goroutine. The zero value is ready.
type lexer struct {
	terms map[string]*list
	seen  map[string]*list // by the word as it is written; nil for a stop word
}

// list returns where a term is counted.
func (l *lexer) list(term string) *list {
	t := l.terms[term]
	if t == nil {
		if l.terms == nil {
			l.terms = map[string]*list{}
		}
		t = &list{term: strings.Clone(term)}
		l.terms[t.term] = t
	}
	return t
}

// maxSeen is how many words are remembered.
const maxSeen = 1 << 17

// look returns where the term of w is counted, nil for a stop word.
func (l *lexer) look(w string) *list {
	t, ok := l.seen[w]
	if ok {
		return t
	}
	if l.seen == nil || len(l.seen) >= maxSeen {
		l.seen = make(map[string]*list, 1024)
	}
	if name := term(w); name != "" {
		t = l.list(name)
	}
	l.seen[strings.Clone(w)] = t
	return t
}

// words calls f for each word of text that is not a stop word, in order, and
// returns how many words there are in all. It takes any text: nothing in it
// is syntax.
func words(text string, f func(w word)) (n int) { return new(lexer).words(text, f) }

func (l *lexer) words(text string, f func(w word)) (n int) {
	for i := 0; i < len(text); {
		// Most of a text is ASCII, of which a table knows all.
		c := text[i]
		if c < utf8.RuneSelf && !wordByte[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			if dense(r) {
				j := denseEnd(text, i+size)
				n += l.pairs(text, i, j, f)
				i = j
				continue
			}
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				i += size
				continue
			}
		}
		j := wordEnd(text, i)
		n++
		if t := l.look(text[i:j]); t != nil {
			f(word{list: t, from: i, to: j})
		}
		i = j
	}
	return n
}

// wordByte are the letters and digits of ASCII.
var wordByte = func() (t [256]bool) {
	for c := range utf8.RuneSelf {
		t[c] = unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
	}
	return t
}()

// wordEnd returns where the word that begins at i ends. An apostrophe belongs
// to a word that goes on behind it.
func wordEnd(text string, i int) int {
	for i < len(text) {
		c := text[i]
		if wordByte[c] {
			i++
			continue
		}
		if c < utf8.RuneSelf && c != '\'' {
			return i
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '\'' || r == '’' {
			next, _ := utf8.DecodeRuneInString(text[i+size:])
			if !unicode.IsLetter(next) {
				return i
			}
		} else if dense(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			return i
		}
		i += size
	}
	return i
}

// denseEnd returns where the characters without spaces end that go on at i.
func denseEnd(text string, i int) int {
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		if !dense(r) && !unicode.IsMark(r) {
			break
		}
		i += size
	}
	return i
}

// dense reports whether r is of a script that puts no spaces between words, or
// writes what belongs to a word onto it, as Korean does.
func dense(r rune) bool {
	return r >= 0x0e00 && (unicode.In(r, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || telling(r))
}

// telling reports whether r is of a script whose characters mean something,
// or nearly so, each by itself.
func telling(r rune) bool {
	switch r {
	case 'ー', 'ｰ', 'ﾞ', 'ﾟ': // kana that Unicode counts to no script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana)
}

// pairs takes each two characters that stand together as a word, and each
// character that may be one. They are what they are composed to: a syllable
// is the same if its letters are written one by one.
func (l *lexer) pairs(text string, from, to int, f func(w word)) (n int) {
	type char struct {
		s        string
		from, to int
	}
	var prev char
	add := func(c char) {
		if prev.s != "" {
			n++
			f(word{l.list(prev.s + c.s), prev.from, c.to, false})
		}
		if r, _ := utf8.DecodeRuneInString(c.s); telling(r) {
			f(word{l.list(c.s), c.from, c.to, prev.s != "" || c.to < to})
		} else if prev.s == "" && c.to == to {
			f(word{l.list(c.s), c.from, c.to, false})
		}
		prev = c
	}
	run := text[from:to]
	if norm.NFKC.IsNormalString(run) {
		for i, r := range run {
			at, size := from+i, utf8.RuneLen(r)
			add(char{text[at : at+size], at, at + size})
		}
		return max(n, 1)
	}
	var it norm.Iter
	it.InitString(norm.NFKC, run)
	for !it.Done() {
		at := from + it.Pos()
		s := string(it.Next())
		for s != "" { // a sign may stand for several
			_, size := utf8.DecodeRuneInString(s)
			add(char{s[:size], at, from + it.Pos()})
			s = s[size:]
		}
	}
	return max(n, 1)
}

// term returns what a word is found by: its stem, without marks, in lower
// case; "" for a stop word.
func term(w string) string {
	ascii := isASCII(w)
	w = strings.ToLower(w)
	if !ascii {
		w = plain(w)
		ascii = isASCII(w)
	}
	if i := strings.IndexByte(w, '\''); i >= 0 {
		switch {
		case strings.HasSuffix(w, "'s"):
			w = w[:len(w)-2]
		case stop[w]:
			return ""
		default:
			w = strings.ReplaceAll(w, "'", "")
		}
	}
	if len(w) > maxWord {
		cut := maxWord
		for !utf8.RuneStart(w[cut]) {
			cut--
		}
		return w[:cut]
	}
	if stop[w] {
		return ""
	}
	if base, ok := irregular[w]; ok {
		w = base
	}
	if !ascii || w == "" || w[0] <= '9' {
		return w
	}
	w = english.Stem(w, false)
	if base, ok := same[w]; ok {
		return base
	}
	return w
}

func isASCII(w string) bool {
	for i := 0; i < len(w); i++ {
		if w[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// plain takes the marks off letters, and writes compatible characters as one.
func plain(w string) string {
	w = strings.ReplaceAll(w, "’", "'")
	var b strings.Builder
	for _, r := range norm.NFKD.String(w) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return folded.Replace(strings.ToLower(b.String()))
}

// folded writes letters as they are written in another case, or by those who
// do not have them.
var folded = strings.NewReplacer("ß", "ss", "ς", "σ", "ı", "i", "ł", "l", "ø", "o", "đ", "d", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe")

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// stop are words that say nothing about what a text is about.
var stop = set(`a about above after again all also am an and any are aren't as at be because been before being below
between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from
further had hadn't has hasn't have haven't having he her here hers herself him himself his how i i'd i'll i'm i've if in into
is isn't it it's its itself just let's me more most my myself no nor not of off on once only or other our ours
ourselves out over own same she should shouldn't so some such than that that's the their theirs them themselves then there
these they they're they've this those through to too under until up us very was wasn't we we're we've were weren't what
what's when where which while who who's whom whose why will with won't would wouldn't you you'd you'll you're you've your
yours yourself yourselves hey hi oh ok okay yeah yes wow gonna wanna`)

// irregular are forms that no stemmer knows.
var irregular = groups(`go went gone goes|buy bought|see saw seen|eat ate eaten|take took taken|give gave given|get got gotten|make made|write wrote written
speak spoke spoken|break broke broken|choose chose chosen|drive drove driven|ride rode ridden|rise rose risen|fall fell fallen|feel felt
find found|fight fought|think thought|teach taught|catch caught|bring brought|build built|send sent|spend spent|lend lent|lose lost
leave left|keep kept|sleep slept|meet met|sell sold|tell told|say said|pay paid|hold held|hear heard|stand stood|understand understood
win won|begin began begun|drink drank drunk|sing sang sung|swim swam swum|run ran|come came|become became|know knew known|grow grew grown
throw threw thrown|fly flew flown|draw drew drawn|wear wore worn|bear bore borne|swear swore sworn|tear tore torn|shake shook shaken
steal stole stolen|freeze froze frozen|wake woke woken|forget forgot forgotten|forgive forgave forgiven|bite bit bitten|hide hid hidden
shoot shot|sit sat|lead led|feed fed|bleed bled|breed bred|speed sped|hang hung|stick stuck|strike struck|dig dug|spin spun|light lit
show shown|sew sewn|mean meant|deal dealt|dream dreamt|learn learnt|burn burnt|bend bent|bind bound|blow blew blown|seek sought|weave wove woven
shine shone|sink sank sunk|shrink shrank shrunk|ring rang rung|spring sprang sprung|cling clung|sweep swept|weep wept|creep crept|kneel knelt
lay laid|lie lain|overcome overcame|withdraw withdrew withdrawn|undergo underwent undergone|prove proven|die dying|tie tying
child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice|goose geese|life lives|wife wives|knife knives|leaf leaves
wolf wolves|half halves|shelf shelves|thief thieves|loaf loaves|calf calves|scarf scarves|good better best|bad worse worst`, func(w string) string { return w })

// same are words that mean the same and differ in use: short forms, spelling,
// what is said in chats. They are stems: their forms are meant as well.
var same = groups(`child kid|movie film|photo photograph photography picture pic|mom mother mum mama mommy|dad father daddy|bike bicycle
tv television|phone telephone cellphone smartphone|vet veterinarian|doctor physician|math mathematics maths|gym gymnasium
fridge refrigerator|ad advertisement advert|uni university|xmas christmas|favourite favorite fave fav|colour color|theatre theater|centre center
travel travelling|grey gray|jewelry jewellery|neighbor neighbour|organise organize|realise realize|recognise recognize|practice practise
program programme|catalog catalogue|dialog dialogue|humor humour|honor honour|behavior behaviour|flavor flavour|license licence|defense defence
business biz|family fam|tournament tourney|grandma grandmother granny|grandpa grandfather granddad|aunt auntie|puppy pup
info information|video vid|conversation convo|vegetable veggie|birthday bday|vacation vacay|husband hubby|professor prof|brother bro|sister sis
thanks thank thx|congratulations congrats|plane airplane aeroplane
argument argue|decision decide|choice choose|success succeed|loss lose|growth grow|death die|birth born|belief believe|proof prove
marriage marry|arrival arrive|departure depart|survival survive|approval approve|proposal propose|refusal refuse|analysis analyze analyse
advice advise|speech speak|flight fly|sale sell|knowledge know|strength strong|length long|width wide|height high|depth deep
hungry hunger|angry anger|anxious anxiety|pregnant pregnancy|allergic allergy|injury injure|explanation explain|description describe
pronunciation pronounce|maintenance maintain|reception receive|deception deceive|destruction destroy|production produce|reduction reduce
introduction introduce|inclusion include|conclusion conclude|extension extend|expansion expand|permission permit|admission admit|submission submit`, func(w string) string { return english.Stem(w, false) })

// groups reads lists of words, the first of which stands for all.
func groups(lists string, as func(string) string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(lists, "\n") {
		for _, group := range strings.Split(line, "|") {
			f := strings.Fields(group)
			for _, w := range f[1:] {
				if _, ok := m[as(w)]; !ok && as(w) != as(f[0]) {
					m[as(w)] = as(f[0])
				}
			}
		}
	}
	return m
}

// everyWord calls f for the terms of text, be they stop words or not.
func everyWord(text string, f func(term string)) {
	words(text, func(w word) { f(w.term) })
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if t := term(w); t != "" {
			f(t)
		}
	}
}
