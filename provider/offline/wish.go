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
	thank
	bye
	nod
	whoami
	help
	clock
	recap
	firstWords
	lastWords
	memories
	run
	grep
	write
	appendTo
	create
	replace
	remember
	forget
	findIn
	list
	read
	digest // of a file
	openSession
	recall
)

// wish is what was understood of the user's words.
type wish struct {
	kind     kind
	path     string
	text     string // to write, remember, run or look for
	old, new string
	from, to int // lines
	all      bool
	tree     bool
	sure     bool // the form leaves no doubt: "file", "that", a colon, quotes
	attached string
}

// rule is one way to put a wish. In its form a space is any white space, an
// apostrophe either of the two, and {path}, {text}, {old}, {new} are what is
// asked about. The whole text must match, in any case of letters.
type rule struct {
	kind kind
	form string
	// ok refuses a wish that only looks like one.
	ok func(*wish) bool
}

// rules are tried in order.
var rules = []rule{
	{greet, `(?:hi|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day)|hallo|servus|moin|guten (?:tag|morgen|abend)|bonjour|bonsoir|salut|hola|buenos d[ií]as|buenas(?: tardes| noches)?|ciao|你好|こんにちは)(?:,? (?:there|again|goclaw|all|everyone|zusammen))?`, nil},
	{thank, `(?:ok,? )?(?:many )?(?:thanks|thank you|thx|cheers|danke(?:sch[öo]n)?|vielen dank|merci(?: beaucoup)?|(?:muchas )?gracias)(?:[ ,].{0,30})?`, nil},
	{bye, `(?:good)?bye(?: bye)?|see you(?: later)?|good night|tsch[üu]ss|auf wiedersehen|gute nacht|au revoir|bonne nuit|adi[óo]s|hasta luego`, nil},
	{nod, `ok(?:ay)?|yes|yep|yeah|no|nope|sure|fine|great|good|nice|cool|perfect|got it|i see|all right|never ?mind|forget (?:it|that)|ja|nein|gut|oui|non|d'accord|s[ií]|vale|bien`, nil},

	{whoami, `(?:who|what) are you(?: exactly| really)?|(?:what|which) (?:model|llm|ai)(?: (?:are you|is this|am i (?:talking|speaking) (?:to|with)|do you use))?|are you (?:an? |really |the )*(?:ai|a\.i\.|llm|language model|real model|chatbot|bot|human|person|machine|gpt|chatgpt|claude|offline|real)(?: model)?|wer bist du|was bist du|bist du (?:ein |eine )?(?:ki|sprachmodell|mensch)|qui es[- ]tu|qui [êe]tes[- ]vous|(?:qui[ée]n|qu[ée]) eres`, nil},
	{help, `/?help(?: me)?|what (?:can|could) (?:you|i) (?:do|ask)(?: here| for me| you)?|how (?:do you work|does this work|can you help(?: me)?)|what do you do|commands|\?+|hilfe|hilf mir|was kannst du(?: alles| tun| machen)?|aide(?:[- ]moi)?|que (?:peux[- ]tu|sais[- ]tu) faire|ayuda|ay[úu]dame|qu[ée] (?:puedes|sabes) hacer`, nil},

	{clock, `(?:what(?:'s| is)|tell me|give me|show(?: me)?|which) (?:the )?(?:current |local |exact )*(?:time|date)(?: and (?:the )?(?:date|time))?(?: (?:is it|now|today|is today|please))*(?: in {path})?`, nil},
	{clock, `what (?:time|date|day|weekday|day of the week)(?: is (?:it|today))?(?: (?:now|today|right now))?(?: in {path})?|what(?:'s| is) today(?:'s date)?|current (?:time|date)|wie sp[äa]t ist es(?: jetzt)?|wie ?viel uhr ist es|(?:welcher tag|welches datum|der wievielte) (?:ist|haben wir) (?:heute|es)|quelle heure est[- ]il|quel jour (?:sommes[- ]nous|est[- ]on)|quelle est la date(?: d'aujourd'hui)?|qu[ée] (?:hora|d[ií]a|fecha) es(?: hoy)?`, nil},

	{firstWords, `what (?:did i (?:first )?(?:say|ask|write)(?: you)? (?:first|at the (?:start|beginning))|(?:was|were) (?:my|the) (?:very )?first (?:message|question|words|request|thing i (?:said|asked))(?: about)?)|what did i first (?:say|ask)(?: you)?`, nil},
	{lastWords, `what (?:did i (?:just |last )?(?:say|ask|write|tell you)(?: you| just now| last| before)?|(?:was|were) (?:my|the) (?:last|previous) (?:message|question|words|request)|was i saying)|repeat (?:that|what i said|my last message)|say (?:that|it) again|was habe ich (?:gerade |zuletzt )?(?:gesagt|gefragt)|qu'est[- ]ce que j'ai dit|qu'ai[- ]je dit|qu[ée] (?:dije|he dicho|acabo de decir)`, nil},
	{recap, `(?:summari[sz]e|recap|sum up|tl;?dr|digest)(?: (?:this|that|it|everything|all(?: of (?:this|it))?|the|our|my|whole|entire|chat|conversation|discussion|session|talk|so far|until now|please))*|(?:give me |make |write )?(?:a |the )?(?:short |brief |quick )?(?:summary|recap|overview)(?: (?:of|this|our|the|conversation|chat|session|so far|please))*`, nil},
	{recap, `what (?:did|have|were|are) (?:we|i) (?:been )?(?:talk(?:ed|ing)?(?: about)?|discuss(?:ed|ing)?|do(?:ne|ing)?|work(?:ed|ing)? on|cover(?:ed)?|say|said)(?: (?:so far|until now|today|here|earlier|before|already))*|where (?:were|are) we|where did we (?:stop|leave off)|what happened(?: so far)?|fasse? (?:(?:das|alles|es|unser gespr[äa]ch|bitte) )*zusammen|zusammenfassung|wor[üu]ber haben wir (?:geredet|gesprochen)|r[ée]sume(?:[rz])?(?: .{0,30})?|de quoi (?:avons[- ]nous|a[- ]t[- ]on) parl[ée]|resume(?:n)?(?: .{0,30})?|de qu[ée] hemos hablado`, nil},
	{memories, `what (?:do|did) you (?:remember|know)(?: about (?:me|us))?|what(?:'s| is) in (?:your |my |the )?(?:memory|memories|notes)|(?:show|list|read|print|display|open)(?: me)? (?:all )?(?:of )?(?:your |my |the )?(?:memory|memories|notes)|was wei[ßs]+t du (?:[üu]ber mich|noch)|que sais[- ]tu (?:de|sur) moi|qu[ée] (?:sabes|recuerdas) (?:de|sobre) m[ií]`, nil},

	{run, `\$ {text}`, nil},
	{run, `(?:run|execute|exec|ex[ée]cute|ejecuta) (?:the (?:shell )?command |this ?: ?)?{text}`, nil},
	{run, `f[üu]hre {text} aus`, nil},
	{grep, `(?:which|what) files? (?:mentions?|contains?|uses?|have|has|say) {old}|(?:search|grep|look) (?:through |in )?(?:the |all |my )*(?:files|workspace|code|project|directory|folder) for {old}|grep(?: -\w+)? {old}|where (?:is|are) {old} (?:used|defined|mentioned|declared)(?: in the (?:files|workspace|code|project))?`, nil},

	{replace, `(?:replace|substitute|ersetze) (?P<all>all |every |alle )?(?:occurrences of )?{old} (?:with|by|durch) {new} in (?:the )?(?:file )?{path}(?P<all> everywhere)?`, pathLike},
	{replace, `(?:remplace|reemplaza) (?P<all>tous les |todos los )?{old} (?:par|por) {new} (?:dans|en) (?:le |el )?(?:fichier |archivo |fichero )?{path}`, pathLike},
	{replace, `in (?:the )?(?:file )?{path},? replace (?P<all>all |every )?(?:occurrences of )?{old} (?:with|by) {new}`, pathLike},
	{replace, `change (?P<all>all |every )?{quoted} to {new} in (?:the )?(?:file )?{path}`, pathLike},
	// "add tests to main.go" asks for work, not for those words: but for append
	// and a colon, what is to be written must stand in quotes.
	{appendTo, `append (?:the line |the text )?{text} to (?:the )?(?:end of )?(?:the )?(?P<sure>file )?{path}`, pathLike},
	{appendTo, `add (?:the line |the text )?{literal} to (?:the )?(?:end of )?(?:the )?(?P<sure>file )?{path}`, pathLike},
	{appendTo, `(?:append|add) to (?:the )?(?P<sure>file )?{path} ?: ?{text}`, pathLike},
	{write, `(?:write|create|make|save) (?:an? |the |new )*(?P<sure>file )?(?:named |called )?{path} ?: ?{text}`, pathLike},
	{create, `(?:create|make) (?:an? |the |new )*(?P<sure>file )?(?:named |called )?{path} (?:with|containing|saying)(?: (?:the )?(?:text|contents?|words))?(?: ?: ?| ){text}`, pathLike},
	{write, `(?:write|save|put|schreibe?|[ée]cris|escribe|guarda) {literal} (?:to|into|in|as|dans|en|als) (?:an? |the |die |eine |le |el |new )*(?P<sure>file |datei |fichier |archivo )?(?:named |called )?{path}`, pathLike},
	{create, `(?:erstelle|erzeuge|cr[ée]e|crea) (?:die |eine |le |un |el )?(?P<sure>datei |fichier |archivo |fichero )?{path}(?: ?: ?| (?:mit|avec|con)(?: ?: ?| )){text}`, pathLike},
	{create, `(?:create|make|touch|erstelle|cr[ée]e|crea) (?:an? |the |new |empty |eine |un |leere )*(?P<sure>file |datei |fichier |archivo )?(?:named |called )?{path}`, pathLike},

	{remember, `(?:remember|memori[sz]e|note(?: down)?|make a note|take a note|write down|jot down|keep in mind|(?:do not|don'?t|never) forget|save to memory|add to (?:your |my )?memory) ?(?P<sure>that |this ?: ?|of |to |: ?)(?:that )?{text}`, aFact},
	{remember, `(?:remember|memori[sz]e|note down|write down|jot down|keep in mind|(?:do not|don'?t|never) forget),? {text}`, aFact},
	{remember, `(?:remember|memori[sz]e|note|keep|save|write down) (?:this|that|it)`, nil},
	{remember, `(?:merke? dir|denke? (?:daran|dran)|vergiss nicht|notiere?(?: dir)?) ?,? ?(?P<sure>dass |: ?)?{text}`, aFact},
	{remember, `(?:souviens[- ]toi|rappelle[- ]toi|retiens|n'oublie pas) ?(?P<sure>que |qu'|de |d'|: ?)?{text}|note (?:que |qu'|: ?){text}`, aFact},
	{remember, `(?:recuerda|acu[ée]rdate(?: de)?|no (?:te )?olvides|anota|apunta) ?(?P<sure>que |: ?)?{text}`, aFact},
	{forget, `(?:forget|unlearn|vergiss|oublie|olvida) (?:about |that |everything about |dass |que )?{text}`, nil},

	{findIn, `(?:search|grep|find|look)(?: for)? {old} in (?:the )?(?P<sure>file )?{path}|what does {path} say about {old}|grep {old} {path}|where is {old} in (?:the )?(?P<sure>file )?{path}`, pathLike},
	{list, `(?:ls|dir|(?P<tree>tree)|list)(?: -\w+)?(?: (?:all|the|my|files?|folders?|directories|contents?|everything|entries|and))*(?: (?:in|of|under|from|inside|below))?(?: (?:the |my |this |current )*(?:directory|folder|workspace)| (?:the )?(?:directory |folder )?{path}(?: (?:directory|folder))?)?`, aPlace},
	{list, `(?:what|which)(?: other)? (?:files|folders|directories|documents)(?: (?:are|do (?:i|we|you) have|exist|can you see|is))?(?: there| here)?(?: (?:in|under|below|inside) (?:(?:the |my |this )*(?:workspace|folder|directory)|(?:the )?(?:folder |directory )?{path}(?: (?:folder|directory))?))?`, aPlace},
	{list, `(?:show|give)(?: me)? (?:a list of )?(?:all )?(?:the |my )?(?:files|folders|directory|workspace)(?: (?:in|under|of) (?:the )?(?:folder |directory )?{path})?|what(?:'s| is) (?:in|inside) (?:(?:the |my |this )+(?:workspace|directory|folder)|(?:the )?(?:folder|directory) {path}|(?:the )?{path} (?:folder|directory))|what(?:'s| is) here`, aPlace},
	{list, `(?:liste|zeige?)(?: mir)?(?: bitte)? (?:die |alle )*(?:dateien|ordner)(?: (?:in|im) (?:(?:der |dem )?(?:ordner |verzeichnis )?{path}))?(?: auf)?|welche dateien (?:gibt es|sind da|liegen|sind)(?: (?:in|im) (?:ordner |verzeichnis )?{path})?|(?:liste|montre(?:[- ]moi)?|affiche)(?: tous)? les (?:fichiers|dossiers)(?: dans (?:le dossier )?{path})?|quels fichiers (?:y a[- ]t[- ]il|sont l[àa]|existent)(?: dans (?:le dossier )?{path})?|(?:lista|mu[ée]strame|muestra)(?: todos)? los (?:archivos|ficheros)(?: en (?:la carpeta )?{path})?|qu[ée] (?:archivos|ficheros) hay(?: en (?:la carpeta )?{path})?`, aPlace},

	{openSession, `(?:read|show|open)(?: me)? (?:the )?session {path}`, nil},
	{read, `(?:read|cat|open|view|less)(?: me| us)? (?:the |my )*(?:contents? of )?(?:the )?(?P<sure>file )?{path}(?: file)?{lines}`, aName},
	{read, `(?:show|display|print)(?: me| us)? (?:the |my )*(?:contents? of )?(?:the )?(?P<sure>file )?{path}(?: file)?{lines}`, pathLike},
	{read, `(?:read|show(?: me)?|print) lines? (?P<from>\d+)(?: ?(?:-|–|to) ?(?P<to>\d+))? (?:of|in|from) (?:the )?(?:file )?{path}`, aName},
	{read, `what(?:'s| is) (?:in|inside) (?:the )?(?P<sure>file )?{path}`, aName},
	{read, `what does (?:the )?(?P<sure>file )?{path} (?:say|contain)`, pathLike},
	{read, `(?:lies|lese|[öo]ffne|zeige?)(?: mir)?(?: bitte)? (?:die |den |das )*(?:inhalt von )?(?P<sure>datei )?{path}(?: vor| an)?|was steht in (?:der datei )?{path}`, pathLike},
	{read, `(?:lis|ouvre|affiche|montre(?:[- ]moi)?) (?:le |la )?(?P<sure>fichier )?{path}|(?:que contient|qu'y a[- ]t[- ]il dans) (?:le fichier )?{path}`, pathLike},
	{read, `(?:lee|abre|mu[ée]strame|muestra) (?:el |la )?(?P<sure>archivo |fichero )?{path}|qu[ée] (?:hay|dice) en (?:el )?(?:archivo |fichero )?{path}`, pathLike},
	{digest, `(?:summari[sz]e|recap|sum up|give me (?:a )?summary of|fasse?|r[ée]sume|resume) (?:the |die |le |el )*(?P<sure>file |datei |fichier |archivo )?{path}(?: zusammen)?`, pathLike},

	{recall, `(?:search|find|look up|look for|lookup|search for|suche?(?: nach)?|finde|cherche|trouve|busca|encuentra)(?: for)?(?: (?:in|my|your|the|memory|notes|our|conversation|chat|for))* {text}`, nil},
}

