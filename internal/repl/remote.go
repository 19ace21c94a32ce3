package repl

import (
	"slices"
	"strings"

	"goclaw/session"
	"goclaw/tool"
)

// Remote is what an interface does to a chat from outside: unlike commands, its
// methods may be called by any goroutine, also while a turn runs.
type Remote struct{ Chat *Chat }

// Interrupt stops what is under way, as Ctrl-C does.
func (r Remote) Interrupt() { r.Chat.Interrupt() }

// Commands returns the commands with their arguments, each with what it does.
func (r Remote) Commands() (rows [][2]string) {
	for _, cmd := range r.Chat.commands.list {
		help := cmd.help
		if len(cmd.names) > 1 && cmd.names[1] != "?" && cmd.names[0] != "quit" {
			help += " (also /" + cmd.names[1] + ")"
		}
		rows = append(rows, [2]string{strings.TrimRight("/"+cmd.names[0]+" "+cmd.args, " "), help})
	}
	return rows
}

// NextMode changes to the next mode of what is done without asking, and says what
// it is; "" if there are no tools.
func (r Remote) NextMode() string {
	modes := r.Chat.o.Modes
	if modes == nil {
		return ""
	}
	next := modeNames[(slices.Index(modeNames, modes.Mode().String())+1)%len(modeNames)]
	if m, err := tool.ParseMode(next); err == nil {
		modes.SetMode(m)
	}
	r.Chat.status.change(func(s *Status) { s.Mode = modes.Mode().String() })
	return "mode " + modes.Mode().String() + ": " + unasked(modes)
}

// Working says that a checkpoint is being made in the background for the session
// id, or no longer.
func (r Remote) Working(id session.ID, on bool) { r.Chat.status.working(id, on) }

// ToggleThinking shows the model's thinking, or hides it.
func (r Remote) ToggleThinking() (shown bool) {
	shown = !r.Chat.view.thinking.Load()
	r.Chat.view.thinking.Store(shown)
	return shown
}
