package markdown

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// char is what a terminal shows as one character, whatever it is made of.
type char struct {
	text  string
	width int
	look  look
}

// chars splits runs into characters. One that begins in a run and ends in
// another has the look of its beginning.
func chars(rs []run) []char {
	var all strings.Builder
	for _, r := range rs {
		all.WriteString(r.text)
	}
	out := make([]char, 0, all.Len())
	i, end := -1, 0 // the run that the character is in, and where it ends
	for at, g := 0, displaywidth.StringGraphemes(all.String()); g.Next(); at += len(g.Value()) {
		for at >= end {
			i++
			end += len(rs[i].text)
		}
		out = append(out, char{g.Value(), g.Width(), rs[i].look})
	}
	return out
}

// add appends c to a line.
func add(line []run, c char) []run {
	if n := len(line); n > 0 && line[n-1].look == c.look {
		line[n-1].text += c.text
		return line
	}
	return append(line, run{c.text, c.look})
}

// In scripts without spaces a line may begin with any character that does not
// close, and end with any that does not open.
const (
	closing = ".,;:!?)]}'\"…、。，．！？：；）］｝」』】〉》〕・ー々"
	opening = "([{（［｛「『【〈《〔"
)

// wrapper breaks text between words.
type wrapper struct {
	width  int
	lines  [][]run
	line   []run
	col    int
	spaces []char // before the word
	word   []char
	size   int // columns of word
}

// wrap breaks runs into lines of at most width columns: between words, and in a
// word that is longer than a line.
func wrap(rs []run, width int) [][]run {
	w := wrapper{width: width}
	for _, c := range chars(rs) {
		switch {
		case c.text == "\n":
			w.put()
			w.next()
			continue
		case c.text == " ":
			w.put()
			w.spaces = append(w.spaces, c)
			continue
		case len(w.word) > 0:
			last := w.word[len(w.word)-1]
			if (last.width > 1 || c.width > 1) && !strings.Contains(closing, c.text) && !strings.Contains(opening, last.text) {
				w.put()
			}
		}
		w.word = append(w.word, c)
		w.size += c.width
	}
	w.put()
	if len(w.line) > 0 || len(w.lines) == 0 {
		w.next()
	}
	return w.lines
}

func (w *wrapper) next() {
	w.lines = append(w.lines, w.line)
	w.line, w.col, w.spaces = nil, 0, w.spaces[:0]
}

// put adds the word to the line, or to the next one if there is no room.
func (w *wrapper) put() {
	if len(w.word) == 0 {
		return
	}
	if w.col > 0 && w.col+len(w.spaces)+w.size > w.width {
		w.next()
	}
	for _, c := range append(w.spaces, w.word...) {
		if w.col > 0 && w.col+c.width > w.width {
			w.next()
		}
		w.line = add(w.line, c)
		w.col += c.width
	}
	w.spaces, w.word, w.size = w.spaces[:0], w.word[:0], 0
}

// indent puts first before the first line and rest before the others.
func indent(lines [][]run, first, rest run) [][]run {
	for i, l := range lines {
		before := rest
		if i == 0 {
			before = first
		}
		lines[i] = append([]run{before}, l...)
	}
	return lines
}
