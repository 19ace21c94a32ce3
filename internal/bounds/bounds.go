// Package bounds keeps goldmark from text that would take minutes to parse, or
// fill the memory. Nobody writes such text to be read.
package bounds

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of what is parsed.
const (
	mostNested = 50     // lists and quotes in each other
	mostMarks  = 1000   // in one paragraph
	mostLines  = 2000   // of one paragraph
	mostCells  = 20_000 // of one table
)

// TooMuch is what a parser panics with: goldmark knows no other way out. Line
// is where the line begins that is nested too deep, if that is the reason.
type TooMuch struct{ Line int }

// Set makes p panic at text that would take too long.
func Set(p parser.Parser) {
	Nesting(p)
	p.AddOptions(parser.WithParagraphTransformers(util.Prioritized(tables{}, 1)),
		parser.WithInlineParsers(util.Prioritized(marks{}, 1)))
}

// Nesting makes p panic at blocks that are nested too deep.
func Nesting(p parser.Parser) {
	p.AddOptions(parser.WithBlockParsers(util.Prioritized(nesting{}, 1)))
}

// nesting counts how deep the blocks are.
type nesting struct{}

func (nesting) Trigger() []byte { return []byte(">-+*0123456789") }

func (nesting) Open(parent ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > 2*mostNested { // a list and its item
		_, at := reader.Position()
		panic(TooMuch{Line: bytes.LastIndexByte(reader.Source()[:at.Start], '\n') + 1})
	}
	return nil, parser.NoChildren
}

func (nesting) Continue(ast.Node, text.Reader, parser.Context) parser.State { return parser.Close }
func (nesting) Close(ast.Node, text.Reader, parser.Context)                 {}
func (nesting) CanInterruptParagraph() bool                                 { return true }
func (nesting) CanAcceptIndentedLine() bool                                 { return false }

// tables counts the lines of a paragraph, and the cells that it would become.
type tables struct{}

func (tables) Transform(p *ast.Paragraph, reader text.Reader, _ parser.Context) {
	lines := p.Lines()
	if lines.Len() > mostLines {
		panic(TooMuch{})
	}
	columns := 0
	for i := range lines.Len() {
		line := lines.At(i)
		columns = max(columns, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	if columns*lines.Len() > mostCells {
		panic(TooMuch{})
	}
}

// marked is where the number of marks in a paragraph is kept.
var marked = parser.NewContextKey()

type count struct {
	in ast.Node
	n  int
}

// marks counts what may begin or end a link, emphasis or the like.
type marks struct{}

func (marks) Trigger() []byte { return []byte("*_[]()<>`~!&\\") }

func (marks) Parse(parent ast.Node, _ text.Reader, pc parser.Context) ast.Node {
	c, _ := pc.Get(marked).(*count)
	if c == nil || c.in != parent {
		c = &count{in: parent}
		pc.Set(marked, c)
	}
	if c.n++; c.n > mostMarks {
		panic(TooMuch{})
	}
	return nil
}
