package notes

import (
	"bytes"
	"encoding/binary"
	"maps"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"goclaw/recall/internal/words"
)

// Note is a piece of a memory file: a list item, a paragraph, a few lines of
// code, or a heading.
type Note struct {
	Line, Lines int    // where it begins, from 1, and how long it is
	Heading     string // the path of headings above it
	Text        string

	isHeading bool
}

// A subject is looked for in so many words and bytes.
const (
	subjectWords = 4
	maxSubject   = 160
)

// subject returns what a note is about, as far as its beginning tells: the
// first word that is capitalised and not a stop word. A note is found by it as
// a message is by its speaker.
func (n Note) subject() string {
	if n.isHeading {
		return ""
	}
	text := WithoutMark(n.Text[:min(len(n.Text), maxSubject)])
	for i, f := range strings.Fields(text) {
		if i == subjectWords {
			break
		}
		w := strings.Trim(f, "*_`\"'“”‘’.,:;!?()[]")
		if r, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(r) && words.Term(w) != "" {
			return w
		}
	}
	return ""
}

// subjects returns the terms of what two notes or more are about.
func subjects(notes []Note) map[string]bool {
	seen, twice := map[string]bool{}, map[string]bool{}
	for _, n := range notes {
		if t := words.Term(n.subject()); t != "" {
			twice[t] = seen[t]
			seen[t] = true
		}
	}
	maps.DeleteFunc(twice, func(_ string, is bool) bool { return !is })
	return twice
}

// namesOthers reports whether a note that has a subject names another of those
// given, with a capital letter.
func (n Note) namesOthers(subjects map[string]bool) (others bool) {
	own := words.Term(n.subject())
	if own == "" {
		return false
	}
	words.Each(n.Text, func(w words.Word) {
		r, _ := utf8.DecodeRuneInString(n.Text[w.From:])
		others = others || w.Term != own && subjects[w.Term] && unicode.IsUpper(r)
	})
	return others
}

// maxNote is how many bytes a note has at most. A line that is longer is
// several notes.
const maxNote = 1200

var (
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.*?)\s*#*\s*$`)
	underLine   = regexp.MustCompile(`^ {0,3}(==+|--+)\s*$`)
	itemLine    = regexp.MustCompile(`^\s*(?:[-*+]|\d{1,9}[.)])\s+`)
	fenceLine   = regexp.MustCompile("^\\s*(`{3,}|~{3,})(.*)$")
)

// textOf returns the text of a file, which may begin with a byte order mark
// and be UTF-16, and whether it is a text at all.
func textOf(data []byte) (string, bool) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return wide(data[2:], binary.LittleEndian), true
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return wide(data[2:], binary.BigEndian), true
	}
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", false
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), true
}

// wide reads UTF-16.
func wide(data []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}

// linesOf returns the lines of a text without their ends.
func linesOf(text string) []string {
	lines := strings.Split(text, "\n")
	if n := len(lines); lines[n-1] == "" {
		lines = lines[:n-1]
	}
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

// split splits Markdown at headings, list items, empty lines and size.
func split(text string) []Note {
	s := splitter{lines: linesOf(text)}
	start := frontMatter(s.lines)
	if start > 0 {
		s.from = 1 // without the marks
		for i := 1; i < start-1; i++ {
			s.line(i)
		}
		s.end(start - 1)
		s.from = start
	}
	fence := fences{lines: s.lines}
	inFence := 0 // lines before this one are code
	for i := start; i < len(s.lines); i++ {
		line := s.lines[i]
		if i >= inFence {
			inFence = max(i, fence.end(i))
		}
		if i < inFence {
			s.line(i)
			continue
		}
		if m := headingLine.FindStringSubmatch(line); m != nil {
			s.end(i)
			s.head(i, 1, len(m[1]), m[2])
			continue
		}
		if m := underLine.FindStringSubmatch(line); m != nil && s.titled(i) {
			level := 1
			if m[1][0] == '-' {
				level = 2
			}
			title := strings.TrimSpace(s.lines[i-1])
			s.from = i + 1
			s.head(i-1, 2, level, title)
			continue
		}
		switch {
		case strings.TrimSpace(line) == "":
			s.end(i)
			s.from = i + 1
			continue
		case itemLine.MatchString(line):
			s.end(i)
		}
		s.line(i)
	}
	s.end(len(s.lines))
	return s.notes
}

// splitter collects notes. The lines from on are those of the open note.
type splitter struct {
	lines    []string
	from     int
	size     int // bytes of the open note
	notes    []Note
	headings [6]string
	path     string // of the headings
}

// line adds line i to the open note if it has room.
func (s *splitter) line(i int) {
	line := s.lines[i]
	if s.size > 0 && s.size+len(line) > maxNote {
		s.end(i)
	}
	if len(line) > maxNote {
		s.end(i)
		for _, piece := range pieces(line, maxNote) {
			s.notes = append(s.notes, Note{Line: i + 1, Lines: 1, Heading: s.path, Text: piece})
		}
		s.from = i + 1
		return
	}
	s.size += len(line) + 1
}

// end ends the open note before line i.
func (s *splitter) end(i int) {
	if s.from < i {
		if t := strings.TrimSpace(strings.Join(s.lines[s.from:i], "\n")); says(t) {
			s.notes = append(s.notes, Note{Line: s.from + 1, Lines: i - s.from, Heading: s.path, Text: t})
		}
	}
	s.from, s.size = i, 0
}

// says reports whether a text has more than marks. A rule, or a fence that was
// left open, has not.
func says(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r) })
}

