package line

import (
	"fmt"
	"goclaw/internal/terminal"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// view is what the screen shows of an editor.
type view struct {
	t      *Terminal
	prompt string
	text   string // as drawn
	row    int    // of the cursor, counted from the first row drawn
	col    int
	rows   int
	drawn  bool
}

func (v *view) draw(e *editor) {
	width, height := v.t.size()
	prompt := v.prompt
	if e.searching {
		prompt = fmt.Sprintf("(search %q) ", e.query)
	}
	if v.append(e, width) {
		return
	}
	pw := displaywidth.String(prompt)
	rows, row, col := layout(pw, e.text, e.pos, width)
	if v.t.Paint != nil && prompt != "" {
		prompt = v.t.Paint(prompt)
	}
	rows[0] = prompt + rows[0]
	// If the text is taller than the screen, only part of it is shown.
	if n := max(height-1, 1); len(rows) > n {
		from := min(max(row-n/2, 0), len(rows)-n)
		rows, row = rows[from:from+n], row-from
	}
	var b strings.Builder
	v.first(&b)
	b.WriteString(terminal.Control("J"))
	b.WriteString(strings.Join(rows, "\n"))
	move(&b, len(rows)-1-row, 'A')
	b.WriteString(terminal.Return())
	move(&b, col, 'C')
	io.WriteString(v.t.out, b.String())
	v.text, v.row, v.col, v.rows, v.drawn = e.text, row, col, len(rows), true
	if e.searching {
		v.text = "\x00" // the prompt changes: draw everything again
	}
}

// append writes text typed at the end of the last row, and reports whether
// nothing else has changed.
func (v *view) append(e *editor, width int) bool {
	added, ok := strings.CutPrefix(e.text, v.text)
	if !v.drawn || e.searching || !ok || added == "" || e.pos != len(e.text) || v.row != v.rows-1 {
		return false
	}
	w := displaywidth.String(added)
	for _, r := range added {
		if r < ' ' || r >= 0x7f { // it may combine with the character before
			return false
		}
	}
	if v.col+w >= width {
		return false
	}
	io.WriteString(v.t.out, added)
	v.text, v.col = e.text, v.col+w
	return true
}

// first moves the cursor to the first row drawn.
func (v *view) first(b *strings.Builder) {
	b.WriteString(terminal.Return())
	if v.drawn {
		move(b, v.row, 'A')
	}
}

// leave moves the cursor to an empty row after the text.
func (v *view) leave(e *editor, mark string) {
	e.searching = false
	e.pos = len(e.text)
	if v.drawn && v.text != e.text || v.row != v.rows-1 {
		v.draw(e)
	}
	io.WriteString(v.t.out, mark+"\n")
}

// maxListed is how many options are listed.
const maxListed = 60

// list shows options below the text; what follows is drawn below them.
func (v *view) list(e *editor, options []string) {
	pos := e.pos
	v.leave(e, "")
	e.pos = pos
	rest := ""
	if n := len(options) - maxListed; n > 0 {
		options, rest = options[:maxListed], fmt.Sprintf("… and %d more\n", n)
	}
	width, _ := v.t.size()
	io.WriteString(v.t.out, strings.Join(columns(options, width), "\n")+"\n"+rest)
	*v = view{t: v.t, prompt: v.prompt}
}

func move(b *strings.Builder, n int, dir byte) {
	if n > 0 {
		b.WriteString(terminal.Control(fmt.Sprintf("%d%c", n, dir)))
	}
}
