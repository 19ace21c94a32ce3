package ask

import (
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
)

// Yes asks a question to which the answer is yes or no. It is an Overlay of
// package tui; Answer has the answer when it is done.
type Yes struct {
	question string
	style    transcript.Style
	yes      bool // what Enter takes
	err      error
}

// NewYes returns a question; enter is the answer that Enter takes at first.
func NewYes(question string, enter bool, st transcript.Style) *Yes {
	return &Yes{question: transcript.Printable(question), style: st, yes: enter}
}

// Answer returns what was chosen. The error is line.ErrInterrupt after Ctrl-C.
func (y *Yes) Answer() (bool, error) { return y.yes, y.err }

// FullScreen implements tui.Overlay.
func (y *Yes) FullScreen() bool { return false }

// Update implements tui.Overlay.
func (y *Yes) Update(msg tea.Msg) (done bool, cmd tea.Cmd) {
	k, ok := msg.(tea.KeyPressMsg)
	if !ok {
		return false, nil
	}
	switch strings.ToLower(k.String()) {
	case "y":
		y.yes = true
	case "n", "esc", "ctrl+d":
		y.yes = false
	case "ctrl+c":
		y.yes, y.err = false, line.ErrInterrupt
	case "enter":
	case "left", "right", "up", "down", "tab", "shift+tab":
		y.yes = !y.yes
		return false, nil
	default:
		return false, nil
	}
	return true, nil
}

// Answers reports whether a key, or a paste, means something here.
func (y *Yes) Answers(msg tea.Msg) bool {
	k, pressed := msg.(tea.KeyPressMsg)
	return pressed && (k.Text == "" || strings.Contains("yn", strings.ToLower(k.Text)))
}

// View implements tui.Overlay.
func (y *Yes) View(width, height int) string {
	out := wrapped(y.style.Yellow(y.question), width)
	yes, no := "  y yes", "  n no"
	if y.yes {
		yes = y.style.Bold("❯ y yes")
	} else {
		no = y.style.Bold("❯ n no")
	}
	out = out[:min(len(out), max(height-1, 1))]
	out = append(out, ansi.Truncate(terminal.Text(yes+"  "+no), width, ""))
	return strings.Join(out, "\n")
}