// head takes a heading of so many lines at line i.
func (s *splitter) head(i, lines, level int, title string) {
	s.headings[level-1] = title
	clear(s.headings[level:])
	var p []string
	for _, h := range s.headings {
		if h != "" {
			p = append(p, h)
		}
	}
	s.path = strings.Join(p, " > ")
	s.from, s.size = i+lines, 0
	for _, piece := range pieces(title, maxNote) {
		s.notes = append(s.notes, Note{Line: i + 1, Lines: lines, Heading: s.path, isHeading: true, Text: piece})
	}
}

// titled reports whether the line before line i is text that is made a heading
// by underlining it.
func (s *splitter) titled(i int) bool {
	if s.from != i-1 || s.size == 0 {
		return false
	}
	line := strings.TrimSpace(s.lines[i-1])
	return line != "" && !itemLine.MatchString(s.lines[i-1]) && !fenceLine.MatchString(line) && !strings.ContainsAny(line[:1], "|>")
}

// pieces cuts a long text into pieces of at most n bytes, between words where
// there are any.
func pieces(text string, n int) []string {
	var out []string
	for text = strings.TrimSpace(text); len(text) > n; text = strings.TrimSpace(text) {
		cut := strings.LastIndexAny(text[:n], " \t")
		if cut < n/2 {
			cut = n
			for cut > n-utf8.UTFMax && !utf8.RuneStart(text[cut]) {
				cut--
			}
		}
		out = append(out, strings.TrimSpace(text[:cut]))
		text = text[cut:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}

// maxFront is how many lines are looked at for the end of front matter.
const maxFront = 200

// frontMatter returns how many lines at the beginning are metadata between
// two lines of three dashes, or plus signs.
func frontMatter(lines []string) int {
	if len(lines) == 0 {
		return 0
	}
	mark := strings.TrimRight(lines[0], " \t")
	if mark != "---" && mark != "+++" {
		return 0
	}
	sign := ":"
	if mark == "+++" {
		sign = "="
	}
	for i, l := range lines[1:min(len(lines), maxFront)] {
		t := strings.TrimSpace(l)
		switch {
		case t == mark || mark == "---" && t == "...":
			return i + 2
		case t == "", l[0] == ' ', l[0] == '\t', strings.ContainsAny(t[:1], "-#[]"), strings.Contains(t, sign):
		default:
			return 0 // a paragraph between two rules
		}
	}
	return 0
}

// fences finds where blocks of code end. A fence that nothing closes opens no
// block: one that was left open does not swallow the rest of the file.
type fences struct {
	lines []string
	open  map[byte]int // by mark: the fence length that is known to be unclosed
}

// end returns the line after the block that begins at line i, 0 if none does.
func (f *fences) end(i int) int {
	m := fenceLine.FindStringSubmatch(f.lines[i])
	if m == nil || m[1][0] == '`' && strings.Contains(m[2], "`") {
		return 0
	}
	mark, n := m[1][0], len(m[1])
	if known, ok := f.open[mark]; ok && n >= known {
		return 0
	}
	for j := i + 1; j < len(f.lines); j++ {
		c := fenceLine.FindStringSubmatch(f.lines[j])
		if c != nil && c[1][0] == mark && len(c[1]) >= n && strings.TrimSpace(c[2]) == "" {
			return j + 1
		}
	}
	if f.open == nil {
		f.open = map[byte]int{}
	}
	f.open[mark] = n
	return 0
}

// WithoutMark returns a text without the mark of a list item.
func WithoutMark(text string) string { return itemLine.ReplaceAllString(text, "") }