const (
	pathForm = `(?P<path>"[^"\n]+"|'[^'\n]+'|` + "`[^`\n]+`" + `|[^\s"'` + "`" + `]+)`
	partForm = `"[^"\n]*"|` + "`[^`\n]*`" + `|'[^'\n]*'|.+?`
)

var forms = strings.NewReplacer(
	"{path}", pathForm,
	"{text}", `(?P<text>.+)`,
	"{old}", `(?P<old>`+partForm+`)`,
	"{new}", `(?P<new>`+partForm+`)`,
	"{quoted}", `(?P<old>"[^"\n]+"|`+"`[^`\n]+`"+`)`,
	"{literal}", `(?P<text>"[^"]+"|`+"`[^`]+`"+`|this|that|it)`,
	"{lines}", `(?:[\s,]+(?:from\s+|at\s+|starting\s+at\s+)?lines?\s+(?P<from>\d+)(?:\s*(?:-|–|to|until)\s*(?P<to>\d+))?)?`,
	" ?", `\s*`,
	" ", `\s+`,
	"'", `['’]`,
)

var group = regexp.MustCompile(`\(\?P<\w+>`)

// compiled are the rules' forms, made when first needed.
var compiled = sync.OnceValue(func() []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(rules))
	for i, r := range rules {
		n := 0
		form := group.ReplaceAllStringFunc(forms.Replace(r.form), func(g string) string {
			n++ // a name may stand for one group only
			return strings.TrimSuffix(g, ">") + "_" + strconv.Itoa(n) + ">"
		})
		out[i] = regexp.MustCompile(`(?is)^(?:` + form + `)[\s.!?…]*$`)
	}
	return out
})

