package tui

import (
	"strings"

	"goclaw/internal/markdown"
)

// answer is what the model says, or thinks, while it arrives. What is finished
// of it is printed; the rest is drawn. The zero value is none.
type answer struct{ *markdown.Stream }

// drawn returns the lines of what is not finished.
func (a answer) drawn(width int) []string {
	if a.Stream == nil {
		return nil
	}
	text := a.Live(width)
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (v *live) said(text string)    { v.write(&v.text, text, false) }
func (v *live) thought(text string) { v.write(&v.think, text, true) }

func (v *live) write(a *answer, text string, dim bool) {
	if a.Stream == nil {
		v.finish()
		st := markdown.Style{Colour: v.style.Colour, Light: v.light, Dim: dim}
		a.Stream = markdown.New(st, func() int { return v.width })
	}
	a.Write(text)
	v.lines(a.Take())
}

// finish ends the answer or the thinking under way.
func (v *live) finish() {
	for _, a := range []*answer{&v.text, &v.think} {
		if a.Stream != nil {
			v.lines(a.Close())
			a.Stream = nil
		}
	}
}

// lines prints lines of an answer.
func (v *live) lines(text string) {
	if text != "" {
		v.print(strings.TrimSuffix(text, "\n"))
	}
}
