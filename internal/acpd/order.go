package acpd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"

	acp "github.com/coder/acp-go-sdk"
)

// order knows in which order an editor has sent prompts and cancellations. The
// library hands each prompt to a goroutine of its own, so that a cancellation
// right after one may arrive first, when there is nothing to stop yet.
type order struct {
	mu sync.Mutex
	of map[acp.SessionId]*sent
}

// sent are the prompts of a session, as numbers: of the latest that came, that
// began, and that was cancelled.
type sent struct{ came, began, cancelled int }

// watch returns in, and takes note of what is read from it.
func (o *order) watch(in io.Reader) io.Reader { return &watched{order: o, in: bufio.NewReader(in)} }

type watched struct {
	order *order
	in    *bufio.Reader
	line  []byte // what was read and noted, but not passed on yet
	err   error
}

func (w *watched) Read(p []byte) (int, error) {
	if len(w.line) == 0 && w.err == nil {
		w.line, w.err = w.in.ReadBytes('\n')
		w.order.note(w.line)
	}
	if len(w.line) == 0 {
		return 0, w.err
	}
	n := copy(p, w.line)
	w.line = w.line[n:]
	return n, nil
}

// note takes a message of the editor. It counts those prompts that the library
// hands on.
func (o *order) note(line []byte) {
	if !bytes.Contains(line, []byte("session/")) {
		return
	}
	var msg struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	var prompt acp.PromptRequest
	var cancel acp.CancelNotification
	if json.Unmarshal(line, &msg) != nil {
		return
	}
	switch {
	case msg.Method == acp.AgentMethodSessionPrompt && msg.ID != nil && json.Unmarshal(msg.Params, &prompt) == nil && prompt.Validate() == nil:
		o.change(prompt.SessionId, func(s *sent) { s.came++ })
	case msg.Method == acp.AgentMethodSessionCancel && json.Unmarshal(msg.Params, &cancel) == nil:
		o.change(cancel.SessionId, func(s *sent) { s.cancelled = s.came })
	}
}

// begin returns the number of the next prompt of a session.
func (o *order) begin(id acp.SessionId) (n int) {
	o.change(id, func(s *sent) { s.began++; n = s.began })
	return n
}

// withdrawn reports whether the prompt n of a session was cancelled.
func (o *order) withdrawn(id acp.SessionId, n int) (is bool) {
	o.change(id, func(s *sent) { is = n <= s.cancelled })
	return is
}

func (o *order) change(id acp.SessionId, f func(*sent)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.of == nil {
		o.of = map[acp.SessionId]*sent{}
	}
	s := o.of[id]
	if s == nil {
		s = &sent{}
		o.of[id] = s
	}
	f(s)
}
