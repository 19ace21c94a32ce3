package markdown

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"goclaw/internal/bounds"
)

// outer parses blocks without what is in their text. To it a table is a
// paragraph.
var outer = func() parser.Parser {
	p := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...))
	bounds.Nesting(p)
	return p
}()

// add takes a piece of the answer, which has a line end at its end or nowhere,
// and gives out what is finished by it.
func (s *Stream) add(piece string) {
	paragraph := bytes.HasSuffix(s.src, []byte("\n\n")) && startsText(piece)
	s.src = append(s.src, piece...)
	s.version++
	whole, short := strings.HasSuffix(piece, "\n"), len(s.src) < mostLive
	switch {
	case s.fence != nil || s.plain:
		if whole {
			s.advance(len(s.src), false)
		}
	case whole && (len(s.src) >= s.again || short && endsBlank(s.src)), paragraph && short:
		s.advance(len(s.src), false)
	}
}

// startsText reports whether a line that begins with s begins a paragraph,
// however it goes on, if the line before is empty.
func startsText(s string) bool {
	c := s[0] | 0x20
	return c >= 'a' && c <= 'z' || s[0] >= utf8.RuneSelf
}

// finish gives out the rest.
func (s *Stream) finish() {
	s.advance(len(s.src), true)
	if s.fence != nil {
		s.emit([][]run{s.fence.bottom()}, false)
	}
	*s = Stream{style: s.style, width: s.width, from: -1, begun: s.begun, blank: true, out: s.out, work: s.work, version: s.version + 1, given: s.given + 1}
}

// advance gives out what is finished of the first n bytes of src: all of them if
// they are the last.
func (s *Stream) advance(n int, last bool) {
	for known := n; known > 0; {
		before := len(s.src)
		switch {
		case s.fence != nil || s.plain:
			s.line(last)
		default:
			s.block(known, last)
		}
		used := before - len(s.src)
		if used == 0 {
			break
		}
		known -= used
	}
	// The longer src is, the more must come before it is parsed again: what is
	// parsed in all stays a small multiple of the answer.
	s.again = len(s.src) + len(s.src)/4
}

// line gives out the first line of src, which is code or plain text.
func (s *Stream) line(last bool) {
	n := bytes.IndexByte(s.src, '\n') + 1
	if n == 0 && last {
		n = len(s.src)
	}
	if n == 0 {
		return
	}
	line := strings.TrimSuffix(string(s.src[:n]), "\n")
	s.src = s.src[n:]
	s.work += n
	width := columnsFor(s.width())
	switch {
	case s.plain:
		s.emit(verbatim(line, width), false)
	case s.fence.ends(line):
		s.emit([][]run{s.fence.bottom()}, false)
		s.fence, s.blank = nil, false
	default:
		s.emit(s.fence.line(s.fence.inner(line), width), false)
	}
}

// block gives out the first block of src, or the first item of a list, if it
// ends in the first n bytes.
func (s *Stream) block(n int, last bool) {
	if blank := blankLines(s.src[:n]); blank > 0 {
		s.src, s.blank = s.src[blank:], true
		return
	}
	src := s.src[:n]
	first, end := s.first(src, last)
	switch {
	case s.plain:
		// From here on nothing is parsed. What is before is finished.
		if end > 0 {
			s.plain = false
			s.advance(end, true)
			s.plain, s.from = true, -1
		}
		return
	case first == nil && last:
		s.src = s.src[n:] // nothing but spaces
		return
	case first == nil:
		return
	}
	apart := s.blank || first.Kind() == ast.KindHeading
	width := columnsFor(s.width())
	if first.Kind() == ast.KindFencedCodeBlock {
		n := bytes.IndexByte(src, '\n') + 1
		if n == 0 {
			n = len(src)
		}
		s.fence = openFence(strings.TrimRight(string(src[:n]), "\n"), s.style)
		s.emit([][]run{s.fence.top(width)}, apart)
		s.src, s.blank, s.from = s.src[n:], false, -1
		return
	}
	if end == 0 {
		return
	}
	unit := src[:end]
	from := -1
	if list, ok := first.(*ast.List); ok {
		if from = s.from; from < 0 {
			from = list.Start
		}
	}
	s.emit(render(string(unit), s.style, width, from), apart)
	s.work += len(unit)
	s.src, s.blank, s.from = s.src[end:], endsBlank(unit), -1
	if from >= 0 && first.ChildCount() > 1 {
		s.from = from + 1
	}
}

// first parses src and returns its first block, and where that ends, or the
// first item of a list; 0 if that is not known yet. If blocks are nested too
// deep it sets plain, and returns where the line begins that is.
func (s *Stream) first(src []byte, last bool) (block ast.Node, end int) {
	defer func() {
		p := recover()
		if much, ok := p.(bounds.TooMuch); ok {
			s.plain, end = true, much.Line
		} else if p != nil {
			panic(p)
		}
	}()
	s.work += len(src)
	block = outer.Parse(text.NewReader(src)).FirstChild()
	if block == nil {
		return nil, 0
	}
	next := block.NextSibling()
	if block.Kind() == ast.KindList && block.ChildCount() > 1 {
		next = block.FirstChild().NextSibling()
	}
	if next != nil {
		return block, lineStart(src, next.Pos())
	}
	switch block.Kind() {
	case ast.KindHeading, ast.KindThematicBreak:
		last = true
	case ast.KindParagraph, ast.KindBlockquote:
		last = last || endsBlank(src)
	}
	if last {
		end = len(src)
	}
	return block, end
}

// lineStart returns where the line begins that pos is in.
func lineStart(src []byte, pos int) int { return bytes.LastIndexByte(src[:pos], '\n') + 1 }

// blankLines returns the length of the empty lines at the beginning of src.
func blankLines(src []byte) (n int) {
	for i, c := range src {
		switch c {
		case '\n':
			n = i + 1
		case ' ', '\t':
		default:
			return n
		}
	}
	return n
}

// endsBlank reports whether the last line of src is empty.
func endsBlank(src []byte) bool {
	src, ok := bytes.CutSuffix(src, []byte("\n"))
	return ok && len(bytes.Trim(src[lineStart(src, len(src)):], " \t")) == 0
}
