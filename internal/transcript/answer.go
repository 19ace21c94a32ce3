package transcript

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/terminal"
)

// Answer shows an answer while it arrives, a word at a time. A mark that waits
// for its other half (of a bold word, of code), the beginning of a line, and a
// table are held back until the rest has arrived or no longer can. Nothing on
// the screen is ever changed again, and a mark without its other half is shown
// as it is.
//
// The text must be printable already. In a pipe (no colours, no width) it goes
// through as it is.
type Answer struct {
	out    *Wrapper
	colour bool       // without it there are no styles, and marks are shown
	width  func() int // of the terminal; 0: there is none

	held  string   // not shown yet
	table []string // lines that may be a table, not shown yet
	size  int      // bytes of table
	begun bool     // the beginning of the line is shown
	base  sgr      // the style of the line
	fence string   // that opened the code block, "" outside of one
	prev  rune     // the last character shown on the line
	col0  bool     // nothing is shown on the line
}

// NewAnswer returns an Answer that writes to out, for a terminal with width
// columns.
func NewAnswer(out func(string), st Style, width func() int) *Answer {
	return &Answer{out: NewWrapper(out, width), colour: st.Colour, width: width, col0: true}
}

const (
	maxHeld  = 400     // bytes of a line that are held back at most
	maxTable = 1 << 16 // bytes of a table
)

// Write shows what can be shown of text.
func (m *Answer) Write(text string) {
	if !m.colour && m.width() <= 0 {
		m.put(text)
		return
	}
	m.held += text
	for m.held != "" {
		line, rest, whole := strings.Cut(m.held, "\n")
		if !m.begun && m.fence == "" {
			switch row, wait := m.row(line, whole); {
			case row:
				m.held = rest
				continue
			case wait:
				return
			}
		}
		if !m.begun && !m.begin(line, whole) {
			return
		}
		if whole {
			// begin may have eaten marks of the line.
			line, _, _ = strings.Cut(m.held, "\n")
			m.say(line, true)
			m.endLine()
			m.held = rest
			continue
		}
		line = m.held
		m.held = m.say(line, false)
		return
	}
}

// Close shows what is held back, and ends the line.
func (m *Answer) Close() {
	switch {
	case m.held != "":
		m.Write("\n")
	case m.begun:
		m.endLine()
	case !m.col0:
		m.put("\n")
	}
	m.endTable()
	m.out.Flush()
}

// Open reports whether there is text before the cursor on its line.
func (m *Answer) Open() bool { return !m.col0 }

func (m *Answer) put(s string) {
	if s == "" {
		return
	}
	m.col0 = strings.HasSuffix(s, "\n")
	if m.fence != "" {
		m.out.Verbatim(s)
		return
	}
	m.out.Write(s)
}

// row keeps a line that may belong to a table. wait says that more of the line
// must arrive first.
func (m *Answer) row(line string, whole bool) (row, wait bool) {
	switch body := strings.TrimLeft(line, " "); {
	case body == "" && !whole:
		return false, true
	case !strings.HasPrefix(body, "|") || m.size+len(line) > maxTable:
		m.endTable()
		return false, false
	case !whole:
		return false, true
	}
	m.table = append(m.table, line)
	m.size += len(line)
	return true, false
}

// endTable shows the table that is held back.
func (m *Answer) endTable() {
	lines := m.table
	m.table, m.size = nil, 0
	switch {
	case len(lines) == 0:
		return
	case IsGrid(lines):
		lines = Grid(lines, m.width(), m.styled, Style{Colour: m.colour})
	default:
		for i := range lines {
			lines[i] = m.styled(lines[i])
		}
	}
	m.out.Verbatim(strings.Join(lines, "\n") + "\n")
	m.col0 = true
}

// styled applies the marks within a line.
func (m *Answer) styled(line string) string {
	if !m.colour {
		return line
	}
	out, _ := inline(line, 0, 0, true)
	return out
}

func (m *Answer) endLine() {
	m.put("\n")
	m.begun, m.base, m.prev = false, 0, 0
}

