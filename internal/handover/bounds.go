package handover

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits of what is rendered. Nobody writes such text to be read; rendering it
// would take minutes, or fill the memory.
const (
	mostNested = 50     // lists and quotes in each other
	mostMarks  = 1000   // in one paragraph
	mostLines  = 2000   // of one paragraph
	mostCells  = 20_000 // of one table
)

// tooMuch is what these panic with: goldmark knows no other way out.
type tooMuch struct{}

// bounded ends the rendering of text that would take too long.
func bounded(p parser.Parser) {
	p.AddOptions(parser.WithBlockParsers(util.Prioritized(nesting{}, 1)),
		parser.WithParagraphTransformers(util.Prioritized(tables{}, 1)),
		parser.WithInlineParsers(util.Prioritized(marks{}, 1)))
}

// nesting counts how deep the blocks are.
type nesting struct{}

func (nesting) Trigger() []byte { return []byte(">-+*0123456789") }

func (nesting) Open(parent ast.Node, _ text.Reader, _ parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > 2*mostNested { // a list and its item
		panic(tooMuch{})
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
		panic(tooMuch{})
	}
	columns := 0
	for i := range lines.Len() {
		line := lines.At(i)
		columns = max(columns, bytes.Count(line.Value(reader.Source()), []byte("|")))
	}
	if columns*lines.Len() > mostCells {
		panic(tooMuch{})
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
		panic(tooMuch{})
	}
	return nil
}
