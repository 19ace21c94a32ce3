package editor

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

// past is what was typed before, as Up and Down go through it. Changes are kept
// until something is sent, the draft that was begun first among them.
type past struct {
	lines  []string // oldest first; those of this chat with their chips
	at     int      // which is shown; len(lines): the draft
	edited map[int]string
}

func (p *past) begin(lines []string) {
	for _, s := range lines {
		p.lines = append(p.lines, clean(s))
	}
	p.end()
}

// end goes back to a new draft.
func (p *past) end() { p.at, p.edited = len(p.lines), map[int]string{} }

// maxPast is how much is remembered.
const maxPast = 1000

func (p *past) push(text string) {
	if n := len(p.lines); strings.TrimSpace(text) == "" || n > 0 && p.lines[n-1] == text {
		return
	}
	p.lines = append(p.lines, text)
	p.lines = p.lines[max(len(p.lines)-maxPast, 0):]
}

// recall shows the line before or after the one that is shown.
func (e *Editor) recall(by int) {
	p := &e.past
	to := p.at + by
	if to < 0 || to > len(p.lines) {
		return
	}
	p.edited[p.at] = e.buf.text
	p.at = to
	text, ok := p.edited[to]
	if !ok {
		text = p.lines[to]
	}
	e.buf.set(text, len(text))
	e.menu.close()
}

// search is a search in what was typed before.
type search struct {
	on     bool
	buf    *buffer  // shows what was found
	lines  []string // oldest first
	query  string
	found  int // -1: nowhere
	before state
}

func (s *search) begin(b *buffer, lines []string) {
	*s = search{on: true, buf: b, lines: lines, found: -1, before: state{b.text, b.pos}}
}

// key handles a key during a search. done is false if the key ends the search and
// has its usual meaning.
func (s *search) key(name string, k tea.KeyPressMsg) (done bool) {
	if text := typed(k); text != "" {
		s.add(clean(text))
		return true
	}
	switch name {
	case "backspace", "ctrl+h":
		if s.query != "" {
			_, n := utf8.DecodeLastRuneInString(s.query)
			s.query = s.query[:len(s.query)-n]
		}
		s.find(len(s.lines) - 1)
	case "ctrl+r", "up":
		if s.found > 0 {
			s.find(s.found - 1)
		}
	case "ctrl+s", "down":
		for i := s.found + 1; i < len(s.lines) && s.found >= 0 && s.query != "" && !s.shows(i); i++ {
			continue
		}
	case "esc", "ctrl+c", "ctrl+g":
		s.on = false
		s.buf.text, s.buf.pos = s.before.text, s.before.pos
	case "enter", "tab":
		s.take()
	default:
		s.take()
		return false
	}
	return true
}

// take ends the search with what it found.
func (s *search) take() {
	found := state{s.buf.text, s.buf.pos}
	s.on = false
	s.buf.text, s.buf.pos = s.before.text, s.before.pos
	s.buf.set(found.text, found.pos)
}

func (s *search) add(text string) {
	s.query += strings.ReplaceAll(text, "\n", " ")
	s.find(len(s.lines) - 1)
}

// find looks for the query from that line on, backwards.
func (s *search) find(from int) {
	for i := from; i >= 0 && s.query != ""; i-- {
		if s.shows(i) {
			return
		}
	}
	if from == len(s.lines)-1 {
		s.found = -1
	}
}

// shows shows line i if it holds the query. One that is shown already is left
// out: it is the same line, typed at another time.
func (s *search) shows(i int) bool {
	line := s.lines[i]
	at := strings.Index(strings.ToLower(line), strings.ToLower(s.query))
	if at < 0 || s.found >= 0 && line == s.buf.text && i != s.found {
		return false
	}
	s.found = i
	s.buf.text = line
	s.buf.pos = s.buf.boundary(min(at+len(s.query), len(line)))
	return true
}

// line is what is shown of the search below the text, and the column of the
// cursor in it.
func (s search) line(width int) (text string, x int) {
	const hint = "  (Ctrl-R older, Enter takes it, Esc goes back)"
	text = fmt.Sprintf("search: %s", s.query)
	if s.found < 0 && s.query != "" {
		text = fmt.Sprintf("not found: %s", s.query)
	}
	runes := []rune(text)
	for len(runes) > 0 && columns(string(runes)) > width-1 { // its end is what is being typed
		runes = slices.Delete(runes, 0, 1)
	}
	text = string(runes)
	x = columns(text)
	return text + clip(hint, max(width-x, 0)), x
}
