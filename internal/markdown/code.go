package markdown

import (
	"strings"
)

// code renders a code block line by line. Its lines stand at the left edge, so
// that what is copied is code.
type code struct {
	lang  string
	style Style
	hl    highlighter
}

func newCode(lang string, st Style) *code {
	c := &code{lang: printable(lang), style: st}
	if st.Colour {
		c.hl = newHighlighter(lang)
	}
	return c
}

// top is the line above the code, with the name of its language.
func (c *code) top(width int) []run {
	name := "──"
	if c.lang != "" {
		name += " " + c.lang
	}
	return wrap([]run{{name, look{attr: dim}}}, width)[0]
}

func (c *code) bottom() []run { return []run{{"──", look{attr: dim}}} }

// line renders the next line. One that is too long goes on below, after a mark.
func (c *code) line(text string, width int) [][]run {
	line := c.hl.line(untab(strings.TrimSuffix(text, "\n")), c.style.palette())
	if c.style.Whole {
		return [][]run{line}
	}
	return cut(line, width)
}

// peek renders a line that has not arrived as a whole.
func (c *code) peek(text string, width int) [][]run {
	copied := *c
	copied.hl = c.hl.clone()
	return copied.line(text, width)
}

// continued marks where a line of code is broken that is one line in the source.
var continued = run{"↵", look{attr: dim}}

// cut breaks a line at width columns.
func cut(line []run, width int) (out [][]run) {
	if widthOf(line) <= width {
		return [][]run{line}
	}
	var now []run
	col := 0
	for _, c := range chars(line) {
		if col > 0 && col+c.width > width-1 {
			out = append(out, append(now, continued))
			now, col = nil, 0
		}
		now = add(now, c)
		col += c.width
	}
	return append(out, now)
}

// untab replaces tabs by spaces and what may not reach a terminal.
func untab(s string) string {
	const stop = 4
	if !strings.Contains(s, "\t") {
		return printable(s)
	}
	var b strings.Builder
	for i, part := range strings.Split(s, "\t") {
		if i > 0 {
			col := widthOf([]run{{text: b.String()}})
			b.WriteString(strings.Repeat(" ", stop-col%stop))
		}
		b.WriteString(printable(part))
	}
	return b.String()
}

// fence is a code block at the left edge while it arrives.
type fence struct {
	*code
	mark   string // at least as much of it ends the block
	indent int    // spaces before the fence, and so before its lines
}

// openFence reads the line that opens a code block.
func openFence(line string, st Style) *fence {
	body := strings.TrimLeft(line, " ")
	rest := strings.TrimLeft(body, body[:1])
	lang, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return &fence{newCode(lang, st), body[:len(body)-len(rest)], len(line) - len(body)}
}

// ends reports whether line closes the block.
func (f *fence) ends(line string) bool {
	body := strings.TrimLeft(line, " ")
	return len(line)-len(body) < 4 && strings.HasPrefix(body, f.mark) && strings.Trim(strings.TrimSpace(body), f.mark[:1]) == ""
}

// inner returns line without the spaces that belong to the fence.
func (f *fence) inner(line string) string {
	n := 0
	for n < f.indent && n < len(line) && line[n] == ' ' {
		n++
	}
	return line[n:]
}