// begin shows the beginning of a line: the mark of a heading, a list, a
// quotation, a fence. It reports whether the rest can be shown; if not, more of
// the line must arrive first. What it shows is removed from held.
func (m *Answer) begin(line string, whole bool) bool {
	body := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(body)]
	if !whole && undecided(body) {
		return false
	}
	if m.fence != "" {
		return m.inFence(line, body, whole)
	}
	switch {
	case strings.HasPrefix(body, "```") || strings.HasPrefix(body, "~~~"):
		if !whole && len(line) < maxHeld {
			return false
		}
		run := body[:len(body)-len(strings.TrimLeft(body, body[:1]))]
		if !strings.Contains(body[len(run):], "`") { // else it is code within a line
			m.fence = run
			m.whole(line, line, dim)
			return true
		}
	case !m.colour: // its marks are shown
	case isRule(body):
		if !whole {
			return len(line) >= maxHeld
		}
		m.whole(line, indent+strings.Repeat("─", 40), dim)
		return true
	case strings.HasPrefix(body, "#"):
		if n := len(body) - len(strings.TrimLeft(body, "#")); n <= 6 && strings.HasPrefix(body[n:], " ") {
			m.base = bold
			if n == 1 {
				m.base |= underline
			}
			m.eat(len(indent) + n + 1)
		}
	case len(body) > 1 && strings.ContainsRune("-*+", rune(body[0])) && body[1] == ' ':
		m.put(indent + "• ")
		m.eat(len(indent) + 2)
	case strings.HasPrefix(body, ">"):
		m.base = italic
		m.put(indent + dim.on() + "│ " + dim.off())
		m.eat(len(indent) + 1)
		m.held = strings.TrimPrefix(m.held, " ")
	}
	m.begun = true
	return true
}

// undecided reports whether a line that begins with s may still become a
// heading, a list, a quotation, a fence or a rule.
func undecided(s string) bool {
	switch {
	case s == "" || s == ">" || s == "+":
		return true
	case strings.Trim(s, "#") == "":
		return len(s) <= 6
	case strings.Trim(s, "`") == "" || strings.Trim(s, "~") == "":
		return len(s) < 3
	}
	return isRun(s) && !isRule(s)
}

// isRun reports whether s consists of one of the marks of a rule.
func isRun(s string) bool {
	for _, mark := range []string{"-", "*", "_"} {
		if strings.HasPrefix(s, mark) && !strings.HasPrefix(s, mark+" ") && strings.Trim(s, mark+" ") == "" {
			return true
		}
	}
	return false
}

// isRule reports whether s is a horizontal rule, as far as it has arrived.
func isRule(s string) bool { return isRun(s) && len(strings.ReplaceAll(s, " ", "")) >= 3 }

// inFence shows a line of a code block, and leaves the block at its end.
func (m *Answer) inFence(line, body string, whole bool) bool {
	if strings.HasPrefix(body, m.fence[:1]) && strings.Trim(body, m.fence[:1]+" ") == "" {
		if !whole {
			return false
		}
		if len(strings.TrimRight(body, " ")) >= len(m.fence) {
			m.whole(line, line, dim)
			m.fence = ""
			return true
		}
	}
	m.base = cyan
	m.begun = true
	return true
}

// whole shows shown instead of line, in one style, and removes line from held.
func (m *Answer) whole(line, shown string, s sgr) {
	m.put(m.paint(s, shown))
	m.begun = true
	m.eat(len(line))
}

func (m *Answer) eat(n int) { m.held = m.held[n:] }

// say shows part of a line and returns the rest, which must wait. If the line
// is whole, nothing waits.
func (m *Answer) say(s string, whole bool) string {
	if m.fence != "" || !m.colour {
		m.put(m.paint(m.base, s))
		return ""
	}
	out, rest := inline(s, m.base, m.prev, whole)
	m.put(m.paint(m.base, out))
	if used := s[:len(s)-len(rest)]; used != "" {
		m.prev, _ = utf8.DecodeLastRuneInString(used)
	}
	return rest
}

// paint sets text in style s, if there are colours.
func (m *Answer) paint(s sgr, text string) string {
	if !m.colour || text == "" {
		return text
	}
	return s.on() + text + s.off()
}

// sgr is a set of the terminal's styles.
type sgr int

const (
	bold sgr = 1 << iota
	dim
	italic
	underline
	strike
	cyan
	yellow
)

var sgrCodes = []struct {
	s    sgr
	code string
}{{bold, "1"}, {dim, "2"}, {italic, "3"}, {underline, "4"}, {strike, "9"}, {cyan, "36"}, {yellow, "33"}}

func (s sgr) on() string {
	var codes []string
	for _, c := range sgrCodes {
		if s&c.s != 0 {
			codes = append(codes, c.code)
		}
	}
	if len(codes) == 0 {
		return ""
	}
	return terminal.Control(strings.Join(codes, ";") + "m")
}

func (s sgr) off() string {
	if s == 0 {
		return ""
	}
	return terminal.Control("0m")
}

// within sets text in s inside of outer, and goes back to outer.
func (s sgr) within(outer sgr, text string) string {
	return (outer | s).on() + text + terminal.Control("0m") + outer.on()
}

