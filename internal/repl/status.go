package repl

import (
	"sync"

	"goclaw/internal/transcript"
)

// Status is what a status line shows. A Display is told it again whenever
// something in it changes.
type Status struct {
	Model  string // as the user writes it
	Folder string // that the tools work in, as it is shown
	Title  string // of the session, or its key
	Mode   string // what is done without asking

	// Used is how many tokens of the window the next request takes, about; Window
	// is how many there are. Zero: not known.
	Used, Window int
	// Prepare and Compact are how many tokens make a checkpoint and a compaction
	// due. Zero: not known.
	Prepare, Compact int

	Last, Total float64 // cost of the last turn, and of the session, in dollars
	Priced      bool    // the costs are known

	Background string // what happens in the background; "": nothing
}

// teller tells a display what changed in the status.
type teller struct {
	chat    *Chat
	display Display

	mu   sync.Mutex
	last Status
}

// change tells the display the status after f has changed it.
func (t *teller) change(f func(s *Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.last
	if f(&t.last); t.last != before {
		t.display.Status(t.last)
	}
}

// tell tells the display what the status line shows now. It belongs to the
// chat's goroutine; what happens elsewhere calls change.
func (t *teller) tell() {
	c := t.chat
	t.change(func(s *Status) {
		s.Model, s.Folder, s.Title = c.o.Model().Name, c.o.Folder, transcript.Called(c.cur.Info)
		if c.o.Modes != nil {
			s.Mode = c.o.Modes.Mode().String()
		}
	})
}
