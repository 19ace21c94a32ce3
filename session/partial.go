package session

import (
	"iter"
	"strings"

	"goclaw/llm"
)

// Partial is a part of an answer, recorded while the answer arrives: what is
// shown survives a crash. Thinking comes before Text; what the answer says next
// is in the next Partial.
//
// The whole answer, when it is recorded, takes the place of its parts, which
// then mean nothing. If the log breaks off before, the branch of a Session has,
// in the place of the first part, what all of them say as an answer that was
// interrupted.
type Partial struct {
	Offset   int    `json:"offset"` // bytes of the answer in the parts before; 0: the answer begins
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Provider string `json:"provider,omitempty"` // with the first part
	Model    string `json:"model,omitempty"`
}

func (Partial) body() {}

// Size is how many bytes of the answer p holds.
func (p Partial) Size() int { return len(p.Thinking) + len(p.Text) }

// BrokeOff is the Error of an answer of which only parts were recorded.
const BrokeOff = "interrupted: goclaw ended before the answer did"

// parts is an answer of which only parts came so far.
type parts struct {
	at    int    // its place in Branch
	first Record // what is there if the whole answer comes
	said  []said
}

// said is a stretch of text or of thinking.
type said struct {
	thinking bool
	text     *strings.Builder
}

// add adds what p says.
func (a *parts) add(p Partial) {
	a.say(true, p.Thinking)
	a.say(false, p.Text)
}

func (a *parts) say(thinking bool, text string) {
	if text == "" {
		return
	}
	if n := len(a.said); n == 0 || a.said[n-1].thinking != thinking {
		a.said = append(a.said, said{thinking, &strings.Builder{}})
	}
	a.said[len(a.said)-1].text.WriteString(text)
}

// answer returns the record of what came so far, in the place of the first
// part.
func (a *parts) answer() Record {
	p := a.first.Body.(Partial)
	m := Message{Message: llm.Message{Role: llm.Assistant}, At: a.first.Time, Provider: p.Provider, Model: p.Model, Stop: llm.StopAborted, Error: BrokeOff}
	for _, s := range a.said {
		if s.thinking {
			m.Blocks = append(m.Blocks, llm.Thinking{Text: s.text.String()})
		} else {
			m.Blocks = append(m.Blocks, llm.Text{Text: s.text.String()})
		}
	}
	r := a.first
	r.Body, r.Raw = m, nil
	return r
}

// extend adds r to the end of Branch.
func (s *Session) extend(r Record) {
	s.Branch = append(s.Branch, r)
	switch b := r.Body.(type) {
	case Message:
		if s.open != nil && b.Role == llm.Assistant {
			s.Branch[s.open.at] = s.open.first // the whole answer is here
		}
		s.open = nil
	case Partial:
		if b.Offset == 0 {
			s.open = &parts{at: len(s.Branch) - 1, first: r}
		}
		if s.open == nil {
			return // its beginning lies before what was loaded, or is damaged
		}
		s.open.add(b)
		s.Branch[s.open.at] = s.open.answer()
	}
}

// Joiner joins the parts of answers, for readers that look at the records of a
// log one by one and in order.
type Joiner struct{ open *parts }

// Next returns what to make of r: of the parts before it, if the answer that
// they belong to broke off, one record with a Message; and r itself, unless it
// is a part.
func (j *Joiner) Next(r Record) []Record {
	b, part := r.Body.(Partial)
	m, message := r.Body.(Message)
	var out []Record
	switch {
	case part && (j.open == nil || b.Offset == 0):
		out = j.End()
		j.open = &parts{first: r}
		fallthrough
	case part:
		j.open.add(b)
		return out
	case message && m.Role == llm.Assistant:
		j.open = nil
	case message:
		out = j.End()
	}
	return append(out, r)
}

// Open reports whether an answer has begun that may still come.
func (j *Joiner) Open() bool { return j.open != nil }

// End returns what Next has not: an answer that had not ended when the records
// did.
func (j *Joiner) End() []Record {
	if j.open == nil {
		return nil
	}
	r := j.open.answer()
	j.open = nil
	return []Record{r}
}

// Joined yields recs as Joiner makes them.
func Joined(recs iter.Seq2[Record, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		var j Joiner
		for r, err := range recs {
			if err != nil {
				if !yield(r, err) {
					return
				}
				continue
			}
			for _, r := range j.Next(r) {
				if !yield(r, nil) {
					return
				}
			}
		}
		for _, r := range j.End() {
			yield(r, nil)
		}
	}
}