var polite = regexp.MustCompile(`(?i)^(?:(?:please|pls|hey|hi|hello|ok(?:ay)?|so|now|well|and|then|goclaw|bitte|kannst du|k[öo]nntest du|s['’]il (?:te|vous) pla[iî]t|peux[- ]tu|pouvez[- ]vous|por favor|puedes|podr[ií]as|(?:can|could|would|will) you|i(?:['’]d like| want) you to)[\s,!:]+)+`)

// longest is how long a request in words may be. What is longer is something
// to be kept or looked at, with a request before or behind it.
const longest = 400

// understand makes a wish of the user's words.
func understand(text string) wish {
	text = strings.TrimSpace(text)
	if w := match(text); w.kind != statement {
		return w
	}
	first, rest, many := strings.Cut(text, "\n")
	if !many {
		return wish{text: text}
	}
	// A text that came along must not be taken for an order to change
	// something: only what looks is understood beside it.
	if w := match(first); looks(w.kind) {
		w.attached = rest
		return w
	}
	at := strings.LastIndex(text, "\n")
	if w := match(text[at+1:]); looks(w.kind) {
		w.attached = text[:at]
		return w
	}
	return wish{text: text}
}

// looks reports whether a wish only looks at something.
func looks(k kind) bool { return k == recall || k == read || k == list || k == findIn || k == digest }

