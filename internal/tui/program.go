package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/repl"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/call"
	"goclaw/internal/tui/editor"
)

// model is what the program draws, and what it is doing. Only the program's
// goroutine touches it.
type model struct {
	*paper
	*live
	*outbox
	*desk
	loop  *loop
	style transcript.Style

	status  repl.Status
	other   string // a line that something else than the chat has begun
	hint    string // in place of the status line, until the next key
	escaped bool   // the last key was Esc
	ticking bool
	away    bool // the shell has the terminal, or gets it soon
	leaving bool
	began   time.Time // when the terminal was asked about itself
	told    bool      // it has answered
}

func newModel(l *loop, o Options, width, height int) *model {
	p := &paper{loop: l, width: width, height: height}
	log := &live{paper: p, style: o.Style}
	return &model{loop: l, style: o.Style, paper: p, live: log, outbox: &outbox{loop: l, log: log, editor: editor.New(editor.Options{})}, desk: &desk{paper: p, clock: time.Now}}
}

func environ(env []string) func(string) string {
	return func(name string) string {
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	m.began = time.Now()
	return tea.RequestBackgroundColor
}

// tick moves the spinner.
type tick struct{}

// suspending comes when nothing is drawn any more.
type suspending struct{}

// suspend gives the terminal to the shell, without what is drawn.
func suspend(m *model) (bool, tea.Cmd) {
	m.away = true
	return true, tea.Tick(50*time.Millisecond, func(time.Time) tea.Msg { return suspending{} })
}

// gone says that the program has waited long enough for the terminal.
type gone struct{}

// leave ends the program, after the terminal's answers: what nobody reads would
// stand on the shell's command line.
func leave(m *model) tea.Cmd {
	const patience = 250 * time.Millisecond // some terminals do not answer
	if rest := patience - time.Since(m.began); rest > 0 && !m.told {
		return tea.Tick(rest, func(time.Time) tea.Msg { return gone{} })
	}
	return tea.Quit
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if msg.Width > 0 && msg.Height > 0 {
			m.width, m.height = msg.Width, msg.Height
			m.loop.width.Store(int64(msg.Width))
			m.last.width = 0 // it is drawn again, whatever it looks like
		}
		cmd = m.pass(msg)
	case tea.BackgroundColorMsg:
		m.light, m.told = !msg.IsDark(), true
		cmd = m.pass(msg)
		if m.leaving {
			return m, tea.Quit
		}
	case gone:
		return m, tea.Quit
	case tick:
		m.ticking = false
		m.beat++
	case tea.KeyPressMsg:
		if msg.Code == tea.KeyEscape && msg.Mod == tea.ModAlt { // two at once, as over a slow line
			msg.Mod = 0
			cmd = m.key(msg)
		}
		cmd = tea.Batch(cmd, m.key(msg))
	case tea.PasteMsg:
		cmd = m.key(msg)
	case suspending:
		return m, tea.Suspend
	case tea.ResumeMsg:
		m.away = false
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeSynchronizedOutput && msg.Value == ansi.ModeReset {
			m.loop.out.sync()
		}
	case tea.CursorPositionMsg:
		m.settled()
	case awake:
		for _, f := range m.loop.take() {
			f(m)
		}
		if m.leaving {
			return m, leave(m)
		}
	default:
		cmd = tea.Batch(m.pass(msg), m.update(msg))
	}
	if !m.ticking && m.working > 0 {
		m.ticking = true
		cmd = tea.Batch(cmd, tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tick{} }))
	}
	return m, cmd
}

// View implements tea.Model.
func (m *model) View() tea.View {
	var v tea.View
	if o := m.top(); m.leaving || m.away {
		v = tea.NewView(" ") // what is printed last goes above it
		v.Cursor = tea.NewCursor(0, 0)
	} else if o != nil && o.v.FullScreen() {
		v = tea.NewView(o.v.View(m.width, m.height))
		v.AltScreen = true
		v.Cursor = o.cursor()
	} else {
		v = m.inline()
	}
	m.offer(&v)
	return v
}

