package tui

import (
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
)

// binding is what a key does when no overlay is open. do reports whether it did
// something; if not, the key is the input's.
type binding struct {
	keys  []string
	shown string // in the help
	help  string
	do    func(m *model) (done bool, cmd tea.Cmd)
}

// later precedes a command that is not run because the chat works.
const later = "when the answer is there: "

// tooLate drops the command that a key stands for when work begins before it:
// nothing is to open minutes after the key was pressed.
func (m *model) tooLate() {
	if m.wanted != "" {
		m.hint, m.wanted = later+m.wanted, ""
	}
}

// bindings are the keys, in the order of the help.
func bindings() []binding {
	done := func(f func(m *model)) func(*model) (bool, tea.Cmd) {
		return func(m *model) (bool, tea.Cmd) { f(m); return true, nil }
	}
	command := func(text string) func(*model) (bool, tea.Cmd) {
		return func(m *model) (bool, tea.Cmd) {
			if !m.command(text) {
				m.hint = later + text
			}
			return true, nil
		}
	}
	return []binding{
		{nil, "Enter", "send the message; while an answer comes, queue it", nil},
		{nil, "Alt-Enter, Ctrl-J, \\ Enter", "begin a new line (some: Shift-Enter)", nil},
		{[]string{"ctrl+s"}, "Ctrl-S", "send the message into the answer that is coming", done(func(m *model) { m.steerNow() })},
		{[]string{"up"}, "Up, Down", "take back a queued message; else earlier messages", up},
		{[]string{"esc"}, "Esc", "stop; twice with nothing running: go back and change the last message", escape},
		{[]string{"ctrl+c"}, "Ctrl-C", "clear the input, or stop; twice: quit", done(ctrlC)},
		{[]string{"ctrl+d"}, "Ctrl-D", "quit, on an empty input", ctrlD},
		{nil, "/  @  !", "commands; files of this folder; a shell command (!! keeps its output from the model)", nil},
		{nil, "Tab", "complete a command or a file", nil},
		{nil, "Ctrl-R", "search what you typed before", nil},
		{nil, "Ctrl-G", "write in $EDITOR", nil},
		{nil, "Ctrl-V", "attach an image of the clipboard; or paste its path", nil},
		{nil, "Ctrl-_, Alt-/", "undo, redo", nil},
		{[]string{"ctrl+o"}, "Ctrl-O", "open the last output of a tool in full", lastOutput},
		{[]string{"ctrl+t"}, "Ctrl-T", "show or hide the model's thinking", done(thinking)},
		{[]string{"shift+tab"}, "Shift-Tab", "change what is done without asking", done(func(m *model) { m.hint = m.chat.NextMode() })},
		{[]string{"ctrl+p"}, "Ctrl-P", "choose a session", command("/sessions")},
		{[]string{"ctrl+f"}, "Ctrl-F", "search conversations and notes", command("/search")},
		{[]string{"ctrl+z"}, "Ctrl-Z", "suspend; fg comes back", suspend},
		{[]string{"?"}, "?", "this help, on an empty input", help},
	}
}

// key handles a key, or a paste.
func (m *model) key(msg tea.Msg) tea.Cmd {
	m.hint, m.leave = "", false
	o := m.top()
	k, pressed := msg.(tea.KeyPressMsg)
	again := pressed && k.String() == "enter" && m.clock().Sub(m.answered) < midWord
	m.answered = time.Time{}
	if again { // "y Enter" answers one question, not the next as well
		return nil
	}
	if o != nil && o.foreign(msg) {
		m.desk.typed, m.aside = m.clock(), false // the rest of it does not answer either
	}
	if o != nil && !m.early(o) && !m.writing() {
		done, cmd := o.v.Update(msg)
		m.desk.typed = time.Time{}
		switch {
		case done:
			m.dismiss(o.v)
			if o.asks && pressed && k.Text != "" {
				m.answered = m.clock()
			}
		case !o.asks: // a question may come while something is searched for
			m.desk.typed = m.clock()
		}
		return cmd
	}
	switch {
	case pressed && o != nil:
		if m.keyAt(o, k) {
			return nil
		}
	case pressed && !m.editor.Wants(k.Keystroke()):
		if k.String() != "esc" {
			m.escaped = false
		}
		for _, b := range bindings() {
			if slices.Contains(b.keys, k.String()) {
				if done, cmd := b.do(m); done {
					m.desk.typed = time.Time{}
					return cmd
				}
			}
		}
	}
	m.desk.typed, m.aside = m.clock(), false
	if pressed && k.String() == "enter" && o == nil { // the end of what was typed
		m.desk.typed = time.Time{}
	}
	return m.update(msg)
}

// writing reports whether a question is open and keys go to the input, because
// there is something in it. It is drawn below the question.
func (m *model) writing() bool {
	o := m.top()
	return o != nil && o.asks && o.letters() && !m.editor.Empty() && !m.aside
}

// keyAt handles a key that is not meant for the question o, and reports whether
// it is not the input's either.
func (m *model) keyAt(o *opened, k tea.KeyPressMsg) bool {
	if m.editor.Wants(k.Keystroke()) {
		return false
	}
	writing := m.writing()
	switch k.String() {
	case "enter":
		return !writing // else it queues the message
	case "esc":
		if writing && o.ready {
			m.aside = true
		} else { // meant for what was there before the question
			m.interrupt()
		}
	case "ctrl+c":
		ctrlC(m)
	case "ctrl+s":
		m.steerNow()
	default:
		return false
	}
	m.desk.typed = time.Time{}
	return true
}

func up(m *model) (bool, tea.Cmd) {
	if !m.editor.Empty() || len(m.queue) == 0 {
		return false, nil
	}
	m.unqueue()
	return true, nil
}

func escape(m *model) (bool, tea.Cmd) {
	switch {
	case m.halted: // a second Ctrl-C would quit, a second Esc does not
		m.hint = "stopping; Ctrl-C quits"
	case m.working > 0 || m.taken:
		m.interrupt()
	case !m.editor.Empty():
		return false, nil
	case m.escaped:
		m.escaped = false
		m.command("/rewind")
	default:
		m.escaped = true
		m.hint = "Esc again: go back and change your last message"
	}
	return true, nil
}

func ctrlC(m *model) {
	if !m.editor.Empty() && (m.reader != nil || m.working == 0) {
		m.editor.Clear()
		m.hint = "↑ brings it back"
		return
	}
	m.interrupt()
}

func ctrlD(m *model) (bool, tea.Cmd) {
	if !m.editor.Empty() {
		return false, nil
	}
	m.leave = true
	if m.deliver(); m.leave {
		m.hint = "quits when this is done; any key: stay"
	}
	return true, nil
}

func thinking(m *model) {
	m.hint = "thinking is hidden"
	if m.chat.ToggleThinking() {
		m.hint = "thinking is shown"
	}
}
