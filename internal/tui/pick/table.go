package pick

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/transcript"
	"goclaw/internal/tui/fuzzy"
)

// TableOptions is a table that a row is chosen from.
type TableOptions struct {
	Title string
	Rows  [][]string // the first is the head
	At    int        // the row that the cursor stands on at first, from 1
	More  []string   // what else there is to know
}

// Table is a short list to choose from: models, levels of thinking.
type Table struct {
	o      TableOptions
	texts  []fuzzy.Text
	query  fuzzy.Pattern
	shown  []int // rows, from 1
	list   list
	filter field
	chosen int
	w, h   int
}

// NewTable returns a table.
func NewTable(o TableOptions) *Table {
	o.Rows = slices.Clone(o.Rows)
	t := &Table{o: o}
	for i, row := range o.Rows {
		row = slices.Clone(row)
		for j, c := range row {
			row[j] = name(c)
		}
		o.Rows[i] = row
		t.texts = append(t.texts, fuzzy.Fold(strings.Join(row, " ")))
	}
	t.refilter()
	t.list.at = max(slices.Index(t.shown, o.At), 0)
	return t
}

// Choice returns the row that was chosen, from 1; 0 if none was.
func (t *Table) Choice() int { return t.chosen }

// FullScreen is always true.
func (t *Table) FullScreen() bool { return true }

// Init does nothing.
func (t *Table) Init() tea.Cmd { return nil }

// refilter shows the rows that fit, in their order.
func (t *Table) refilter() {
	t.shown = nil
	for i := 1; i < len(t.texts); i++ {
		if _, ok := t.query.Score(t.texts[i]); ok {
			t.shown = append(t.shown, i)
		}
	}
	t.list.n, t.list.at, t.list.top = len(t.shown), 0, 0
}

// Update handles a message.
func (t *Table) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	switch msg.(type) {
	case tea.KeyPressMsg, tea.PasteMsg:
	default:
		return false, nil
	}
	key, _ := msg.(tea.KeyPressMsg)
	switch {
	case isKey(msg, "esc", "ctrl+c"):
		return true, nil
	case isKey(msg, "enter"):
		if t.list.at < len(t.shown) {
			t.chosen = t.shown[t.list.at]
			return true, nil
		}
	case key.Code != 0 && t.list.key(key):
	case t.filter.update(msg):
		t.query = fuzzy.New(t.filter.String())
		t.refilter()
	}
	return false, nil
}

// View shows the table.
func (t *Table) View(width, height int) string {
	t.w, t.h = width, height
	line, _ := t.filter.view("> ", "type to find", width)
	lines := transcript.Table(t.o.Rows, transcript.Style{}, max(width-2, 1))
	head := []string{paint(cHead, cut(name(t.o.Title), width)), line, paint(cDim, "  "+lines[0])}
	var foot []string
	if t.list.at < len(t.shown) && strings.Contains(lines[t.shown[t.list.at]], "…") {
		foot = append(foot, cut(strings.Join(strings.Fields(strings.Join(t.o.Rows[t.shown[t.list.at]], " ")), " "), width))
	}
	if height >= 16 {
		for _, m := range t.o.More {
			for _, l := range paragraphs(m, width) {
				foot = append(foot, paint(cDim, l))
			}
		}
		foot = foot[:min(len(foot), height/4)]
	}
	foot = append(foot, hints([]hint{{"Enter", "choose"}, {"Esc", "back"}}, width, 1)...)
	return page(width, height, head, foot, func(h int) (out []string) {
		if len(t.shown) == 0 {
			return []string{paint(cDim, "nothing matches")}
		}
		from, to := t.list.shown(h, func(int) int { return 1 })
		for i := from; i < to; i++ {
			mark, code := "  ", ""
			if i == t.list.at {
				mark, code = paint(cHead, "> "), cBold
			}
			out = append(out, mark+paint(code, lines[t.shown[i]]))
		}
		return out
	})
}

// Cursor returns where the cursor is.
func (t *Table) Cursor() *tea.Cursor {
	_, x := t.filter.view("> ", "", t.w)
	return cursor(x, 1, t.w, t.h, true)
}
