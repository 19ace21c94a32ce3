// Package markdown shows answers in a terminal, while they arrive.
//
// A Stream takes an answer in pieces. What can no longer change is given out
// once, to be printed into the scrollback: blocks of Markdown (a paragraph, a
// heading, a table, a quote), the items of a list, and code line by line. The
// rest is alive: it is drawn again and again, as wide as the terminal is then.
//
// The result does not depend on the pieces. Each block is parsed by itself, so
// there are no links by reference, whose addresses may come later: they stay as
// they were written.
//
// Nothing in an answer reaches the terminal but text: control characters are
// replaced, also those that are written as entities.
package markdown

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Style is how answers look.
type Style struct {
	Colour bool // else there are only attributes, such as bold
	Light  bool // the background is light
	Dim    bool // all of it, for thinking
	Whole  bool // lines of code that are too long are left to the terminal: what is copied is whole
}

func (s Style) palette() *palette {
	if s.Light {
		return &onLight
	}
	return &onDark
}

// Stream renders an answer while it arrives. It is not safe for concurrent use.
type Stream struct {
	style Style
	width func() int

	half    string // a character that has not arrived as a whole
	src     []byte // what is not finished
	version int    // of src
	again   int    // how long src must be before it is worth looking at again
	fence   *fence // the code block that src is in
	from    int    // the number of the item that src begins with; -1: it begins with none
	blank   bool   // there is an empty line before src
	begun   bool   // something was given out
	plain   bool   // the rest is not read as Markdown
	given   int    // how often something was given out
	out     *strings.Builder
	work    int // bytes that were parsed, for tests

	live struct { // the last answer of Live
		version, given, width, size int
		text                        string
	}
}

// New returns a Stream for a terminal of width columns.
func New(st Style, width func() int) *Stream {
	return &Stream{style: st, width: width, from: -1, out: &strings.Builder{}}
}

// Render renders a text at once. Its lines end with a line end each.
func Render(text string, st Style, width int) string {
	s := New(st, func() int { return width })
	s.Write(text)
	return s.Close()
}

// Write takes the next piece of the answer.
func (s *Stream) Write(text string) {
	text = s.half + text
	n := len(text) - cutOff(text)
	text, s.half = text[:n], text[n:]
	text = clean(text)
	for text != "" {
		n := strings.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		s.add(text[:n])
		text = text[n:]
	}
}

// Take returns the lines that are finished since the last time, styled, each
// with a line end. They never change again.
func (s *Stream) Take() string {
	out := s.out.String()
	s.out.Reset()
	return out
}

// Close returns the rest of the answer, as Take does.
func (s *Stream) Close() string {
	if s.half != "" {
		half := s.half
		s.half = ""
		s.add(clean(half))
	}
	s.finish()
	return s.Take()
}

// mostLive is how much of an unfinished block is drawn.
const mostLive = 1 << 14

// Live returns what is not finished yet, styled, in lines of at most width
// columns without a line end after the last. "" means that there is nothing.
func (s *Stream) Live(width int) string {
	width = columnsFor(width)
	// A long block is drawn again when it has grown by a part of its length, so
	// that drawing it stays cheap.
	l := &s.live
	if l.width == width && l.given == s.given && (l.version == s.version || l.size > 2<<10 && len(s.src)-l.size < l.size/32) {
		return l.text
	}
	l.version, l.given, l.width, l.size = s.version, s.given, width, len(s.src)
	var b strings.Builder
	for _, line := range s.unfinished(width) {
		b.WriteString(s.paint(line) + "\n")
	}
	l.text = strings.TrimSuffix(b.String(), "\n")
	return l.text
}

// unfinished renders src as it would be if the answer ended here.
func (s *Stream) unfinished(width int) (out [][]run) {
	src := s.src
	if s.fence != nil {
		if len(src) == 0 {
			return nil
		}
		return s.fence.peek(s.fence.inner(string(src)), width)
	}
	blank := blankLines(src)
	if src = src[blank:]; len(bytes.TrimSpace(src)) == 0 {
		return nil
	}
	if s.begun && (s.blank || blank > 0) {
		out = append(out, nil)
	}
	if len(src) > mostLive || s.plain {
		tail := src[max(0, len(src)-mostLive):]
		return append(out, verbatim(strings.ToValidUTF8(string(tail), ""), width)...)
	}
	s.work += len(src)
	return append(out, render(string(src), s.style, width, s.from)...)
}

// paint writes a line in the style of the answer.
func (s *Stream) paint(line []run) string {
	if s.style.Dim {
		line = append([]run(nil), line...)
		for i := range line {
			line[i].look.attr |= dim
		}
	}
	return s.style.paint(line)
}

// emit gives out finished lines. apart asks for an empty line before them.
func (s *Stream) emit(lines [][]run, apart bool) {
	s.given++
	if apart && s.begun {
		s.out.WriteString("\n")
	}
	for _, l := range lines {
		s.out.WriteString(s.paint(l) + "\n")
		s.begun = true
	}
}

const widest = 1000 // columns, also of what is no terminal

func columnsFor(width int) int {
	if width <= 0 || width > widest {
		return widest
	}
	return max(width, leastRoom)
}

// cutOff returns how many bytes at the end of s are the beginning of a
// character.
func cutOff(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if c := s[len(s)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRuneInString(s[len(s)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// clean takes out what no answer means: carriage returns, and what is not UTF-8.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\r", ""), "\uFFFD")
}
