package markdown

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"goclaw/internal/bounds"
)

// full parses a block with all that is in it. It knows no references to links:
// whether [a][b] is one would depend on text that has not arrived.
var full = func() parser.Parser {
	p := parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...), parser.WithInlineParsers(parser.DefaultInlineParsers()...))
	p.AddOptions(
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewStrikethroughParser(), 500),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(extension.NewLinkifyParser(), 999)))
	bounds.Set(p)
	return p
}()

// page renders the blocks of a source.
type page struct {
	style Style
	src   []byte
	from  int // the number of the first item of the first list; -1: its own
}

// leastRoom is how narrow text may become by lists and quotes around it.
const leastRoom = 10

// render renders src, which begins with a block. Text that would take too long
// to parse is shown as it is.
func render(src string, st Style, width, from int) (out [][]run) {
	defer func() {
		p := recover()
		if _, ok := p.(bounds.TooMuch); ok {
			out = verbatim(src, width)
		} else if p != nil {
			panic(p)
		}
	}()
	p := &page{style: st, src: []byte(src), from: from}
	return p.blocks(full.Parse(text.NewReader(p.src)), width)
}

// verbatim shows text as it is.
func verbatim(src string, width int) (out [][]run) {
	for line := range strings.SplitSeq(strings.TrimRight(src, "\n"), "\n") {
		out = append(out, wrap([]run{{text: printable(line)}}, width)...)
	}
	return out
}

// blocks renders the blocks in parent under each other. There is an empty line
// between two where the source has one.
func (p *page) blocks(parent ast.Node, width int) (out [][]run) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() && p.apart(n) {
			out = append(out, nil)
		}
		out = append(out, p.block(n, width)...)
	}
	return out
}

// apart reports whether there is an empty line before n. To goldmark's
// HasBlankPreviousLines, one within code above n is one, too.
func (p *page) apart(n ast.Node) bool {
	if n.Kind() == ast.KindHeading || n.Kind() == extast.KindTable {
		return true
	}
	start := lineStart(p.src, max(n.Pos(), 0))
	if start == 0 {
		return false
	}
	line := p.src[lineStart(p.src, start-1):start]
	return len(bytes.Trim(line, " \t\n>")) == 0
}

func (p *page) block(n ast.Node, width int) [][]run {
	switch n := n.(type) {
	case *ast.Heading:
		l := look{attr: bold}
		switch {
		case n.Level == 1:
			l.attr |= underline
		case n.Level > 2:
			l.attr |= italic
		}
		return wrap(p.inline(n, l), width)
	case *ast.ThematicBreak:
		return [][]run{{{strings.Repeat("─", min(ruleWidth, width)), look{attr: dim}}}}
	case *ast.Blockquote:
		if width-2 < leastRoom {
			return p.blocks(n, width)
		}
		bar := run{"│ ", look{attr: dim}}
		return indent(p.blocks(n, width-2), bar, bar)
	case *ast.List:
		return p.list(n, width)
	case *ast.FencedCodeBlock:
		c := newCode(string(n.Language(p.src)), p.style)
		out := [][]run{c.top(width)}
		for line := range strings.Lines(string(n.Lines().Value(p.src))) {
			out = append(out, c.line(line, width)...)
		}
		return append(out, c.bottom())
	case *ast.CodeBlock:
		return p.indented(n, width)
	case *ast.HTMLBlock:
		return verbatim(string(n.Lines().Value(p.src))+string(closure(n, p.src)), width)
	case *extast.Table:
		return p.table(n, width)
	}
	return wrap(p.inline(n, look{}), width)
}

const ruleWidth = 24

func closure(n *ast.HTMLBlock, src []byte) []byte {
	if !n.HasClosure() {
		return nil
	}
	return n.ClosureLine.Value(src)
}

// indented renders a code block without a fence.
func (p *page) indented(n *ast.CodeBlock, width int) (out [][]run) {
	c := newCode("", p.style)
	mark := run{text: "    "}
	if width-len(mark.text) < leastRoom {
		mark.text = ""
	}
	for line := range strings.Lines(string(n.Lines().Value(p.src))) {
		out = append(out, indent(c.line(line, width-len(mark.text)), mark, mark)...)
	}
	return out
}

// list renders a list, its items with hanging indents.
func (p *page) list(n *ast.List, width int) (out [][]run) {
	number := n.Start
	if p.from >= 0 {
		number = p.from
	}
	p.from = -1
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark, box := "• ", box(item)
		switch {
		case n.IsOrdered():
			mark = strconv.Itoa(number) + string(n.Marker) + " " + box
			number++
		case box != "":
			mark = box
		}
		if item != n.FirstChild() && p.apart(item) {
			out = append(out, nil)
		}
		out = append(out, p.item(item, mark, width)...)
	}
	return out
}

// item renders an item of a list with its mark.
func (p *page) item(n ast.Node, mark string, width int) [][]run {
	if width-len(mark) < leastRoom {
		return append(wrap([]run{{text: mark}}, width), p.blocks(n, width)...)
	}
	room := width - widthOf([]run{{text: mark}})
	lines := p.blocks(n, room)
	if len(lines) == 0 {
		lines = [][]run{nil}
	}
	return indent(lines, run{text: mark}, run{text: strings.Repeat(" ", width-room)})
}

// box returns the box of an item that is a task.
func box(item ast.Node) string {
	if item.FirstChild() == nil {
		return ""
	}
	switch box, ok := item.FirstChild().FirstChild().(*extast.TaskCheckBox); {
	case !ok:
		return ""
	case box.IsChecked:
		return "[x] "
	}
	return "[ ] "
}
