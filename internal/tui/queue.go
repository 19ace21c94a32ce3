package tui

import (
	"io"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/attach"
	"goclaw/internal/repl/history"
	"goclaw/internal/repl/line"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/editor"
	"goclaw/llm"
)

// steering is what the user says into a running turn.
type steering struct {
	mu   sync.Mutex
	list []editor.Message
}

// Steered returns what was typed for the turn that runs, once; an empty message
// if that is nothing. The chat asks between two requests to the model.
func (k keyboard) Steered() llm.Message {
	k.steer.mu.Lock()
	defer k.steer.mu.Unlock()
	list := k.steer.list
	if k.steer.list = nil; len(list) == 0 {
		return llm.Message{}
	}
	k.do(func(m *model) {
		m.steered = nil
		for _, one := range list {
			m.finish()
			m.sent(one)
		}
	})
	var texts []string
	var blocks []llm.Block
	for _, one := range list {
		texts, blocks = append(texts, one.Text), append(blocks, one.Blocks...)
	}
	return attach.Message(strings.Join(texts, "\n\n"), blocks)
}

// Steering says that a turn runs, which takes messages that are sent into it,
// until done is called.
func (k keyboard) Steering() (done func()) {
	k.do(func(m *model) { m.steerable = true })
	return func() { k.do(func(m *model) { m.steerable = false }) }
}

// outbox is the input, and what was sent from it but not taken yet.
type outbox struct {
	loop    *loop
	log     *live
	history *history.History // nil: nothing is remembered
	files   Workspace        // nil: the input names none
	chat    Chat

	editor  *editor.Editor
	reader  chan typed       // the chat waits for a line; nil: it does not
	queue   []editor.Message // to send next
	steered []editor.Message // for the turn that runs

	taken   bool   // the chat took a message and has not begun to work
	stopped bool   // the chat was interrupted and has not read since
	again   bool   // and is to be once more
	leave   bool   // as soon as the chat waits for a line and none is queued
	wanted  string // a command that a key stands for, likewise
}

// steerNow sends what is in the input into the running turn. If none runs, or
// something else, it is sent as usual.
func (t *outbox) steerNow() {
	if strings.TrimSpace(t.editor.Value()) == "" {
		return
	}
	m := t.editor.Take()
	if t.log.working == 0 || !t.log.steerable || m.Command() {
		t.send(m)
		return
	}
	t.steered = append(t.steered, m)
	t.loop.steer.mu.Lock()
	t.loop.steer.list = append(t.loop.steer.list, m)
	t.loop.steer.mu.Unlock()
}

// missed queues what was typed for a turn that ended before it took notice.
func (t *outbox) missed() {
	t.loop.steer.mu.Lock()
	list := t.loop.steer.list
	t.loop.steer.list = nil
	t.loop.steer.mu.Unlock()
	t.queue, t.steered = append(list, t.queue...), nil
}

// update hands the input a message, and sends what is to be sent.
func (t *outbox) update(msg tea.Msg) tea.Cmd {
	ev, cmd := t.editor.Update(msg)
	if ev == editor.Send {
		t.send(t.editor.Take())
	}
	return cmd
}

// send sends a message: to the chat if it waits for a line, else into the queue.
func (t *outbox) send(m editor.Message) {
	t.queue = append(t.queue, m)
	t.deliver()
}

// listen hands the chat the next message when there is one.
func (t *outbox) listen(reader chan typed) {
	again := t.again
	t.log.halted = false
	t.reader, t.taken, t.stopped, t.again = reader, false, false, false
	if again {
		t.interrupt()
		return
	}
	t.deliver()
}

// deliver hands the first message of the queue to the chat, if it waits for one.
func (t *outbox) deliver() {
	switch {
	case t.reader == nil:
		return
	case len(t.queue) == 0 && t.wanted != "":
		t.answer(typed{text: t.wanted})
		t.wanted = ""
		return
	case len(t.queue) == 0 && t.leave:
		t.leave = false
		t.answer(typed{err: io.EOF})
		return
	case len(t.queue) == 0:
		return
	}
	m := t.queue[0]
	t.queue = t.queue[1:]
	t.sent(m)
	t.answer(typed{text: m.Text, blocks: m.Blocks})
	t.taken = !m.Command()
}

// sent prints a message, and what is attached to it.
func (t *outbox) sent(m editor.Message) {
	t.log.echo(m.Shown)
	for _, note := range m.Notes {
		t.log.print(t.log.paint(t.log.style.Dim("  " + transcript.Printable(note))))
	}
}

// command has the chat run a command that a key stands for, as soon as it waits
// for a line. It reports false if the chat works, which tooLate sees to if work
// begins first. The command is not echoed.
func (t *outbox) command(text string) bool {
	if t.reader == nil && t.log.working > 0 {
		return false
	}
	t.wanted = text
	t.deliver()
	return true
}

// answer ends the chat's reading.
func (t *outbox) answer(x typed) {
	t.reader <- x
	t.reader = nil
}

// interrupt is Ctrl-C, and Escape while something runs.
func (t *outbox) interrupt() {
	t.wanted = ""
	switch {
	case t.reader != nil:
		t.stopped = true
		t.answer(typed{err: line.ErrInterrupt})
	case t.stopped: // the second Ctrl-C came before the chat knew of the first
		t.again = true
	default:
		t.log.halted = true
		t.takeBack()
		t.chat.Interrupt()
	}
}

// takeBack puts all messages that wait back into the input: who stops an answer
// may want to say something else.
func (t *outbox) takeBack() {
	t.missed()
	for len(t.queue) > 0 {
		t.unqueue()
	}
}

// unqueue puts the last queued message back into the input.
func (t *outbox) unqueue() {
	last := t.queue[len(t.queue)-1]
	t.queue = t.queue[:len(t.queue)-1]
	t.editor.Restore(last)
}

// unsent tells what was typed and not sent, when the chat is over. The history
// has it.
func (t *outbox) unsent() {
	t.missed()
	if strings.TrimSpace(t.editor.Value()) != "" {
		t.queue = append(t.queue, t.editor.Take())
	}
	for _, m := range t.queue {
		t.log.print(t.log.paint(t.log.style.Dim("not sent: " + transcript.OneLine(transcript.Printable(m.Shown), max(t.log.width-38, 10)) + " (↑ brings it back)")))
	}
	t.queue = nil
}
