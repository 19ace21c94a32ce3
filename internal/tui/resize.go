package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
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

// resize prepares for a view of another size: what is drawn is erased. If it
// returns true nothing is drawn until it is called again for the same size: until
// then the size is not known for sure.
func (o *output) resize(width, height int) (again bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	again = o.kind.sticky && o.told != [2]int{} && o.told != [2]int{width, height}
	if o.drawn && !o.alt && o.told != [2]int{width, height} {
		var b strings.Builder
		o.erase(&b, width)
		o.write([]byte(b.String()))
	}
	o.told, o.rests = [2]int{width, height}, !again
	return again
}

// erase writes to b what removes the sheet from a terminal that has become width
// columns wide. Most terminals break rows that are too long then, so that its top
// is higher than it was.
func (o *output) erase(b *strings.Builder, width int) {
	o.sheet.Erase(b, width, o.kind.reflows && width < o.width, o.kind.sticky)
	o.width = width
}

// still reports whether the size that was told last is this one.
func (o *output) still(width, height int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told == [2]int{width, height}
}

// reflowing is what a terminal does with lines that are too long after a resize,
// and whether it has a second screen.
type reflowing struct {
	single  bool // it is screen, which by default has no alternate screen
	reflows bool // it breaks them
	sticky  bool // it is tmux: the end of a line counts although it was erased
}

func reflows(getenv func(string) string) reflowing {
	name, _, _ := strings.Cut(getenv("TERM"), "-")
	screen := getenv("STY") != ""
	return reflowing{
		single:  screen,
		reflows: getenv("XTERM_VERSION") == "" && !screen && name != "linux",
		sticky:  getenv("TMUX") != "" || name == "tmux" || name == "screen" && !screen,
	}
}
