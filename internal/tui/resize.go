package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// filter sees every message before Bubble Tea does.
func (l *loop) filter(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && size.Width > 0 && size.Height > 0 {
		if l.out.resize(size.Width, size.Height) {
			time.AfterFunc(restless, func() {
				if l.out.still(size.Width, size.Height) {
					l.prog.Send(size)
				}
			})
		}
	}
	return msg
}

// restless is for how long after a resize tmux may resize a window again without
// telling the program that runs in it.
const restless = 300 * time.Millisecond

// resize prepares for a view of another size. Most terminals break drawn lines
// that are too long now, so that the view's top is higher than the renderer
// thinks. What was drawn is erased from its real top on, and the cursor is put
// where the renderer thinks it is. If it returns true nothing is drawn until it is
// called again for the same size: until then the size is not known for sure.
func (o *output) resize(width, height int) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	again = o.kind.sticky && o.told != [2]int{} && o.told != [2]int{width, height}
	o.told, o.rests = [2]int{width, height}, !again
	if d := o.drawn; d.number == 0 || d.alt || d.width == width && d.height == height && d.number == o.thought.number {
		return again
	}
	var b strings.Builder
	b.WriteByte('\r')
	if up := o.above(width); up > 0 {
		b.WriteString(ansi.CursorUp(up))
	}
	b.WriteString(ansi.EraseScreenBelow)
	b.WriteString(strings.Repeat("\n", o.thought.y))
	if o.thought.x > 0 {
		b.WriteString(ansi.CursorForward(o.thought.x))
	}
	o.write([]byte(b.String()))
	o.drawn = frame{number: o.thought.number, width: width, height: height, x: min(o.thought.x, width-1), y: o.thought.y}
	o.wide = make([]int, o.thought.y+1)
	return again
}

// still reports whether the size that was told last is this one.
func (o *output) still(width, height int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told == [2]int{width, height}
}

// drew says that f is on the screen now.
func (o *output) drew(f frame) {
	var wide []int
	for row := range strings.SplitSeq(f.content, "\n") {
		wide = append(wide, ansi.StringWidth(row))
	}
	if len(wide) == len(o.wide) && !f.alt && !o.drawn.alt { // else everything was erased before
		for i, before := range o.wide {
			// A row that becomes a little shorter is filled with spaces.
			if o.kind.sticky || before-wide[i] <= len(ansi.EraseLineRight) {
				wide[i] = max(wide[i], before)
			}
		}
	}
	o.drawn, o.wide = f, wide
}

// above returns how many rows of what is drawn are above the cursor, on a
// terminal of that width.
func (o *output) above(width int) (n int) {
	d := o.drawn
	if !o.kind.reflows || width >= d.width {
		return d.y
	}
	for i, w := range o.wide {
		if i == d.y {
			break
		}
		n += 1 + max(0, (w-1)/width)
	}
	return n + d.x/width
}

// reflowing is what a terminal does with lines that are too long after a resize.
type reflowing struct {
	reflows bool // it breaks them
	sticky  bool // it is tmux: the end of a line counts although it was erased
}

func reflows(getenv func(string) string) reflowing {
	name, _, _ := strings.Cut(getenv("TERM"), "-")
	screen := getenv("STY") != ""
	return reflowing{
		reflows: getenv("XTERM_VERSION") == "" && !screen && name != "linux",
		sticky:  getenv("TMUX") != "" || name == "tmux" || name == "screen" && !screen,
	}
}