// idle reports whether a wish says nothing that could be asked for later.
func idle(k kind) bool {
	switch k {
	case statement, recall, remember, write, appendTo, create, replace, run:
		return false
	}
	return true
}

// match tries the rules on text, as it is and without its pleasantries.
func match(text string) wish {
	text = strings.TrimSpace(text)
	bare := strings.TrimLeft(polite.ReplaceAllString(text, ""), "¿¡ ")
	for i, r := range rules {
		s := bare
		if r.kind <= nod {
			s = text
		}
		if len(s) > longest && (r.kind < run || r.kind > forget) {
			continue
		}
		re := compiled()[i]
		m := re.FindStringSubmatch(s)
		if m == nil {
			continue
		}
		w := wish{kind: r.kind}
		for j, name := range re.SubexpNames() {
			if m[j] != "" {
				name, _, _ = strings.Cut(name, "_")
				w.set(name, m[j])
			}
		}
		if r.ok == nil || r.ok(&w) {
			return w
		}
	}
	if len(bare) <= longest && !strings.Contains(bare, "\n") && (asksFirst.MatchString(bare) || isQuestion(bare) && !askedTo(text, bare)) {
		return wish{kind: recall, text: bare}
	}
	return wish{text: text}
}

func (w *wish) set(name, val string) {
	switch name {
	case "path":
		w.sure = w.sure || val[0] == '`' || val[0] == '"'
		w.path = trimPath(val)
	case "text":
		w.text = strings.TrimSpace(val)
	case "old":
		w.old = unquote(val)
	case "new":
		if w.new = unquote(val); strings.EqualFold(val, "nothing") {
			w.new = ""
		}
	case "from":
		w.from, _ = strconv.Atoi(val)
	case "to":
		w.to, _ = strconv.Atoi(val)
	case "all":
		w.all = true
	case "sure":
		w.sure = true
	case "tree":
		w.tree = true
	}
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == s[len(s)-1] && strings.ContainsRune("\"'`", rune(s[0])) {
		return s[1 : len(s)-1]
	}
	return s
}

