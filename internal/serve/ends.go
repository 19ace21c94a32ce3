package serve

import (
	"context"
	"errors"
	"strings"

	"goclaw/llm"
	"goclaw/session"
)

// A server knows the ends of turns that it ran, and of those that it heard of. A
// client may come back to another one, or to one that was started again: to it
// the log tells how they ended.

// logged is the end of a turn as far as the log says.
type logged struct {
	end
	next session.Seq // the record that the next turn begins with; 0: there is none yet
}

// lookBehind is how many records before a client's place are read to see whether
// a turn was running there.
const lookBehind = 64

// lastEvent returns the last event of a turn whose last message is m.
func lastEvent(m session.Message) map[string]any {
	if m.Role == llm.Assistant && m.Stop != "" && m.Error == "" && len(m.Calls()) == 0 {
		return map[string]any{"type": "done", "stopReason": m.Stop, "cut": m.Stop == llm.StopLength}
	}
	return map[string]any{"type": "error", "message": "the turn was interrupted: it can be continued"}
}

// endsIn returns how turns ended after p, up to the record last: those that have an
// answer, and the last one, which may still run.
func endsIn(ctx context.Context, st session.Store, id session.ID, p position, last session.Seq) (out []logged, err error) {
	var cur *logged
	var damage *session.Damage
	take := func() {
		if cur != nil && p.before(cur.at) {
			out = append(out, *cur)
		}
	}
	for rec, err := range st.Read(ctx, id, max(p.Seq-lookBehind, 0)) {
		if errors.As(err, &damage) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if rec.Seq > last {
			break
		}
		switch b := rec.Body.(type) {
		case session.Message:
			// One without an answer was interrupted, or was steered here.
			if session.IsTurn(b) && cur != nil && cur.data["type"] == "done" {
				cur.next = rec.Seq
				take()
			}
			cur = &logged{end: end{at: position{Seq: rec.Seq, Sub: all + 1}, data: lastEvent(b)}}
		case session.Checkpoint, session.Custom, session.Title, session.Label: // may come after it
		default:
			if cur != nil && cur.data["type"] == "error" {
				cur.at.Seq = rec.Seq
			}
		}
	}
	take()
	return out, nil
}

// comeBack lets a reader that comes back with the id of an event know the ends of
// turns after its place which no one has told here.
func (s turnsAPI) comeBack(ctx context.Context, rd *reader, id string) error {
	if !strings.Contains(id, ".") { // it knows everything up to a record
		return nil
	}
	if err := rd.catchUp(ctx); err != nil {
		return err
	}
	now, _ := rd.now()
	ends, err := endsIn(ctx, rd.st, rd.id, rd.at, now.Seq)
	if n := len(ends); err == nil && n > 0 && ends[n-1].next == 0 {
		told, err := s.peers.tells(ctx, rd.stream)
		if err != nil {
			return err
		}
		if told {
			ends = ends[:n-1]
		}
	}
	rd.logged = ends
	return err
}

// tells reports whether the end of the turn in the stream's session will be told:
// it still runs, here or elsewhere.
func (p *peers) tells(ctx context.Context, s *stream) (bool, error) {
	if s.here() || s.unended() {
		return true, nil
	}
	_, held, err := p.holder(ctx, s.id)
	if held {
		s.expect()
	}
	return held, err
}

// expect says that a turn of another process runs, whose end is to be told.
func (s *stream) expect() {
	s.mu.Lock()
	s.foreign = !s.local
	s.mu.Unlock()
	s.elsewhere()
}

// untold returns the ends after the reader's place, those that only the log tells
// among them. mu is held.
func (r *reader) untold() []end {
	out := r.missed(r.at)
	known := r.stream.ends
next:
	for i := len(r.logged) - 1; i >= 0; i-- {
		l := r.logged[i]
		if !r.at.before(l.at) {
			break
		}
		for _, e := range known {
			if e.at.Seq >= l.at.Seq && (l.next == 0 || e.at.Seq < l.next) {
				continue next
			}
		}
		at := 0
		for at < len(out) && out[at].at.before(l.at) {
			at++
		}
		out = append(out[:at:at], append([]end{l.end}, out[at:]...)...)
	}
	return out
}