// tallest is how many rows of what is under way are drawn at most.
const tallest = 12

// inline draws what is alive: what the model and its tools do now, what is
// queued, the input or a question, and the status line.
func (m *model) inline() tea.View {
	status := m.statusLines()
	var box string
	var cursor *tea.Cursor
	room := max(m.height-3, 3) // what is printed needs some as well
	if o := m.top(); o != nil {
		if m.height < 12 && !m.writing() { // the question needs the room
			status = nil
		}
		box, cursor = m.asked(o, room-len(status))
	} else {
		text, x, y := m.editor.View(m.width, m.height)
		box, cursor = clip(text, room-1), tea.NewCursor(x, y)
	}
	above := m.alive()
	// The latest is what matters. A view that takes most of the screen would be
	// pushed into the scrollback by a resize.
	if rest := min(room-lipgloss.Height(box)-len(status), max(m.height/2, 3), tallest); len(above) > rest {
		above = above[len(above)-max(rest, 0):]
	}
	content := append(above, strings.Split(box, "\n")...)
	content = append(content, status...)
	for i := range content {
		content[i] = ansi.Truncate(content[i], m.width, "")
	}
	v := tea.NewView(strings.Join(content, "\n"))
	v.Cursor = tea.NewCursor(0, len(content)-1) // where it is must be known
	if cursor != nil {
		cursor.Y += len(above)
		v.Cursor = cursor
	}
	return v
}

// asked draws the overlay o, and below a question what was begun at it, in at
// most that many rows.
func (m *model) asked(o *opened, rows int) (box string, cursor *tea.Cursor) {
	if !m.writing() {
		return clip(o.v.View(m.width, rows), rows), o.cursor()
	}
	text, x, y := m.editor.View(m.width, m.height/3)
	rows = max(rows-lipgloss.Height(text), 1)
	box = clip(o.v.View(m.width, rows), rows)
	return box + "\n" + text, tea.NewCursor(x, lipgloss.Height(box)+y)
}

// clip returns at most n lines of text.
func clip(text string, n int) string {
	if rows := strings.Split(text, "\n"); len(rows) > n {
		return strings.Join(rows[:max(n, 0)], "\n")
	}
	return text
}

// alive returns the lines of what is under way, and of what waits.
func (m *model) alive() []string {
	m.typing = !m.editor.Empty()
	out := m.now(len(m.overs) == 0)
	if len(out) > 0 {
		out = append(out, "")
	}
	return append(out, m.waiting()...)
}

// waiting returns a line for each message that waits to be sent.
func (m *model) waiting() (out []string) {
	for _, one := range m.steered {
		text := one.Shown
		out = append(out, m.paint(m.style.Cyan("↳ "+transcript.OneLine(transcript.Printable(text), max(m.width-16, 1)))+m.style.Dim(" soon")))
	}
	for i, one := range m.queue {
		text := one.Shown
		how := " queued"
		if i == len(m.queue)-1 && m.top() == nil { // else the key is the question's
			how = " queued (↑ takes it back)"
		}
		out = append(out, m.paint(m.style.Dim("» "+transcript.OneLine(transcript.Printable(text), max(m.width-len(how)-3, 1))+how)))
	}
	return out
}

func spinner(n int, label string, took time.Duration, width int, keys []string) string {
	seconds := ""
	if took >= time.Second {
		seconds = " " + transcript.Took(took.Truncate(time.Second))
	}
	line := fmt.Sprintf("%s %s%s", call.Spinner(n), transcript.OneLine(transcript.Printable(label), max(width-4-len(seconds), 1)), seconds)
	for _, k := range keys {
		if k = " · " + k; ansi.StringWidth(line+k) < width {
			line += k
		}
	}
	return line
}
