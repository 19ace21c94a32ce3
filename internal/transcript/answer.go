package transcript

import (
	"io"
	"strings"

	"goclaw/internal/markdown"
	"goclaw/internal/terminal"
)

// Answer shows an answer while it arrives. If the style says so it is rendered,
// block by block as they are finished; else it is printed as it comes.
type Answer interface {
	Write(text string)
	Close() // shows the rest, and ends the line
}

// NewAnswer returns an Answer that writes to out, for a terminal of width
// columns (0: it is not a terminal).
func NewAnswer(out func(string), st Style, width func() int) Answer {
	if !st.Render || width() <= 0 {
		return NewPrinter(out, width)
	}
	return &rendered{markdown.New(markdown.Style{Colour: st.Colour, Whole: true}, width), out}
}

// rendered is an Answer on a terminal that has styles.
type rendered struct {
	stream *markdown.Stream
	out    func(string)
}

func (r *rendered) Write(text string) {
	r.stream.Write(text)
	r.show(r.stream.Take())
}

func (r *rendered) Close() { r.show(r.stream.Close()) }

// show writes lines for a terminal.Writer. All that begins with an escape in
// them is a style.
func (r *rendered) show(lines string) {
	if lines != "" {
		r.out(strings.ReplaceAll(lines, "\x1b[", terminal.Control("")))
	}
}

// say shows a whole answer.
func say(w io.Writer, text string, st Style, width int) {
	a := NewAnswer(func(s string) { io.WriteString(w, s) }, st, func() int { return width })
	a.Write(strings.TrimRight(text, "\n"))
	a.Close()
}

// Printer prints an answer as it comes. On a terminal, prose is broken between
// words; code blocks and tables are not.
type Printer struct {
	out   *Wrapper
	width func() int // 0: there is no terminal

	held  string // the beginning of a line of which it is not known what it is
	begun bool   // that is known of the line
	code  bool   // the line is not prose
	fence string // that opened the code block, "" outside of one
	open  bool   // something is on the line
}

// NewPrinter returns a Printer that writes to out, for a terminal with width
// columns.
func NewPrinter(out func(string), width func() int) *Printer {
	return &Printer{out: NewWrapper(out, width), width: width}
}

// Write prints text.
func (p *Printer) Write(text string) {
	text = Printable(text)
	if p.width() <= 0 {
		p.put(text)
		return
	}
	for text != "" {
		part, rest, whole := strings.Cut(text, "\n")
		p.line(part, whole)
		text = rest
	}
}

// line prints part of a line; whole: up to its end.
func (p *Printer) line(part string, whole bool) {
	if !p.begun {
		part, p.held = p.held+part, ""
		if body := strings.TrimLeft(part, " "); !whole && (body == "" || strings.ContainsRune("`~", rune(body[0]))) {
			p.held = part
			return
		}
		p.begin(part)
	}
	if whole {
		part += "\n"
		p.begun = false
	}
	p.put(part)
}

// begin decides whether a line is code: one that begins with a backquote or a
// tilde is whole.
func (p *Printer) begin(line string) {
	p.begun = true
	body := strings.TrimLeft(line, " ")
	p.code = p.fence != "" || strings.HasPrefix(body, "|")
	switch {
	case p.fence != "":
		if strings.HasPrefix(body, p.fence) && strings.Trim(body, p.fence[:1]+" ") == "" {
			p.fence = ""
		}
	case strings.HasPrefix(body, "```") || strings.HasPrefix(body, "~~~"):
		rest := strings.TrimLeft(body, body[:1])
		if p.code = !strings.Contains(rest, "`"); p.code { // else it is code within a line
			p.fence = body[:len(body)-len(rest)]
		}
	}
}

func (p *Printer) put(s string) {
	if s == "" {
		return
	}
	p.open = !strings.HasSuffix(s, "\n")
	if p.code {
		p.out.Verbatim(s)
		return
	}
	p.out.Write(s)
}

// Close prints what is held back, and ends the line.
func (p *Printer) Close() {
	if p.held != "" {
		p.line("", true)
	}
	if p.open {
		p.put("\n")
	}
	p.out.Flush()
}

// Open reports whether there is text before the cursor on its line.
func (p *Printer) Open() bool { return p.open }
