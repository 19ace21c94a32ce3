package pick

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/clipperhouse/displaywidth"

	"goclaw/internal/transcript"
	"goclaw/session"
)

// TreeOptions is what the tree of a session works with.
type TreeOptions struct {
	Clock session.Clock
	// Load reads the session from its first record.
	Load func(ctx context.Context) (*session.Session, error)
}

// Tree shows the branches of a session, to go back to any point.
type Tree struct {
	message
	o        TreeOptions
	ctx      context.Context
	stop     context.CancelFunc
	ready    bool
	all      []point
	shown    []int // of all
	turns    int
	branches int
	list     list
	filter   field
	help     bool
	chosen   *Point
	w, h     int
}

// Point is a point of a session to go back to.
type Point struct {
	Record session.Record
	End    bool // to the end of the branch that ends with Record; else to before it
	Live   bool // it is on the branch that the chat is on
}

// NewTree returns the tree of a session, which is read when it is shown.
func NewTree(ctx context.Context, o TreeOptions) *Tree {
	t := &Tree{o: o}
	t.ctx, t.stop = context.WithCancel(ctx)
	return t
}

// Choice returns the point that was chosen, nil if none was.
func (t *Tree) Choice() *Point { return t.chosen }

// FullScreen is always true.
func (t *Tree) FullScreen() bool { return true }

// planted is a session that was read.
type planted struct {
	of              *Tree
	all             []point
	turns, branches int
	err             error
}

// Init begins to read.
func (t *Tree) Init() tea.Cmd {
	return func() tea.Msg {
		s, err := t.o.Load(t.ctx)
		if err != nil {
			return planted{of: t, err: err}
		}
		m := planted{of: t}
		m.all, m.turns, m.branches = points(s)
		return m
	}
}

// Update handles a message.
func (t *Tree) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	switch msg := msg.(type) {
	case planted:
		if msg.of == t {
			t.planted(msg)
		}
	case tea.KeyPressMsg, tea.PasteMsg:
		if t.typed(msg) {
			t.stop()
			return true, nil
		}
	}
	return false, nil
}

// planted takes the session that was read. The cursor stands where the chat is.
func (t *Tree) planted(m planted) {
	t.ready = true
	if m.err != nil {
		t.fail(m.err)
		return
	}
	t.all, t.turns, t.branches = m.all, m.turns, m.branches
	t.refilter()
	for i, p := range t.all {
		if p.live && p.kind == anEnd {
			t.list.at = i
		}
	}
}

// refilter shows what has all the words that are typed.
func (t *Tree) refilter() {
	words := strings.Fields(strings.ToLower(t.filter.String()))
	t.shown = t.shown[:0]
	for i, p := range t.all {
		if has(p, words) {
			t.shown = append(t.shown, i)
		}
	}
	t.list.n, t.list.at, t.list.top = len(t.shown), 0, 0
}

// searched is how many bytes of a message are looked at.
const searched = 2000