// trimPath takes a path out of a sentence.
func trimPath(s string) string {
	if q := unquote(s); q != s {
		return q
	}
	t := strings.TrimRight(s, "?!,;:")
	if t != "." && !strings.HasSuffix(t, "..") {
		t = strings.TrimSuffix(t, ".")
	}
	return t
}

var (
	hasExtension = regexp.MustCompile(`^[^/\\]*[^./\\]\.[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*$`)
	knownFile    = regexp.MustCompile(`^(?:README|LICEN[CS]E|CHANGELOG|MEMORY|TODO|NOTES|AGENTS|Makefile|makefile|Dockerfile|go\.mod|\.[A-Za-z][\w.-]*)$`)
)

// pathLike: the path looks like one, or is called one.
func pathLike(w *wish) bool {
	if w.path == "" || strings.Contains(w.path, "://") {
		return false
	}
	return w.sure || strings.ContainsAny(w.path, `/\`) || hasExtension.MatchString(w.path) || knownFile.MatchString(w.path)
}

// aName: any single word can be a file's name, but for those that point.
func aName(w *wish) bool {
	switch strings.ToLower(w.path) {
	case "", "it", "on", "more", "this", "that", "them", "again", "further":
		return w.sure && w.path != ""
	}
	return !strings.Contains(w.path, "://")
}

// aPlace: what is listed is a directory, this one if none is named.
func aPlace(w *wish) bool {
	switch strings.ToLower(w.path) {
	case "", "here", "workspace", "files", "it", "there":
		w.path = "."
	}
	return !strings.Contains(w.path, "://")
}

var asks = regexp.MustCompile(`(?i)^(?:when|what|how|who|whom|whose|where|why|which|if|the time|wann|was|wie|wer|wo|warum|quand|quoi|comment|qui|o[ùu]|cu[áa]ndo|qu[ée]|c[óo]mo|qui[ée]n|d[óo]nde)[\s,?]`)

// maxFact is how long a thing to remember may be: a pasted log that begins
// with "Note:" is none.
const maxFact = 2000

// aFact: "remember when we met?" asks, "remember that we met" tells.
func aFact(w *wish) bool {
	if w.sure {
		return len(w.text) <= maxFact
	}
	return !strings.HasSuffix(w.text, "?") && !asks.MatchString(w.text) && len(w.text) <= maxFact
}

// askedTo reports whether bare is something to do: "can you paint it?"
func askedTo(text, bare string) bool {
	return wouldYou.MatchString(strings.TrimSuffix(text, bare))
}

var wouldYou = regexp.MustCompile(`(?i)\b(?:you|kannst|k[öo]nntest|peux|pouvez|puedes|podr[ií]as)\b`)

var asksFirst = regexp.MustCompile(`(?i)^(?:what|when|where|which|who|whom|whose|why|how|did|do|does|have|has|is|are|was|were|can|could|should|will|would|am|tell me|show me|remind me|was|wann|wo|welche[rsmn]?|wer|wen|wem|warum|wieso|wie|habe|hast|hat|ist|sind|erinnerst|quand|quoi|que|qu['’]|o[ùu]|quel(?:le)?s?|qui|pourquoi|comment|combien|est[- ]ce|ai[- ]je|qu[ée]|cu[áa]ndo|d[óo]nde|cu[áa]l(?:es)?|qui[ée]n|por qu[ée]|c[óo]mo|cu[áa]nt[oa]s?|dije|recuerdas)(?:\s|$|['’])`)

func isQuestion(s string) bool {
	s = strings.TrimRight(s, " .!")
	return strings.HasSuffix(s, "?") || strings.HasSuffix(s, "？") || asksFirst.MatchString(s) || strings.HasPrefix(s, "qu'")
}
