package tui

import (
	"io"
	"slices"
	"strings"

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

// bindings are the keys, in the order of the help.
func bindings() []binding {
	done := func(f func(m *model)) func(*model) (bool, tea.Cmd) {
		return func(m *model) (bool, tea.Cmd) { f(m); return true, nil }
	}
	command := func(text string) func(*model) (bool, tea.Cmd) {
		return func(m *model) (bool, tea.Cmd) {
			if !m.command(text) {
				m.hint = "when the answer is there: " + text
			}
			return true, nil
		}
	}
	return []binding{
		{[]string{"enter"}, "Enter", "send the message; while an answer comes, queue it", enter},
		{nil, "Alt-Enter, Ctrl-J, \\ Enter", "begin a new line", nil},
		{[]string{"ctrl+s"}, "Ctrl-S", "send the message into the answer that is coming", done(func(m *model) { m.steerNow() })},
		{[]string{"up"}, "Up, Down", "take back a queued message; else earlier messages", up},
		{[]string{"esc"}, "Esc", "stop; twice with nothing running: go back and change the last message", escape},
		{[]string{"ctrl+c"}, "Ctrl-C", "clear the input, or stop; twice: quit", done(ctrlC)},
		{[]string{"ctrl+d"}, "Ctrl-D", "quit, on an empty input", ctrlD},
		{[]string{"tab"}, "Tab", "complete a command or a file", tab},
		{[]string{"ctrl+o"}, "Ctrl-O", "open the last output of a tool in full", lastOutput},
		{[]string{"ctrl+t"}, "Ctrl-T", "show or hide the model's thinking", done(thinking)},
		{[]string{"shift+tab"}, "Shift-Tab", "change what is done without asking", done(func(m *model) { m.chat.NextMode() })},
		{[]string{"ctrl+p"}, "Ctrl-P", "choose a session", command("/sessions")},
		{[]string{"ctrl+f"}, "Ctrl-F", "search conversations and notes", command("/search")},
		{[]string{"ctrl+z"}, "Ctrl-Z", "suspend; fg comes back", func(m *model) (bool, tea.Cmd) { return true, tea.Suspend }},
		{[]string{"?"}, "?", "this help, on an empty input", help},
	}
}

// key handles a key, or a paste.
func (m *model) key(msg tea.Msg) tea.Cmd {
	m.hint = ""
	if o := m.top(); o != nil && !m.early(o) {
		done, cmd := o.v.Update(msg)
		if done {
			m.dismiss(o.v)
		}
		return cmd
	} else if o != nil { // typed before the question was there
		if k, ok := msg.(tea.KeyPressMsg); ok && k.String() == "enter" {
			return nil
		}
		return m.editor.Update(msg)
	}
	if k, ok := msg.(tea.KeyPressMsg); ok {
		if k.String() != "esc" {
			m.escaped = false
		}
		for _, b := range bindings() {
			if slices.Contains(b.keys, k.String()) {
				if done, cmd := b.do(m); done {
					return cmd
				}
			}
		}
	}
	return m.editor.Update(msg)
}

func enter(m *model) (bool, tea.Cmd) {
	text := m.editor.Value()
	if rest, ok := strings.CutSuffix(text, `\`); ok {
		m.editor.SetValue(rest + "\n")
		return true, nil
	}
	if strings.TrimSpace(text) != "" {
		m.send()
	}
	return true, nil
}

func up(m *model) (bool, tea.Cmd) {
	if m.editor.Value() != "" || len(m.queue) == 0 {
		return false, nil
	}
	m.unqueue()
	return true, nil
}

func escape(m *model) (bool, tea.Cmd) {
	switch {
	case m.working > 0 || m.reader == nil:
		m.interrupt()
	case m.editor.Value() != "":
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
	if m.editor.Value() != "" && m.reader != nil {
		m.editor.Reset()
		return
	}
	m.interrupt()
}

func ctrlD(m *model) (bool, tea.Cmd) {
	if m.editor.Value() != "" {
		return false, nil
	}
	if m.reader != nil {
		m.answer(typed{err: io.EOF})
	}
	return true, nil
}

func tab(m *model) (bool, tea.Cmd) {
	text := m.editor.Value()
	from, options := m.chat.Complete(text)
	switch len(options) {
	case 0:
	case 1:
		m.editor.SetValue(text[:from] + options[0] + " ")
	default:
		m.editor.SetValue(text[:from] + common(options))
		m.hint = strings.Join(options, "  ")
	}
	return true, nil
}

// common returns the longest beginning that all options share.
func common(options []string) string {
	out := options[0]
	for _, o := range options {
		for !strings.HasPrefix(o, out) {
			out = out[:len(out)-1]
		}
	}
	return out
}

func thinking(m *model) {
	m.hint = "thinking is hidden"
	if m.chat.ToggleThinking() {
		m.hint = "thinking is shown"
	}
}
