// Package look is a viewer for long texts: the output of a tool, a record, a
// transcript. It has the whole screen, scrolls and searches.
//
// It takes any text: what could control the terminal is shown as U+FFFD, and
// neither 100 MB nor a line of 10 MB make it slow, because only what is on the
// screen is laid out.
package look

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// Doc is a text to look at.
type Doc struct {
	Title string
	Text  string
	Diff  bool // Text is, or ends with, a unified diff, which is coloured
	// Painted: Text was painted line by line with a transcript.Style. It is
	// filtered then, and its lines are short.
	Painted bool
}

// Viewer shows one of several texts. It is an Overlay of package tui.
type Viewer struct {
	style transcript.Style
	open  func(i int) Doc
	n, i  int
	doc   Doc
	page  *page

	top           int // the first row
	width, height int
	lastTop       int // the first row of the last page; -1: not known

	query  string
	typing bool
	typed  string
	said   string // about the last search
	hit    int    // the place that was found last; -1: none
	search int    // which search is under way
}

// New returns a viewer of n texts that begins with text i. open returns one of
// them; what names them all is their order.
func New(st transcript.Style, n, i int, open func(i int) Doc) *Viewer {
	v := &Viewer{style: st, open: open, n: n, width: 80, height: 24}
	v.turn(i)
	return v
}

// turn shows text i.
func (v *Viewer) turn(i int) {
	v.i = min(max(i, 0), max(v.n-1, 0))
	v.doc = Doc{Title: "nothing to show"}
	if v.n > 0 {
		v.doc = v.open(v.i)
	}
	text := v.doc.Text
	if v.doc.Painted {
		text = terminal.Text(text)
	}
	v.page = newPage(text, v.doc.Painted)
	v.page.width = max(v.width, 1)
	v.top, v.lastTop, v.hit, v.said = 0, -1, -1, ""
	v.search++
}

// FullScreen implements tui.Overlay.
func (v *Viewer) FullScreen() bool { return true }

// body is how many rows of text there are.
func (v *Viewer) body() int { return max(v.height-2, 1) }

// resize keeps the first row on the screen.
func (v *Viewer) resize(width, height int) {
	if width == v.width && height == v.height {
		return
	}
	v.width, v.height = width, height
	v.page.width = max(width, 1)
	v.lastTop = -1
	v.top = min(v.page.at(v.top), v.end())
}

// end is the first row of the last page.
func (v *Viewer) end() int {
	if v.lastTop < 0 {
		v.lastTop = v.page.up(v.page.at(len(v.page.text)), v.body()-1)
	}
	return v.lastTop
}

func (v *Viewer) scroll(rows int) {
	if rows < 0 {
		v.top = v.page.up(v.top, -rows)
		return
	}
	v.top = min(v.page.down(v.top, rows), v.end())
}

// found says where a search ended.
type found struct {
	v      *Viewer
	search int
	at     int
	again  bool // from the other end
}

// Update implements tui.Overlay.
func (v *Viewer) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.resize(msg.Width, msg.Height)
	case tea.PasteMsg:
		if v.typing {
			v.typed += transcript.OneLine(msg.Content, 200)
		}
	case found:
		if msg.v == v && msg.search == v.search {
			v.arrive(msg)
		}
	case tea.KeyPressMsg:
		if v.typing {
			return false, v.edit(msg)
		}
		return v.key(msg.String())
	}
	return false, nil
}

func (v *Viewer) key(k string) (done bool, cmd tea.Cmd) {
	switch k {
	case "q", "esc", "ctrl+c", "ctrl+o":
		return true, nil
	case "down", "j", "enter":
		v.scroll(1)
	case "up", "k":
		v.scroll(-1)
	case "pgdown", "space", " ", "ctrl+f", "f":
		v.scroll(v.body())
	case "pgup", "ctrl+b", "b":
		v.scroll(-v.body())
	case "ctrl+d":
		v.scroll(v.body() / 2)
	case "ctrl+u":
		v.scroll(-v.body() / 2)
	case "g", "home":
		v.top = 0
	case "G", "end":
		v.top = v.end()
	case "right", "]":
		v.other(1)
	case "left", "[":
		v.other(-1)
	case "/":
		v.typing, v.typed = true, ""
	case "n":
		if v.query == "" {
			v.other(1)
			return false, nil
		}
		return false, v.seek(false)
	case "N":
		return false, v.seek(true)
	case "p":
		if v.query == "" {
			v.other(-1)
			return false, nil
		}
		return false, v.seek(true)
	}
	return false, nil
}

// other shows the text after this one, or before it.
func (v *Viewer) other(by int) {
	if i := v.i + by; i >= 0 && i < v.n {
		v.turn(i)
	}
}

