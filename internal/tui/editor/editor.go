// Package editor is the input of the chat: text of several lines with undo, a
// history, completion of commands and files, and chips that stand for large
// pastes, images and the output of commands.
//
// An Editor knows no terminal. Messages of Bubble Tea go in through Update, and
// View returns what is drawn. Whatever takes time (listing files, commands and
// their arguments, the clipboard, the user's own editor) is a tea.Cmd.
//
// The text is a buffer of its own and not bubbles' textarea, which has no undo,
// moves by code points and not by characters, and lays out all of its text for
// each key.
package editor

import (
	"context"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/repl/history"
	"goclaw/llm"
)

// Option is something that the text can be completed to.
type Option struct {
	Text string // what takes the word's place
	Args string // what a command takes
	Help string
	Runs bool // nothing else is needed: Enter sends it
	Also bool // another name for what is offered already
}

// Options are what an Editor works with. Every field may be left out.
type Options struct {
	History *history.History
	// Commands are those that begin with a slash, Arguments what one of them takes
	// as its argument: at once, or in a goroutine of its own what takes longer.
	Commands  func() []Option
	Arguments func(command string) (now []Option, later func() []Option)
	// Files visits the files and folders of the workspace.
	Files func(ctx context.Context, visit func(path string, folder bool) error) error
	// Read reads a file of the workspace, if it is not longer than max bytes. The
	// error says in a few words why not; fs.ErrNotExist: there is none.
	Read func(path string, max int) ([]byte, error)
	// Plain: nothing becomes a chip.
	Plain bool
	// Getenv is os.Getenv; nil: nothing is set.
	Getenv func(string) string
	// Prompt stands before the text, painted; "": "> ". Placeholder is shown while
	// there is no text.
	Prompt, Placeholder string
}

// Event is what a message meant to whoever has the editor.
type Event int

const (
	None Event = iota
	// Send: Enter was pressed, and there is something to send. Take returns it.
	Send
)

// Message is what was typed, as it is sent.
type Message struct {
	Text   string
	Blocks []llm.Block // images, the output of commands, and files that Text names
	Notes  []string    // what is attached, and what is not and why
	Shown  string      // Text with chips

	raw string // as it was typed
}

// Command reports whether it is for the chat, and not for the model.
func (m Message) Command() bool {
	return strings.HasPrefix(m.raw, "!") || strings.HasPrefix(m.raw, "/") && !strings.HasPrefix(m.raw, "//")
}

// Editor is the input. Its methods are called from one goroutine.
type Editor struct {
	o      Options
	buf    buffer
	chips  chips
	past   past
	search search
	menu   menu
	files  files
	note   string // about the last key
	width  int    // of the text, when it was drawn last
	top    int    // the first row that was drawn
	goal   int    // the column that Up and Down keep to; -1: where the cursor is
	laid   *layout
}

// New returns an empty Editor.
func New(o Options) *Editor {
	if o.History == nil {
		o.History = &history.History{}
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	e := &Editor{o: o, width: 78, goal: -1}
	e.files.list = o.Files
	e.past.begin(o.History.Lines())
	return e
}

// Close ends what runs in the background.
func (e *Editor) Close() { e.files.stop() }

// Empty reports whether there is no text.
func (e *Editor) Empty() bool { return e.buf.text == "" }

// Value returns the text as it is shown.
func (e *Editor) Value() string { return e.chips.shown(e.buf.text) }

// Wants reports whether a key, by its name, is for the list or the search that is
// open. Escape closes both, Ctrl-C the search.
func (e *Editor) Wants(key string) bool {
	return e.search.on || e.menu.open() && slices.Contains(menuKeys, key)
}

// Set replaces the text, which can be undone.
func (e *Editor) Set(text string) {
	text = clean(text)
	text = e.chips.fitting(text)
	e.buf.set(text, len(text))
	e.menu.close()
}

// Reset removes the text and what could be undone.
func (e *Editor) Reset() {
	e.buf.reset("")
	e.past.end()
	e.menu.close()
	e.search.on, e.note = false, ""
}

// Clear removes the text; Up brings it back.
func (e *Editor) Clear() {
	e.past.push(e.buf.text)
	e.Reset()
}

// Restore puts a message that was taken, or any text, before what is there.
func (e *Editor) Restore(m Message) {
	text := m.raw
	if text == "" {
		text = e.chips.fitting(e.chips.labelled(clean(m.Text)))
	}
	if e.buf.text != "" {
		text += "\n"
	}
	e.buf.set(text+e.buf.text, len(text)+e.buf.pos)
	if e.buf.pos == len(text) {
		e.buf.pos = len(e.buf.text)
	}
	e.menu.close()
}

// Ran puts a command and its output before the text, as a chip.
func (e *Editor) Ran(command, output string) {
	c := e.chips.command(clean(command), clean(output))
	pos := e.buf.pos
	e.buf.set(c+e.buf.text, pos+len(c))
}

// Take returns what is to be sent, remembers it in the history, and removes it.
func (e *Editor) Take() Message {
	raw := e.buf.text
	m := Message{Text: e.chips.expanded(raw), Shown: e.chips.shown(raw), raw: raw}
	if strings.TrimSpace(m.Text) == "" {
		m.Text = m.Shown // a message has words
	}
	if !m.Command() {
		m.Blocks = e.chips.blocksIn(raw)
		found, notes := attached(e.o.Read, raw)
		m.Blocks, m.Notes = append(m.Blocks, found...), notes
	}
	e.o.History.Add(m.Text) // a history that cannot be written is no reason to stop
	if m.Text == "" || m.Text[0] != ' ' {
		e.past.push(raw)
	}
	e.Reset()
	return m
}

// Update handles a message: keys, pastes, and the editor's own.
func (e *Editor) Update(msg tea.Msg) (Event, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return e.key(msg)
	case tea.PasteMsg:
		e.note, e.goal = "", -1
		if e.search.on {
			e.search.add(clean(msg.Content))
			return None, nil
		}
		e.pasted(msg.Content)
		return None, e.complete()
	case offered:
		e.menu.offered(msg)
	case listed:
		return None, e.menu.files(&e.files, e.files.more(msg))
	case ranked:
		return None, e.menu.ranked(&e.files, msg)
	case copied:
		e.copied(msg)
	case edited:
		e.edited(msg)
	}
	return None, nil
}
