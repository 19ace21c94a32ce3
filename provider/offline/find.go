package offline

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/llm"
)

// passage is a piece of text that can be quoted.
type passage struct {
	text   string
	words  []word
	label  string  // what is said before the quote
	where  string  // where it stands, in a few words
	weight float64 // how much its source counts
	thread int     // passages of one thread that stand side by side belong together
	who    speaker
	asks   bool
	turn   int // index of the utterance it comes from
}

// hit is a passage that was found.
type hit struct {
	passage
	score float64
	cover float64 // how much of the question's weight it holds, 0 to 1
	also  []string
	reply string // what was said to it, if it asks
	by    speaker
}

// library is everything that is searched for one question.
type library struct {
	lex      lexicon
	passages []passage
}

const (
	maxPassage = 400 // bytes; longer lines are cut at sentences
	maxQuote   = 320
	maxHits    = 3
)

// add cuts text into passages. line is the number of its first line, which is
// added to where, or 0 if lines are not named. A label may hold where as {}.
func (l *library) add(p passage, text string, line int) {
	fenced := false
	for s := range strings.Lines(text) {
		n := line
		if line > 0 {
			line++
		}
		s = strings.TrimSpace(s)
		if strings.HasPrefix(s, "```") {
			fenced = !fenced
		}
		if s == "" || strings.HasPrefix(s, "```") || p.who == assistant && !fenced && (s[0] == '>' || s[len(s)-1] == ':') {
			continue // what is quoted stands somewhere else; what ends so only announces
		}
		for _, part := range sentences(s) {
			q := p
			q.text, q.words = part, l.lex.words(part)
			if n > 0 {
				q.where += fmt.Sprintf(":%d", n)
			}
			q.label = strings.Replace(p.label, "{}", q.where, 1)
			q.asks = strings.HasSuffix(part, "?") || strings.HasSuffix(part, "？")
			l.passages = append(l.passages, q)
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?。！？]["')\]]*(?:\s+|$)|[。！？]`)

// sentences cuts a long line at the ends of sentences, and one that has none
// anywhere.
func sentences(s string) []string {
	var out []string
	for len(s) > maxPassage {
		cut := 0
		for _, m := range sentenceEnd.FindAllStringIndex(s[:len(clip(s, maxPassage))], -1) {
			cut = m[1]
		}
		if cut == 0 {
			cut = strings.LastIndexByte(s[:maxPassage], ' ') + 1
		}
		if cut == 0 {
			cut = max(1, len(clip(s, maxPassage)))
		}
		if t := strings.TrimSpace(s[:cut]); t != "" {
			out = append(out, t)
		}
		s = strings.TrimSpace(s[cut:])
	}
	if s != "" {
		out = append(out, s)
	}
	return out
}

// conversation puts what was said into the library. Of tool output it leaves
// out what was read from memory: that is read anew.
func (l *library) conversation(t *turn) {
	for i, u := range t.past {
		p := passage{who: u.who, turn: i}
		switch u.who {
		case user:
			if t.answeredByMe(i) && isQuestion(u.text) {
				continue
			}
			p.weight, p.where = 1.5, fmt.Sprintf("your message %d of %d", u.n, t.spoken+1)
			p.label = "You said ({}):"
		case assistant:
			if isMine(u.text) {
				continue
			}
			p.weight, p.where = 0.8, fmt.Sprintf("the answer to your message %d", u.n)
			p.label = fmt.Sprintf("The answer to your message %d said:", u.n)
		case summary:
			p.weight, p.where, p.label = 1, "the summary", "The summary of what came before says:"
		case tool:
			path := argOf(u.call, "path", "file")
			if u.bad || inMemory(path) || strings.HasPrefix(u.call.Name, "memory_") || strings.HasPrefix(u.call.Name, "session_") ||
				u.call.Name == "write_file" || u.call.Name == "get_current_time" {
				continue
			}
			p.weight = 0.6
			if u.call.Name == "read_file" {
				p.thread, p.where, p.label = i+1, path, "In {}, read before:"
				l.add(p, u.text, max(1, numberOf(u.call, "offset")))
				continue
			}
			p.where = "the output of " + nameCall(u.call)
			p.label = "The output of " + nameCall(u.call) + " said:"
		default:
			continue
		}
		l.add(p, u.text, 0)
	}
}

// answeredByMe reports whether this model answered the i-th utterance.
func (t *turn) answeredByMe(i int) bool {
	for _, u := range t.past[i+1:] {
		switch u.who {
		case assistant:
			return isMine(u.text)
		case user:
			return false
		}
	}
	return false
}

func inMemory(path string) bool {
	path = strings.TrimPrefix(strings.ReplaceAll(path, `\`, "/"), "./")
	return path == memoryFile || strings.HasPrefix(path, memoryDir+"/")
}

// nameCall says a call in a few words.
func nameCall(c llm.ToolCall) string {
	if a := argOf(c, "command", "path", "query"); a != "" {
		return c.Name + " " + strings.TrimSpace(clip(strings.Join(strings.Fields(a), " "), 80))
	}
	return c.Name
}

// query is what is looked for.
type query struct {
	words  []word
	who    speaker // whose words are asked for, if one's
	decide bool    // a decision is asked for
	own    bool    // it is about what was said or is known here, not about the world
	when   bool
	dense  string // the question, if it is in a script without spaces
}

var (
	aboutMe   = regexp.MustCompile(`(?i)\b(?:i|ich|je|j['’]ai|yo)\s+(?:(?:just|ever|already|first|originally|have|had)\s+)*(?:say|said|tell|told|mention\w*|ask\w*|wr[io]te|gesagt|sagte|dit)\b|\bhabe ich\b.*\bgesagt\b|\bdije\b|\bai[- ]je dit\b|\bhe dicho\b`)
	aboutYou  = regexp.MustCompile(`(?i)\byou\s+(?:(?:just|ever|already|first|originally|have|had)\s+)*(?:say|said|tell|told|mention\w*|suggest\w*|recommend\w*|propose\w*|answer\w*|wr[io]te)\b|\bhast du\b.*\bgesagt\b|\bas[- ]tu dit\b|\bdijiste\b`)
	decision  = regexp.MustCompile(`(?i)\b(?:decid\w*|decisions?|agree\w*|settle\w*|choose|chose\w*|pick\w*|went with|go with|going with|conclu\w*|entschied\w*|entschlossen|beschlossen|abgemacht|acord\w*)\b|d[ée]cid`)
	ownMatter = regexp.MustCompile(`(?i)\b(?:i|me|my|mine|we|us|our|you|your|ich|mich|mir|meine?|wir|unsere?|je|moi|mon|ma|mes|nous|notre|yo|mi|mis|nosotros|nuestr[oa]|dije)\b|\bj['’]`)
	asksWhen  = regexp.MustCompile(`(?i)^(?:when|wann|quand|cu[áa]ndo|since when|how long ago)(?:\s|$)`)
	justAsks  = regexp.MustCompile(`(?i)^(?:what|when|where|which|who|why|how)$`)
)

func (l *library) query(text string) query {
	q := query{decide: decision.MatchString(text), own: ownMatter.MatchString(text), when: asksWhen.MatchString(text)}
	if aboutMe.MatchString(text) {
		q.who = user
	} else if aboutYou.MatchString(text) {
		q.who = assistant
	}
	if strings.ContainsFunc(text, isDense) {
		q.dense = strings.TrimRight(text, "?？。 ")
	}
	seen := map[string]bool{}
	var weak []word
	for _, w := range l.lex.words(text) {
		switch {
		case seen[w.stem] || justAsks.MatchString(w.raw):
		case decision.MatchString(w.raw):
			weak = append(weak, w)
		default:
			q.words = append(q.words, w)
		}
		seen[w.stem] = true
	}
	if len(q.words) == 0 {
		q.words = weak
	}
	return q
}

// topic names what is looked for, in the user's words.
func (q query) topic() string {
	if q.dense != "" {
		return clip(q.dense, 120)
	}
	var raw []string
	for _, w := range q.words {
		raw = append(raw, w.raw)
	}
	return clip(strings.Join(raw, " "), 120)
}

// enough is how much of the question a passage must hold to be more than the
// closest. Pairs of characters are no words: few of them do.
func (q query) enough() float64 {
	switch {
	case q.dense != "":
		return 0.2
	case q.own:
		return 0.34
	}
	return 0.5
}

// find returns the passages that fit best, best first: words that are rare
// here count more, names and numbers more, and what stands beside a passage
// a little.
func (l *library) find(q query, limit int) []hit {
	n := len(l.passages)
	if n == 0 || len(q.words) == 0 {
		return nil
	}
	df := map[string]int{}
	total := 0
	for _, p := range l.passages {
		seen := map[string]bool{}
		for _, w := range p.words {
			if !seen[w.stem] {
				seen[w.stem] = true
				df[w.stem]++
			}
		}
		total += len(p.words)
	}
	average := max(1, float64(total)/float64(n))

	// Each word of the question, with the forms that may stand for it.
	type term struct {
		idf   float64
		forms map[string]float64
	}
	terms := make([]term, len(q.words))
	sum := 0.0
	for i, w := range q.words {
		t := term{forms: map[string]float64{w.stem: 1}}
		d := df[w.stem]
		for s, k := range df {
			if s != w.stem && akin(s, w.stem) {
				t.forms[s] = 0.6
				d = max(d, k)
			}
		}
		// A word that is nowhere weighs no more than the rarest that is: the
		// question is met by what there is.
		d = max(1, d)
		t.idf = math.Log(1 + (float64(n-d)+0.5)/(float64(d)+0.5))
		if w.strong {
			t.idf *= 1.5
		}
		sum += t.idf
		terms[i] = t
	}
	own, cover := make([]float64, n), make([]float64, n)
	for i, p := range l.passages {
		norm := 1.2 * (0.5 + 0.5*float64(len(p.words))/average)
		for _, t := range terms {
			tf, best := 0.0, 0.0
			for _, w := range p.words {
				f := t.forms[w.stem]
				tf += f
				best = max(best, f)
			}
			own[i] += t.idf * tf * 2.2 / (tf + norm)
			cover[i] += t.idf * best / sum
		}
	}
	var hits []hit
	for i, p := range l.passages {
		if own[i] == 0 || p.who == user && idle(match(p.text).kind) {
			continue
		}
		s := own[i]
		for _, j := range []int{i - 1, i + 1} {
			if j >= 0 && j < n && l.passages[j].thread == p.thread {
				s += 0.3 * own[j]
			}
		}
		s *= p.weight
		switch {
		case p.asks:
			s *= 0.5
		case q.who != nobody && p.who == q.who:
			s *= 2.5
		}
		if q.decide && decision.MatchString(p.text) {
			s *= 1.5
		}
		h := hit{passage: p, score: s, cover: cover[i]}
		if p.asks {
			h.reply, h.by = l.reply(i)
		}
		hits = append(hits, h)
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			if a.score > b.score {
				return -1
			}
			return 1
		}
		return b.turn - a.turn // the later word counts
	})
	return collapse(hits, limit)
}

// decisions returns the newest passages in which something was decided.
func (l *library) decisions(limit int) []hit {
	var hits []hit
	for _, p := range slices.Backward(l.passages) {
		if !p.asks && decision.MatchString(p.text) {
			hits = append(hits, hit{passage: p, score: 1, cover: 1})
		}
	}
	return collapse(hits, limit)
}

// reply returns what the other side said to a question.
func (l *library) reply(i int) (string, speaker) {
	p := l.passages[i]
	for _, r := range l.passages[i+1:] {
		if (r.who == user || r.who == assistant) && r.turn != p.turn {
			if r.who == p.who {
				return "", nobody
			}
			return r.text, r.who
		}
	}
	return "", nobody
}

// collapse keeps the best hits that differ; what says the same elsewhere is
// named beside the first.
func collapse(hits []hit, limit int) []hit {
	var out []hit
	for _, h := range hits {
		k := slices.IndexFunc(out, func(o hit) bool { return alike(o.text, h.text) })
		if k >= 0 {
			if h.where != out[k].where && !slices.Contains(out[k].also, h.where) {
				out[k].also = append(out[k].also, h.where)
			}
			continue
		}
		if len(out) == 0 || len(out) < limit && h.score >= 0.4*out[0].score {
			out = append(out, h)
		}
	}
	return out
}

// alike reports whether one text holds the other, letters and digits alone.
func alike(a, b string) bool {
	a, b = letters(a), letters(b)
	if len(a) > len(b) {
		a, b = b, a
	}
	return strings.Contains(b, a) && 2*len(a) >= len(b)
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// excerpt returns s on one line, max bytes around the first of words.
func excerpt(s string, max int, words []word) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= max {
		return s
	}
	at := len(s)
	low := strings.ToLower(s)
	for _, w := range words {
		if i := strings.Index(low, strings.ToLower(w.raw)); i >= 0 && i < at && len(low) == len(s) {
			at = i
		}
	}
	if at+max/2 <= max || at == len(s) {
		return strings.TrimSpace(clip(s, max)) + " …"
	}
	from := min(at-max/3, len(s)-max)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	part := clip(s[from:], max)
	if from+len(part) < len(s) {
		part += " …"
	}
	return "… " + strings.TrimSpace(part)
}