// edit edits what is searched for.
func (v *Viewer) edit(k tea.KeyPressMsg) tea.Cmd {
	switch s := k.String(); s {
	case "esc", "ctrl+c":
		v.typing = false
	case "enter":
		v.typing, v.query, v.hit = false, v.typed, -1
		return v.seek(false)
	case "backspace", "ctrl+h":
		if v.typed == "" {
			v.typing = false
			break
		}
		r := []rune(v.typed)
		v.typed = string(r[:len(r)-1])
	case "ctrl+u":
		v.typed = ""
	default:
		v.typed += k.Text
	}
	return nil
}

// seek searches for the next place after the last one, or for the one before it.
func (v *Viewer) seek(back bool) tea.Cmd {
	v.search++
	if v.query == "" {
		v.said = ""
		return nil
	}
	v.said = "searching …"
	text, query, n := v.page.text, v.query, v.search
	from, before := v.top, v.top
	if v.hit >= 0 {
		from, before = v.hit+1, v.hit
	}
	return func() tea.Msg {
		at, again := -1, false
		if back {
			if at = findBack(text, query, before); at < 0 {
				at, again = findBack(text, query, len(text)), true
			}
		} else if at = find(text, query, from); at < 0 {
			at, again = find(text, query, 0), true
		}
		return found{v, n, at, again}
	}
}

// arrive shows what was found, a few rows below the top.
func (v *Viewer) arrive(f found) {
	switch {
	case f.at < 0:
		v.said = "not found"
		return
	case f.again:
		v.said = "found after wrapping around"
	default:
		v.said = ""
	}
	v.hit = f.at
	rows := v.page.rows(v.top, v.body(), nil)
	if last := rows[len(rows)-1]; f.at >= v.top && f.at < last.next {
		return
	}
	v.top = min(v.page.up(v.page.at(f.at), min(3, v.body()/2)), v.end())
}

// View implements tui.Overlay.
func (v *Viewer) View(width, height int) string {
	v.resize(width, height)
	rows := v.page.rows(v.top, v.body(), nil)
	bottom := min(rows[len(rows)-1].next, len(v.page.text))
	if v.query != "" {
		rows = v.page.rows(v.top, v.body(), within(v.page.text, v.query, v.top, bottom))
	}
	out := make([]string, 0, height)
	out = append(out, v.head())
	for _, r := range rows {
		out = append(out, v.coloured(r))
	}
	for len(out) < height-1 {
		out = append(out, "")
	}
	out = append(out, v.foot(bottom))
	return strings.Join(out[:min(len(out), max(height, 0))], "\n")
}

func (v *Viewer) head() string {
	count := ""
	if v.n > 1 {
		count = fmt.Sprintf("  %d of %d", v.i+1, v.n)
	}
	title := transcript.OneLine(transcript.Name(v.doc.Title), max(v.width-len(count)-1, 1))
	return v.fit(v.style.Bold(title) + v.style.Dim(count))
}

// coloured paints a row of a diff.
func (v *Viewer) coloured(r row) string {
	if !v.doc.Diff || r.text == "" {
		return r.text
	}
	line := v.page.text[r.line:]
	paint := func(s string) string { return s }
	switch {
	case strings.HasPrefix(line, "+"):
		paint = v.style.Green
	case strings.HasPrefix(line, "-"):
		paint = v.style.Red
	case strings.HasPrefix(line, "@@"):
		paint = v.style.Cyan
	}
	colour, _, ok := strings.Cut(terminal.Text(paint("\x00")), `\u0000`)
	if !ok || colour == "" {
		return r.text
	}
	return colour + r.text + "\x1b[m"
}

func (v *Viewer) foot(bottom int) string {
	if v.typing {
		return v.fit("/" + transcript.Printable(v.typed))
	}
	from, to := v.page.lineOf(v.top), v.page.lineOf(max(bottom-1, v.top))
	if bottom >= len(v.page.text) {
		to = v.page.lines()
	}
	where := fmt.Sprintf("lines %d-%d of %d", from, to, v.page.lines())
	if v.page.lines() == 1 {
		where = fmt.Sprintf("1 line, %d %%", 100*bottom/max(len(v.page.text), 1))
	}
	if v.query != "" {
		where += fmt.Sprintf("  /%s %s", transcript.OneLine(transcript.Printable(v.query), 30), v.said)
	}
	keys := "↑↓ PgUp PgDn g G  / search"
	if v.query != "" {
		keys = "n N next, previous"
	}
	if v.n > 1 {
		keys += "  ←→ others"
	}
	keys += "  q leaves"
	where = strings.TrimSpace(where)
	for _, keys := range []string{keys, "q leaves", "q"} {
		if line := where + "  " + keys; ansi.StringWidth(line) <= v.width {
			return v.fit(v.style.Dim(line))
		}
	}
	return v.fit(v.style.Dim(where))
}

// Cursor is where the search is typed; nil: there is no cursor.
func (v *Viewer) Cursor() *tea.Cursor {
	if !v.typing {
		return nil
	}
	return tea.NewCursor(min(1+ansi.StringWidth(transcript.Printable(v.typed)), max(v.width-1, 0)), v.height-1)
}

func (v *Viewer) fit(text string) string { return ansi.Truncate(terminal.Text(text), v.width, "…") }