// marks give the text between two of them a style.
var marks = map[string]sgr{"***": bold | italic, "**": bold, "__": bold, "~~": strike, "*": italic, "_": italic}

// inline applies the marks within a line. rest may still become a pair; it is
// empty if the line is whole. The result does not depend on the pieces in which
// a line arrives.
func inline(s string, base sgr, prev rune, whole bool) (out, rest string) {
	var b strings.Builder
	for s != "" {
		i := strings.IndexAny(s, "\\`*_~[")
		if i < 0 {
			b.WriteString(s)
			return b.String(), ""
		}
		if i > 0 {
			b.WriteString(s[:i])
			prev, _ = utf8.DecodeLastRuneInString(s[:i])
			s = s[i:]
		}
		shown, used := pair(s[:min(len(s), maxHeld)], base, prev, whole && len(s) <= maxHeld)
		switch {
		case used > 0:
			b.WriteString(shown)
		case !whole && len(s) < maxHeld:
			return b.String(), s
		default: // it has no other half
			used = runOf(s)
			b.WriteString(s[:used])
		}
		prev, _ = utf8.DecodeLastRuneInString(s[:used])
		s = s[used:]
	}
	return b.String(), ""
}

// runOf returns how often s repeats its first byte at its beginning.
func runOf(s string) int { return len(s) - len(strings.TrimLeft(s, s[:1])) }

// pair shows the pair of marks that s begins with and returns its length. 0
// means that there is no pair, or that more text is needed to tell.
func pair(s string, base sgr, prev rune, whole bool) (shown string, used int) {
	switch s[0] {
	case '\\':
		switch {
		case len(s) == 1:
			return "", 0
		case strings.ContainsRune("\\`*_~[]()#+-.!>|{}", rune(s[1])):
			return s[1:2], 2
		}
		return s[:1], 1
	case '`':
		return codeSpan(s, base, whole)
	case '[':
		return link(s, base)
	}
	n := runOf(s)
	if n == len(s) {
		return "", 0
	}
	run := s[:n]
	style, ok := marks[run]
	after, _ := utf8.DecodeRuneInString(s[n:])
	if !ok || unicode.IsSpace(after) || isWord(prev) && (n == 1 || s[0] == '_') {
		return run, n // it opens nothing
	}
	inner, ok := upTo(s[n:], run, whole)
	if !ok {
		return "", 0
	}
	text, _ := inline(inner, base|style, 0, true)
	return style.within(base, text), 2*n + len(inner)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// upTo returns the part of s before its closing mark. Whether a mark closes is
// known when something follows it, or when the line is whole.
func upTo(s, mark string, whole bool) (inner string, ok bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '`':
			_, n := codeSpan(s[i:], 0, whole)
			if n == 0 && !whole {
				return "", false // perhaps the mark is in the middle of code
			}
			i += max(n, runOf(s[i:])) - 1
		case mark[0]:
			n := runOf(s[i:])
			if i+n == len(s) && !whole {
				return "", false
			}
			before, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[i+n:])
			if n == len(mark) && i > 0 && !unicode.IsSpace(before) && !(mark[0] == '_' && isWord(after)) {
				return s[:i], true
			}
			i += n - 1
		}
	}
	return "", false
}

// codeSpan shows code within a line. It ends with as many backquotes as it began
// with.
func codeSpan(s string, base sgr, whole bool) (shown string, used int) {
	n := runOf(s)
	for i := n; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		m := runOf(s[i:])
		if i+m == len(s) && !whole {
			return "", 0
		}
		if m == n {
			text := s[n:i]
			if t := strings.TrimSpace(text); n > 1 && t != "" {
				text = t
			}
			return cyan.within(base, text), i + m
		}
		i += m - 1
	}
	return "", 0
}

// link shows [text](address) as both.
func link(s string, base sgr) (shown string, used int) {
	end := strings.IndexByte(s, ']')
	if end < 0 || end+1 == len(s) {
		return "", 0
	}
	if s[end+1] != '(' {
		return "[", 1
	}
	n := strings.IndexAny(s[end+2:], ") ")
	if n < 0 {
		return "", 0
	}
	text, addr := s[1:end], s[end+2:end+2+n]
	if s[end+2+n] == ' ' || addr == "" {
		return "[", 1
	}
	used = end + 2 + n + 1
	if text == addr || text == "" {
		return underline.within(base, addr), used
	}
	text, _ = inline(text, base|underline, 0, true)
	return underline.within(base, text) + dim.within(base, " ("+addr+")"), used
}
