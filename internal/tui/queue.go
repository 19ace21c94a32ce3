package tui

import "sync"

// steering is what the user says into a running turn.
type steering struct {
	mu    sync.Mutex
	texts []string
}

// Steered returns the messages that were typed for the turn that runs, once. The
// chat asks for them between two requests to the model.
func (u *UI) Steered() []string {
	u.steer.mu.Lock()
	defer u.steer.mu.Unlock()
	texts := u.steer.texts
	u.steer.texts = nil
	if len(texts) > 0 {
		u.do(func(m *model) {
			m.steered = nil
			for _, text := range texts {
				m.finish()
				m.echo(text)
			}
		})
	}
	return texts
}

// steerNow sends what is in the input into the running turn. If none runs, it is
// sent as usual.
func (m *model) steerNow() {
	if m.working == 0 {
		m.send()
		return
	}
	text := m.editor.Value()
	m.editor.Reset()
	m.steered = append(m.steered, text)
	m.u.steer.mu.Lock()
	m.u.steer.texts = append(m.u.steer.texts, text)
	m.u.steer.mu.Unlock()
}

// missed queues what was typed for a turn that ended before it took notice.
func (m *model) missed() {
	m.u.steer.mu.Lock()
	texts := m.u.steer.texts
	m.u.steer.texts = nil
	m.u.steer.mu.Unlock()
	m.queue, m.steered = append(texts, m.queue...), nil
}
