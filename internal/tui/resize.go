package tui

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// reflow prepares for another width. Most terminals break drawn lines that are
// too long for it, so that the view's top is higher than the renderer thinks:
// the cursor is moved so that it is right again.
func (p *paper) reflow(size tea.WindowSizeMsg) {
	if size.Width >= p.width || size.Width < 1 || !p.reflows || len(p.shots.list) == 0 {
		return
	}
	p.shots.settle(p.loop.out.frames.Load())
	drawn := p.shots.list[0]
	if drawn.alt || drawn.y >= len(drawn.rows) {
		return
	}
	up := drawn.x / size.Width
	for _, w := range drawn.rows[:drawn.y] {
		up += max(0, (w-1)/size.Width)
	}
	if up > 0 {
		p.loop.out.Write([]byte(ansi.CursorUp(up)))
	}
}

// reflows reports whether a terminal breaks lines that are too long after a
// resize.
func reflows(getenv func(string) string) bool {
	return getenv("XTERM_VERSION") == "" && getenv("STY") == "" && getenv("TERM") != "linux"
}
