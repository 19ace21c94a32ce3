package ranking

import (
	"math"

	"goclaw/internal/parts"
	"goclaw/recall/internal/postings"
)

// weights are the numbers of the ranking. There is one set for each kind of
// text; docs/recall.md says how they were chosen and what each part gives.
type weights struct {
	k1, b     float64    // of BM25
	flat      float64    // b for names in programs
	cover     float64    // of the share of a question that a message holds itself, where its words are looked for
	exactB    float64    // b where the words of a query themselves are looked for; 0: they never are
	near      [5]float64 // of the words of a message itself (2), of the two before it and of the two after it
	answer    float64    // added to the weight of the message before it if that one asks
	wide      float64    // of the question's words within wideSpan messages around it
	user      float64    // factor of what a user said
	ours      float64    // the same, if the question is about the user
	tool      float64    // factor of what a tool put out
	speaker   float64    // the query names its speaker
	others    float64    // the query names only its subject, and it names others too
	mention   float64    // of a speaker's name as a word: the other one says it
	date      float64    // it was said when the query says
	dateWords bool       // the words that name a date count as words, too
	ask       float64    // it ends in a question
	askOnly   float64    // most of it is a question, and it has at most askMost words
	askMost   uint16     // 0: any number
	length    float64    // of the capped logarithm of its length
	opening   float64    // it begins a talk
	cosine    float64    // of the cosine beside lexical/max
	center    float64    // of the mean of all candidates' vectors, which tells nothing
}

var (
	// messagesOfPeople are the weights for messages that people write to each other.
	messagesOfPeople = weights{
		k1: 0.5, b: 0.5, flat: 0.5, near: [5]float64{0.25, 0.3, 1, 0.25, 0.15}, answer: 0.4, wide: 0.2, user: 1, ours: 1, tool: 0.5,
		speaker: 6, mention: 0.2, date: 6, dateWords: true, ask: -1, askOnly: -3, length: 0.5, opening: 1.2, cosine: 0.6,
	}
	// assistant are the weights for messages between a user and a model. They
	// are long and stand alone, and a long question of a user often holds the
	// fact.
	assistant = weights{
		k1: 1.4, b: 0.8, flat: 0.2, exactB: 0.4, near: [5]float64{0, 0.1, 1, 0.2, 0}, user: 1.15, ours: 1.5, tool: 0.9,
		mention: 1, date: 4, dateWords: true, askOnly: -3, askMost: 10, length: 0.5, cosine: 0.9,
	}
	// notes are the weights for memory files: sentences that stand alone.
	notes = weights{
		k1: 1, b: 0.4, flat: 0.4, near: [5]float64{0.1, 0.3, 1, 0.25, 0.15}, wide: 0.1, user: 1, ours: 1, tool: 0.5,
		speaker: 4, others: -2, mention: 0.7, date: 6, ask: -0.5, askOnly: -1, length: 0.5, cosine: 1.5, center: 0.5,
	}
)

// The parts of the ranking that a benchmark can leave out.
var (
	partNear      = parts.New("messages before and after", parts.Search)
	partAnswer    = parts.New("answers", parts.Search)
	partWide      = parts.New("the six around", parts.Search)
	partRole      = parts.New("user and tool factors", parts.Search)
	partSpeaker   = parts.New("speakers and subjects", parts.Search)
	partOthers    = parts.New("notes that name others lowered", parts.Search)
	partMention   = parts.New("speakers' names lowered as words", parts.Search)
	partDate      = parts.New("dates", parts.Search)
	partDateWords = parts.New("words of dates", parts.Search)
	partAsk       = parts.New("questions lowered", parts.Search)
	partOpening   = parts.New("beginnings of talks", parts.Search)
	partLength    = parts.New("length", parts.Search)
	partWeak      = parts.New("words of questions lowered", parts.Search)
	partSpoken    = parts.New("\"I\" for names", parts.Meaning)
	partCenter    = parts.New("mean of the vectors taken off", parts.Meaning)
)

// used returns w with the parts that are on.
func (w weights) used() *weights {
	if !partNear.On() {
		w.near = [5]float64{2: 1}
	}
	if !partRole.On() {
		w.user, w.ours, w.tool = 1, 1, 1
	}
	if !partMention.On() {
		w.mention = 1
	}
	if !partDateWords.On() {
		w.dateWords = false
	}
	if !partAsk.On() {
		w.ask, w.askOnly = 0, 0
	}
	for p, v := range map[*parts.Part]*float64{
		partAnswer: &w.answer, partWide: &w.wide, partSpeaker: &w.speaker, partOthers: &w.others, partDate: &w.date, partLength: &w.length, partOpening: &w.opening, partCenter: &w.center,
	} {
		if !p.On() {
			*v = 0
		}
	}
	return &w
}

// lengths are the capped logarithms of lengths.
var lengths = func() (l [31]float64) {
	for n := range l {
		l[n] = math.Log(1 + float64(n)/10)
	}
	return l
}()

// most is what weigh adds to the score of any doc at most, before its factors;
// named says that the query names speakers.
func (w *weights) most(q *Question, named bool) float64 {
	sum := max(w.askOnly, w.ask, 0) + max(w.length, 0)*lengths[len(lengths)-1] + max(w.opening, 0)
	if named {
		sum += max(w.speaker, 0)
	}
	if len(q.spans) > 0 {
		sum += max(w.date, 0)
	}
	return sum
}

// factor returns the factor of what a user said.
func (w *weights) factor(q *Question) float64 {
	if q.ours {
		return w.ours
	}
	return w.user
}

// nextDay is what the day after a named one counts, beside that day.
const nextDay = 0.9

// said returns how well a time fits those that the query names: from 0 to 1.
func (q *Question) said(at int64) (fit float64) {
	for _, s := range q.spans {
		switch {
		case at < s.From.Unix() || at >= s.To.Unix():
		case at < s.Day.Unix():
			return 1
		default:
			fit = nextDay
		}
	}
	return fit
}

// A talk begins with a session, and after a pause of so many seconds. The first
// talkOpens messages tell what is new.
const (
	talkPause = 4 * 60 * 60
	talkOpens = 3
)

// opens returns how near to the beginning of its talk the doc at is: from 1, for
// the first of it, to 0.
func opens(docs []postings.Doc, at int) float64 {
	for n := range talkOpens {
		d := &docs[at-n]
		if n == at || docs[at-n-1].Group != d.Group || d.Time()-docs[at-n-1].Time() > talkPause {
			return float64(talkOpens-n) / talkOpens
		}
	}
	return 0
}

// weigh adds to the score of the words what else speaks for the doc at; named
// says that the query names its speaker.
func (w *weights) weigh(q *Question, docs []postings.Doc, at int, score float64, named bool) float64 {
	d := &docs[at]
	if named {
		score += w.speaker
		if d.Flags&postings.Others != 0 && len(q.names) == 1 {
			score += w.others
		}
	}
	score += w.date * q.said(d.Time())
	switch {
	case d.Flags&postings.MostlyAsks != 0 && (w.askMost == 0 || d.Words <= w.askMost):
		score += w.askOnly
	case d.Flags&postings.Asks != 0:
		score += w.ask
	}
	score += w.length * lengths[min(int(d.Words), len(lengths)-1)]
	if w.opening != 0 {
		score += w.opening * opens(docs, at)
	}
	if score > 0 {
		if d.Flags&postings.Tool != 0 {
			score *= w.tool
		} else if d.Flags&postings.User != 0 {
			score *= w.factor(q)
		}
	}
	return score
}
