package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"

	"goclaw/internal/parts"
)

// The parts of reading words that a benchmark can leave out.
var (
	partIrregular = parts.New("irregular forms", parts.Index)
	partSame      = parts.New("words that mean the same", parts.Index)
)

// maxWord is how many bytes of a word count. A longer one is found by its
// beginning.
const maxWord = 40

// Term returns what a word is found by: its stem, without marks, in lower
// case; "" for a stop word.
func Term(w string) string {
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
	if base, ok := irregular[w]; ok && partIrregular.On() {
		w = base
	}
	if !ascii || w == "" || w[0] <= '9' {
		return w
	}
	w = english.Stem(w, false)
	if base, ok := same[w]; ok && partSame.On() {
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

// plain takes the marks off letters and unifies compatible characters.
func plain(w string) string {
	w = strings.ReplaceAll(w, "’", "'")
	var b strings.Builder
	for _, r := range norm.NFKD.String(w) {
		if !unicode.Is(unicode.Mn, r) {
			b.WriteRune(r)
		}
	}
	return spelled.Replace(strings.ToLower(b.String()))
}

// spelled writes letters as they are in another case, or on keyboards that do
// not have them.
var spelled = strings.NewReplacer("ß", "ss", "ς", "σ", "ı", "i", "ł", "l", "ø", "o", "đ", "d", "ð", "d", "þ", "th", "æ", "ae", "œ", "oe")

// set returns the words of a list.
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

// irregular are forms that stemmers do not know.
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

// same are words that mean the same: short forms, spellings, what people write
// in chats. They are stems, so that all forms of a word are covered.
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
			first := as(f[0])
			for _, w := range f[1:] {
				w = as(w)
				if _, ok := m[w]; !ok && w != first {
					m[w] = first
				}
			}
		}
	}
	return m
}
