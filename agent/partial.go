package agent

import (
	"strings"
	"time"

	"goclaw/llm"
	"goclaw/session"
)

// How much of an answer is recorded at a time while it comes: a crash costs no
// more than stepBytes of what was shown, and of a slow answer no more than what
// came within stepTime, or leastStep.
const (
	stepBytes = 4 << 10
	stepTime  = time.Second
	leastStep = 256
)

// partial collects an answer as it comes.
type partial struct {
	done []llm.Block
	open strings.Builder // the block that is coming
	kind llm.Block       // its kind; nil: no block is open

	begun    bool // the model has begun to answer
	reported llm.Usage

	fresh   session.Partial // what is not recorded yet; its Offset is what is
	stepped time.Time       // when something was recorded last
}

// step adds d to what is not recorded yet, and returns what is to be recorded
// before d is shown, if that is enough.
func (p *partial) step(d llm.Delta, c session.Clock) (due session.Partial, ok bool) {
	if d.Text == "" && d.Thinking == "" {
		return due, false
	}
	if d.Thinking != "" && p.fresh.Text != "" && p.fresh.Size() >= leastStep {
		due, ok = p.take(), true // thinking comes first in a part
	}
	p.fresh.Text += d.Text
	p.fresh.Thinking += d.Thinking
	if ok || p.fresh.Size() < leastStep {
		return due, ok
	}
	if now := c.Now(); p.fresh.Size() >= stepBytes || now.Sub(p.stepped) >= stepTime {
		p.stepped = now
		return p.take(), true
	}
	return due, false
}

// take returns what is not recorded yet, as if it were.
func (p *partial) take() session.Partial {
	due := p.fresh
	p.fresh = session.Partial{Offset: due.Offset + due.Size()}
	return due
}

func (p *partial) add(d llm.Delta) {
	p.begun = true
	switch {
	case d.Begun != nil:
		p.reported = *d.Begun
	case d.Text != "":
		p.say(llm.Text{}, d.Text)
	case d.Thinking != "":
		p.say(llm.Thinking{}, d.Thinking)
	case d.Call != nil:
		p.close()
		p.done = append(p.done, *d.Call)
	}
}

func (p *partial) say(kind llm.Block, text string) {
	if p.kind != kind {
		p.close()
		p.kind = kind
	}
	p.open.WriteString(text)
}

func (p *partial) close() {
	switch p.kind.(type) {
	case llm.Text:
		p.done = append(p.done, llm.Text{Text: p.open.String()})
	case llm.Thinking:
		p.done = append(p.done, llm.Thinking{Text: p.open.String()})
	}
	p.kind = nil
	p.open.Reset()
}

func (p *partial) blocks() []llm.Block {
	p.close()
	return p.done
}
