package tui

import (
	"sync"

	"goclaw/internal/repl/history"
	"goclaw/internal/repl/line"
)

// steering is what the user says into a running turn.
type steering struct {
	mu    sync.Mutex
	texts []string
}

// Steered returns the messages that were typed for the turn that runs, once. The
// chat asks for them between two requests to the model.
func (k keyboard) Steered() []string {
	k.steer.mu.Lock()
	defer k.steer.mu.Unlock()
	texts := k.steer.texts
	k.steer.texts = nil
	if len(texts) > 0 {
		k.do(func(m *model) {
			m.steered = nil
			for _, text := range texts {
				m.finish()
				m.echo(text)
			}
		})
	}
	return texts
}

// outbox is the input, and what was sent from it but not taken yet.
type outbox struct {
	loop    *loop
	log     *live
	history *history.History // nil: nothing is remembered
	chat    Chat

	editor  *input
	reader  chan typed // the chat waits for a line; nil: it does not
	queue   []string   // messages to send next
	steered []string   // messages for the turn that runs
}

// steerNow sends what is in the input into the running turn. If none runs, it is
// sent as usual.
func (t *outbox) steerNow() {
	if t.log.working == 0 {
		t.send()
		return
	}
	text := t.editor.Value()
	t.editor.Reset()
	t.steered = append(t.steered, text)
	t.loop.steer.mu.Lock()
	t.loop.steer.texts = append(t.loop.steer.texts, text)
	t.loop.steer.mu.Unlock()
}

// missed queues what was typed for a turn that ended before it took notice.
func (t *outbox) missed() {
	t.loop.steer.mu.Lock()
	texts := t.loop.steer.texts
	t.loop.steer.texts = nil
	t.loop.steer.mu.Unlock()
	t.queue, t.steered = append(texts, t.queue...), nil
}

// send sends what is in the input: to the chat if it waits for a line, else into
// the queue.
func (t *outbox) send() {
	text := t.editor.Value()
	t.editor.Reset()
	if h := t.history; h != nil {
		h.Add(text) // a history that cannot be written is no reason to stop
	}
	t.queue = append(t.queue, text)
	t.deliver()
}

// deliver hands the first message of the queue to the chat, if it waits for one.
func (t *outbox) deliver() {
	if t.reader == nil || len(t.queue) == 0 {
		return
	}
	text := t.queue[0]
	t.queue = t.queue[1:]
	t.log.echo(text)
	t.answer(typed{text: text})
}

// command has the chat run a command that a key stands for, if it waits for a
// line. It is not echoed.
func (t *outbox) command(text string) bool {
	if t.reader == nil {
		return false
	}
	t.answer(typed{text: text})
	return true
}

// answer ends the chat's reading.
func (t *outbox) answer(x typed) {
	t.reader <- x
	t.reader = nil
}

// interrupt is Ctrl-C, and Escape while something runs.
func (t *outbox) interrupt() {
	switch {
	case t.reader != nil:
		t.answer(typed{err: line.ErrInterrupt})
	default:
		t.takeBack()
		t.chat.Interrupt()
	}
}

// takeBack puts all queued messages back into the input: who stops an answer may
// want to say something else.
func (t *outbox) takeBack() {
	for len(t.queue) > 0 {
		t.unqueue()
	}
}

// unqueue puts the last queued message back into the input.
func (t *outbox) unqueue() {
	last := t.queue[len(t.queue)-1]
	t.queue = t.queue[:len(t.queue)-1]
	if now := t.editor.Value(); now != "" {
		last += "\n" + now
	}
	t.editor.SetValue(last)
}