func has(p point, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := p.text()
	if len(text) > searched {
		text = text[:searched]
	}
	text = strings.ToLower(text)
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// current returns the point at the cursor, nil if there is none.
func (t *Tree) current() *point {
	if t.list.at < len(t.shown) {
		return &t.all[t.shown[t.list.at]]
	}
	return nil
}

// typed handles a key, and reports whether the tree is left.
func (t *Tree) typed(msg tea.Msg) (leave bool) {
	if t.help {
		t.help = false
		return false
	}
	t.note = ""
	key, _ := msg.(tea.KeyPressMsg)
	switch {
	case isKey(msg, "esc", "ctrl+c"):
		return true
	case isKey(msg, "enter"):
		return t.choose()
	case isKey(msg, "?") && t.filter.String() == "":
		t.help = true
	case key.Code != 0 && t.list.key(key):
	case t.filter.update(msg):
		t.refilter()
	}
	return false
}

// choose chooses the point at the cursor, if one can go there.
func (t *Tree) choose() bool {
	p := t.current()
	switch {
	case p == nil:
		return false
	case p.kind == anEnd && p.live:
		return true // here
	case p.kind == aTurn, p.kind == anEnd:
		t.chosen = &Point{Record: p.rec, End: p.kind == anEnd, Live: p.live}
		return true
	}
	t.say("choose one of your messages, or the end of a branch")
	return false
}

// keys are what can be done at the cursor.
func (t *Tree) keys(width int) []hint {
	enter := "go there"
	if p := t.current(); p != nil {
		switch p.kind {
		case aTurn:
			if enter = "go back to before it"; width < 50 {
				enter = "go before it"
			}
		case anEnd:
			enter = "continue there"
		}
		if p.live && p.kind == anEnd {
			enter = "stay"
		}
	}
	return []hint{{"Enter", enter}, {"?", "help"}, {"Esc", "back"}}
}

var treeHelp = []hint{
	{"letters", "find messages with these words"},
	{"Up Down", "choose; also PgUp, PgDn, Home, End"},
	{"Enter", "on a message: go back to before it, with its text in the input"},
	{"", "at the end of a branch: continue there"},
	{"Esc", "go back without changing anything"},
}

const treeMore = "* marks the branch that you are on; branches that you left are indented. Nothing is removed: what you go back from stays as a branch. Files stay as they are now."

// View shows the tree.
func (t *Tree) View(width, height int) string {
	t.w, t.h = width, height
	if t.help {
		return page(width, height, helpLines("Go back", treeHelp, treeMore, width), []string{paint(cDim, "any key goes back")}, none)
	}
	about := "reading …"
	if t.ready {
		about = fmt.Sprintf("%s, %d %s", transcript.Count(t.turns, "message"), t.branches, plural(t.branches, "branch", "branches"))
	}
	line, _ := t.filter.view("> ", "type to find a message", width)
	head := []string{paint(cHead, "Go back") + paint(cDim, "  "+about), line}
	foot := append(t.answer(width, height), t.line("", width), hints(t.keys(width), width, 1)[0])
	return page(width, height, head, foot, func(h int) []string {
		if len(t.shown) == 0 && t.ready && t.note == "" {
			return []string{paint(cDim, "no message has these words")}
		}
		var out []string
		from, to := t.list.shown(h, func(int) int { return 1 })
		for i := from; i < to; i++ {
			out = append(out, t.row(i, width))
		}
		return out
	})
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Cursor returns where the cursor is.
func (t *Tree) Cursor() *tea.Cursor {
	_, x := t.filter.view("> ", "", t.w)
	return cursor(x, 1, t.w, t.h, !t.help)
}

// deepest is how far branches are indented.
const deepest = 6

// row shows a point.
func (t *Tree) row(i, width int) string {
	p := t.all[t.shown[i]]
	mark, code := " ", ""
	if i == t.list.at {
		mark, code = paint(cHead, ">"), cBold
	}
	if p.live {
		mark += paint(cHead, "*")
	} else {
		mark += " "
	}
	indent := strings.Repeat("│ ", min(p.depth, deepest))
	when := age(t.o.Clock.Now(), p.rec.Time)
	label, text := "", p.text()
	switch p.kind {
	case aTurn:
		label = fmt.Sprintf("#%d ", p.rec.Seq)
	case aCompaction:
		label = "compaction: "
	case aCheckpoint:
		label = "checkpoint: "
	case anEnd:
		label = "end of this branch"
		if p.live {
			label = "you are here"
		}
	}
	room := width - 2 - len(label) - displaywidth.String(indent) - 7
	shown := transcript.OneLine(transcript.Printable(text), max(room, 1))
	fill := strings.Repeat(" ", max(room-displaywidth.String(shown), 0))
	if p.kind != aTurn && i != t.list.at {
		code = cDim
	}
	return mark + paint(cDim, indent) + paint(cDim, label) + paint(code, shown) + fill + "  " + paint(cDim, right(when, 5))
}

// answer shows what was answered to the message at the cursor.
func (t *Tree) answer(width, height int) []string {
	lines := min(height/3, 8)
	p := t.current()
	if lines < 3 || !t.ready {
		return nil
	}
	out := make([]string, 0, lines)
	if p != nil {
		head, text := "", ""
		switch m, _ := p.answer.Body.(session.Message); {
		case p.kind == aCompaction, p.kind == aCheckpoint:
			head, text = "the summary:", p.text()
		case p.answer.Seq > 0:
			head, text = "the answer:", m.Text()
		case p.kind == aTurn:
			head = "no answer"
		}
		if p.kind == anEnd && text != "" {
			head = "said last:"
		}
		out = append(out, paint(cDim, head))
		if len(text) > mostShown {
			text = strings.ToValidUTF8(text[:mostShown], "")
		}
		out = append(out, paragraphs(text, width)...)
	}
	for len(out) < lines {
		out = append(out, "")
	}
	return out[:lines]
}
