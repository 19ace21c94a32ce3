package pick

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
	"goclaw/recall"
)

var sessionKeys = []hint{
	{"Enter", "open"}, {"Tab", "preview"}, {"Ctrl-R", "rename"}, {"Ctrl-X", "delete"}, {"Ctrl-Z", "undo"},
	{"Ctrl-F", "fork"}, {"Ctrl-L", "this folder"}, {"?", "help"}, {"Esc", "back"},
}

var sessionHelp = []hint{
	{"letters", "find by title, key, folder, and what was said"},
	{"Up Down", "choose; also PgUp, PgDn, Home, End"},
	{"Enter", "open the session"},
	{"Tab", "show or hide the preview"},
	{"Ctrl-R", "rename"},
	{"Ctrl-F", "fork: continue in a copy"},
	{"Ctrl-X", "move to the trash"},
	{"Ctrl-Z", "bring back what was deleted, one by one"},
	{"Ctrl-L", "only sessions of this folder, or all"},
	{"Esc", "go back without opening one"},
}

const sessionMore = "Every word that you type must match, in any order; a few letters of a word are enough. Sessions of other programs are only read: what you say in one continues in a session of goclaw's own."

// View shows the picker.
func (s *Sessions) View(width, height int) string {
	s.look.width, s.height = width, height
	if s.help {
		return page(width, height, helpLines("Choose a session", sessionHelp, sessionMore, width), []string{paint(cDim, "any key goes back")}, none)
	}
	now := s.o.Clock.Now()
	d := drawing{s}
	return page(width, height, d.head(width), d.foot(width, height), func(h int) []string {
		r := s.current()
		if r == nil {
			return []string{paint(cDim, d.empty())}
		}
		query, hit := s.filter.String(), s.rows.hits[r.ID]
		switch {
		case s.look.instead():
			return s.look.view(r, query, hit, now, width, h)
		case s.look.beside():
			left := width * 11 / 20
			return beside(d.table(left, h), s.look.view(r, query, hit, now, width-left-3, h), left, h)
		}
		return d.table(width, h)
	})
}

// drawing draws the parts of the picker.
type drawing struct{ *Sessions }

func none(int) []string { return nil }

// Cursor returns where the cursor is.
func (s *Sessions) Cursor() *tea.Cursor {
	_, x := s.field(s.look.width)
	return cursor(x, 1, s.look.width, s.height, !s.help)
}

// field is the line that is typed in.
func (s *Sessions) field(width int) (string, int) {
	if s.naming != nil {
		return s.naming.view("New title: ", "", width)
	}
	return s.filter.view("> ", "type to find: title, key, folder, what was said", width)
}

func (s drawing) head(width int) []string {
	count := fmt.Sprint(s.rows.count())
	if n := len(s.rows.shown); s.filter.String() != "" || s.rows.here != "" {
		count = fmt.Sprintf("%d of %s", n, count)
	}
	if !s.ended {
		count += "…"
	}
	where := ""
	if s.rows.here != "" {
		where = "  in " + transcript.KeepEnd(name(transcript.Tilde(s.rows.here)), max(width-len("Sessions  in ")-len(count)-2, 8))
	}
	line, _ := s.field(width)
	return []string{paint(cHead, "Sessions") + paint(cDim, "  "+count+where), line}
}

// empty says why there is nothing to choose.
func (s drawing) empty() string {
	switch {
	case !s.ended:
		return "reading …"
	case s.looking:
		return "searching …"
	case s.filter.String() != "" || s.rows.here != "":
		return "no session matches"
	}
	return "no sessions yet"
}

func (s drawing) foot(width, height int) []string {
	otherwise := s.about(width)
	if s.looking {
		otherwise = "searching what was said …"
	}
	note := s.line(otherwise, width)
	if s.naming != nil {
		return []string{note, hints([]hint{{"Enter", "rename"}, {"Esc", "keep the old title"}}, width, 1)[0]}
	}
	lines := 1
	if height >= 20 {
		lines = 2
	}
	return append([]string{note}, hints(sessionKeys, width, lines)...)
}

// about describes the session at the cursor where there is no preview.
func (s drawing) about(width int) string {
	r := s.current()
	if r == nil || s.look.shown() {
		return ""
	}
	return cut(fmt.Sprintf("%s, %s, %s", transcript.Source(r.Info), transcript.Count(r.Turns, "turn"), name(r.Key)), width)
}

// columns says how wide the columns are, 0: there is none.
type columns struct{ title, from, folder, turns, age int }

func columnsOf(width int) columns {
	c := columns{age: 5}
	if width >= 44 {
		c.from = 11
	}
	if width >= 60 {
		c.turns = 5
	}
	if width >= 76 {
		c.folder = min(16+(width-76)/3, 32)
	}
	c.title = width - 2
	for _, w := range []int{c.from, c.folder, c.turns, c.age} {
		if w > 0 {
			c.title -= w + 2
		}
	}
	c.title = max(c.title, 4)
	return c
}

// table shows the list.
func (s drawing) table(width, height int) []string {
	c := columnsOf(width)
	var out []string
	if height > 10 {
		out = append(out, paint(cDim, c.line("  "+cell("TITLE", c.title), "FROM", "FOLDER", "TURNS", "AGE")))
	}
	room := height - len(out)
	from, to := s.list.shown(room, func(i int) int {
		if s.rows.hits[s.rows.shown[i].ID].Seq > 0 {
			return 2
		}
		return 1
	})
	for i := from; i < to; i++ {
		out = append(out, s.row(i, c, width)...)
	}
	return out
}

// line puts cells beside each other.
func (c columns) line(title, from, folder, turns, age string) string {
	var b strings.Builder
	b.WriteString(title)
	for _, x := range []struct {
		w    int
		text string
	}{{c.from, cell(from, c.from)}, {c.folder, cell(transcript.KeepEnd(folder, c.folder), c.folder)}, {c.turns, right(turns, c.turns)}, {c.age, right(age, c.age)}} {
		if x.w > 0 {
			b.WriteString("  " + x.text)
		}
	}
	return b.String()
}

func right(s string, w int) string {
	return strings.Repeat(" ", max(w-displaywidth.String(s), 0)) + cut(s, w)
}

// row shows a session, and what was found in it.
func (s drawing) row(i int, c columns, width int) []string {
	r := s.rows.shown[i]
	mark, code := " ", ""
	if i == s.list.at {
		mark, code = paint(cHead, ">"), cBold
	}
	if r.ID == s.o.Open {
		mark += paint(cHead, "*")
	} else {
		mark += " "
	}
	title := cut(r.title, c.title)
	fill := strings.Repeat(" ", max(c.title-displaywidth.String(title), 0))
	rest := c.line("", transcript.Source(r.Info), name(transcript.Tilde(r.CWD)), fmt.Sprint(r.Turns), age(s.o.Clock.Now(), r.Updated))
	out := []string{mark + lit(title, s.rows.query.Positions(r.text), code) + fill + paint(cDim, rest)}
	if h, ok := s.rows.hits[r.ID]; ok {
		out = append(out, "    "+snippet(h, s.filter.String(), width-4))
	}
	return out
}

// snippet is what of a hit fits the query, in one line.
func snippet(h recall.Hit, query string, width int) string {
	text, marks := h.Snippet(query, max(width-2, 8))
	return marked(text, marks, cDim)
}
