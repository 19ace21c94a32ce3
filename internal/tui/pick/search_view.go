package pick

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
	"goclaw/recall"
)

var searchKeys = []hint{{"Enter", "open the hit"}, {"Up Down", "choose"}, {"?", "help"}, {"Esc", "back"}}

var openKeys = []hint{{"n p", "next or previous hit"}, {"o", "go to the session"}, {"f", "fork from here"}, {"Up Down", "scroll"}, {"?", "help"}, {"Esc", "hits"}}

var searchHelp = []hint{
	{"words", "find what was said, and notes; the best first"},
	{"--here", "only in sessions of this folder; --folder DIR another"},
	{"--since", "only since 2026-08-01, yesterday, 7d ...; --until"},
	{"--source", "only from a program: claude-code, codex, goclaw ..."},
	{"--role", "only what user, assistant, tool or summary said"},
	{"--tool", "only calls and output of a tool: bash, read ..."},
	{"--session", "only in session S; --agent A: an agent's"},
	{"--memory", "only in the memory files"},
	{"Enter", "open the hit, with what stands around it"},
	{"n, p", "there: the next hit, the previous one"},
	{"o, f", "there: go to the session; fork from there"},
	{"Esc", "back"},
}

// View shows the search.
func (s *Search) View(width, height int) string {
	s.w, s.h = width, height
	lines := 1
	if height >= 20 {
		lines = 2
	}
	switch {
	case s.help:
		return page(width, height, helpLines("Search", searchHelp, "The filters are those of goclaw search.", width), []string{paint(cDim, "any key goes back")}, none)
	case s.open != nil:
		head := []string{s.where(s.open.hit, 0, width), ""}
		place := fmt.Sprintf("hit %d of %d", s.list.at+1, len(s.hits))
		foot := append([]string{s.line(place, width)}, hints(openKeys, width, lines)...)
		return page(width, height, head, foot, func(h int) []string { return s.open.view(width, h) })
	}
	count := ""
	switch {
	case s.asked:
		count = "searching …"
	case s.text != "":
		count = transcript.Count(len(s.hits), "hit")
	}
	line, _ := s.filter.view("> ", "words, and filters such as --here or --since 7d", width)
	head := []string{paint(cHead, "Search") + paint(cDim, "  "+count), line}
	foot := append(s.said(width), hints(searchKeys, width, lines)...)
	return page(width, height, head, foot, func(h int) []string {
		switch {
		case len(s.hits) == 0 && s.text == "" && s.filter.String() == "":
			return helpLines("", searchHelp[:8], "", width)[1:]
		case len(s.hits) == 0 && !s.asked && !s.bad:
			return []string{paint(cDim, "nothing found")}
		}
		return s.table(width, h)
	})
}

// said says what went wrong, or else what there is to know about the hits.
func (s *Search) said(width int) (out []string) {
	if s.note == "" {
		for _, r := range s.remarks {
			out = append(out, cut(name(r), width))
		}
	}
	if out == nil {
		out = append(out, s.line("", width))
	}
	return out[len(out)-min(len(out), maxRemarks):]
}

// maxRemarks is how many lines the remarks take. The last one is about what the
// hits are.
const maxRemarks = 3

// Cursor returns where the cursor is.
func (s *Search) Cursor() *tea.Cursor {
	_, x := s.filter.view("> ", "", s.w)
	return cursor(x, 1, s.w, s.h, !s.help && s.open == nil)
}

// table shows the hits, under the sessions and files that they are in.
func (s *Search) table(width, height int) (out []string) {
	from, to := s.list.shown(height, func(i int) int {
		if s.group[i] > 0 {
			return 2
		}
		return 1
	})
	for i := from; i < to; i++ {
		h := s.hits[i]
		if s.group[i] > 0 {
			out = append(out, s.where(h, s.group[i], width))
		}
		mark := " "
		if i == s.list.at {
			mark = paint(cHead, ">")
		}
		label := fmt.Sprintf("#%d %s ", h.Seq, name(h.Role))
		if h.File != "" {
			label = fmt.Sprintf(":%d ", h.Line)
		}
		code := ""
		if h.Near { // it has no word of what was typed
			code = cDim
			label += "(near) "
		}
		text, marks := h.Snippet(s.text, max(width-4-len(label), 8))
		out = append(out, "  "+mark+" "+paint(cDim, label)+marked(text, marks, code))
	}
	return out
}

// where says in which session or file a hit is.
func (s *Search) where(h recall.Hit, n, width int) string {
	if h.File != "" {
		return paint(cBold, cut(name(h.File), width)) + paint(cDim, " "+name(h.Heading))
	}
	about := []string{age(s.o.Clock.Now(), h.Time)}
	if n > 1 {
		about = append(about, transcript.Count(n, "hit"))
	}
	if width >= 60 && h.Source != "" && h.Source != "goclaw" {
		about = append(about, name(h.Source))
	}
	if width >= 60 && h.Folder != "" {
		about = append(about, transcript.KeepEnd(name(transcript.Tilde(h.Folder)), width/3))
	}
	rest := "  " + strings.Join(about, ", ")
	return paint(cBold, cut(cmp.Or(name(h.Title), name(h.Key)), max(width-displaywidth.String(rest), 8))) + paint(cDim, rest)
}
