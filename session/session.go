// Package session holds conversations: a Session is what an append-only log
// of Records adds up to, a Key says whose it is, and a Store keeps logs.
//
// A record is appended with the next number, or it is refused. One function,
// Apply, adds a record to a session, on load and live alike. The log is the
// truth; Info and every index are projections of it.
//
// Every later version reads what is written today. Unknown kinds and fields
// pass through untouched. Damage is reported with its place, and everything
// around it loads.
package session

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"goclaw/llm"
)

// Session is a log's live branch, root first, and what the log adds up to.
// Branch holds every record of the branch that was loaded: all of it after
// Replay, from Info.KeepFrom on after Open. An answer of which only parts were
// recorded is there as a Message, see Partial.
type Session struct {
	Info
	Branch []Record
	Damage []*Damage // places that could not be read

	outline *Outline
	recs    []Record // one for each node of outline
	effect  effect
	open    *parts // the answer at the end of Branch of which only parts came; nil: none
	strict  bool
	partial bool
}

// effect is where a branch has the compaction or reset in effect, and the
// first record that it keeps.
type effect struct {
	at, keep int
	ok       bool // there is one
}

// Replay adds up a whole log. Damage in recs is collected in Session.Damage;
// any other error ends the reading. Records with Seq 0 are numbered as they
// come.
func Replay(id ID, recs iter.Seq2[Record, error]) (*Session, error) {
	s := newSession(id)
	return s, s.readAll(recs)
}

// ReplayStrict adds up a log as pi reads it, where Replay repairs it: the last
// line is the leaf, of records with the same id the last counts, a parent may
// stand anywhere in the log, and one that is unknown or absent cuts the past.
// A cycle, on which pi hangs, cuts it as well.
func ReplayStrict(id ID, recs iter.Seq2[Record, error]) (*Session, error) {
	s := newSession(id)
	s.strict = true
	return s, s.readAll(recs)
}

// newSession returns the session of the empty log id.
func newSession(id ID) *Session {
	o := NewOutline(id)
	return &Session{Info: o.Info, outline: o}
}

// resume adds up the end of a log whose Info is known: recs begin with the
// record info.KeepFrom.
func resume(info Info, recs iter.Seq2[Record, error]) (*Session, error) {
	if info.KeepFrom <= 1 {
		s, err := Replay(info.ID, recs)
		s.Trashed = info.Trashed
		return s, err
	}
	s := newSession(info.ID)
	s.partial = true
	s.outline.Info = Info{ID: info.ID, Last: info.KeepFrom - 1} // parents before it are not known
	if err := s.readAll(recs); err != nil {
		return s, err
	}
	if s.Last < info.Last {
		return s, fmt.Errorf("session: %s ends at record %d, its index says %d: %w", info.ID, s.Last, info.Last, ErrStale)
	}
	if s.Last > info.Last {
		// The log grew while it was read: Info is older than the records.
		return s, fmt.Errorf("session: %s grew from record %d to %d while it was read: %w", info.ID, info.Last, s.Last, ErrStale)
	}
	s.Info = info
	s.outline.Info = info
	for i := range s.outline.nodes {
		// Info knows the past that was not loaded; these do not.
		s.outline.nodes[i].path = path{}
	}
	if l := s.outline.leaf; l >= 0 {
		s.outline.nodes[l].path = path{turns: info.Turns, used: info.Used, provider: info.Provider, model: info.Model, thinking: info.Thinking, keep: info.KeepFrom}
	}
	return s, nil
}

func (s *Session) readAll(recs iter.Seq2[Record, error]) error {
	for r, err := range recs {
		var d *Damage
		if errors.As(err, &d) {
			s.Damage = append(s.Damage, d)
			continue
		}
		if err != nil {
			return err
		}
		if r.Seq == 0 {
			r.Seq = s.outline.Last + 1
		}
		if err := s.add(r); err != nil {
			return err
		}
	}
	s.settle()
	return nil
}

// Apply adds r, which must be the record after s.Last. Nothing else changes a
// session. The error is ErrPartial if r leads back into a past that was not
// loaded (an Undo, another branch): open the session again. Apply does not
// notice that r repeats an id of that past; ids are unique.
func (s *Session) Apply(r Record) error {
	if s.partial && !s.continues(r) {
		return fmt.Errorf("session: record %d leads back: %w", r.Seq, ErrPartial)
	}
	if err := s.add(r); err != nil {
		return err
	}
	s.settle()
	return nil
}

// Chosen returns the record of the model that the user chose last in this
// session, and whether one is among the loaded records. A change that is not
// marked as chosen does not count: another program may have written it.
func (s *Session) Chosen() (Record, bool) {
	for _, r := range slices.Backward(s.Branch) {
		if c, ok := r.Body.(ModelChange); ok && c.Chosen {
			return r, true
		}
	}
	return Record{}, false
}

// LastModel returns the model used last on the live branch: the one that
// answered last, or a later change that was not a choice. A choice counts only
// if nothing else names a model. ok is false if nothing does.
func (s *Session) LastModel() (c ModelChange, ok bool) {
	for _, r := range slices.Backward(s.Branch) {
		switch b := r.Body.(type) {
		case ModelChange:
			if !b.Chosen {
				return b, true
			}
		case Message:
			if b.Role == llm.Assistant && b.Model != "" {
				return ModelChange{Provider: b.Provider, Model: b.Model}, true
			}
		}
	}
	return ModelChange{Provider: s.Provider, Model: s.Model}, s.Model != ""
}

// continues reports whether r simply follows the leaf. A compaction must
// keep a record that was loaded.
func (s *Session) continues(r Record) bool {
	_, undo := r.Body.(Undo)
	if first := firstKept(r.Body); first != "" && first != r.ID && !s.Has(first) {
		return false
	}
	return !undo && r.ID != "" && !r.Side && r.Link == Given && r.Parent == s.Leaf && canonical(r.Body)
}

// add applies r and keeps Branch up to date as long as it only grows.
func (s *Session) add(r Record) error {
	o := s.outline
	leaf := o.leaf
	if err := o.Apply(r); err != nil {
		return err
	}
	s.recs = append(s.recs, r)
	if b, ok := r.Body.(Redaction); ok {
		s.redact(b)
	}
	if s.strict {
		return nil
	}
	if o.leaf == leaf {
		return nil
	}
	if o.leaf == int32(len(o.nodes))-1 && o.nodes[o.leaf].up == leaf && s.Branch != nil {
		s.extend(r)
	} else {
		s.Branch, s.open = nil, nil // settle walks it again
	}
	return nil
}

// settle brings Info and Branch in line with the outline.
func (s *Session) settle() {
	o := s.outline
	if s.strict {
		s.strictly()
		return
	}
	s.Info, s.effect = o.Info, o.inEffect()
	if s.Branch != nil || o.leaf < 0 {
		return
	}
	var branch []Record
	for i := o.leaf; i >= 0; i = o.nodes[i].up {
		branch = append(branch, s.recs[i])
	}
	for _, r := range slices.Backward(branch) {
		s.extend(r)
	}
}

// strictly sets Branch and Info as pi reads them.
func (s *Session) strictly() {
	byID := map[string]int{}
	last := -1
	for i, r := range s.recs {
		if _, ok := r.Body.(Header); ok {
			continue
		}
		last = i
		if r.ID != "" {
			byID[r.ID] = i
		}
	}
	s.Branch = nil
	seen := map[int]bool{}
	if last >= 0 && s.recs[last].ID != "" {
		last = byID[s.recs[last].ID]
	}
	for i := last; i >= 0 && !seen[i]; {
		seen[i] = true
		r := s.recs[i]
		s.Branch = append(s.Branch, r)
		up, ok := byID[r.Parent]
		if !ok || r.Parent == "" || r.Link != Given {
			break
		}
		i = up
	}
	slices.Reverse(s.Branch)
	s.effect = search(s.Branch)
	// Info follows from the branch: outline it as if it were the whole log.
	o := NewOutline(s.ID)
	p := path{}
	for _, r := range s.Branch {
		p = p.after(r)
	}
	o.Info = s.outline.Info
	o.LastBend = o.Last
	o.setPath(p)
	o.Leaf = ""
	if n := len(s.Branch); n > 0 {
		o.Leaf = s.Branch[n-1].ID
	}
	s.Info = o.Info
}

// Next returns the record that would follow, with the body b. Ids ascend even
// if the clock runs back, so that a store knows a new id without looking at
// all of them.
func (s *Session) Next(b Body, c Clock) Record {
	now, n := c.Now().UTC().Truncate(time.Millisecond), c.Rand()
	at := now
	if ms, ok := (Record{ID: s.Leaf}).IDTime(); ok && ms > at.UnixMilli() {
		at = time.UnixMilli(ms + 1)
	}
	prefix := ""
	if _, ok := b.(Redaction); ok {
		prefix = RedactionPrefix
	}
	r := Record{Seq: s.Last + 1, ID: prefix + recordID(at, n), Parent: s.Leaf, Time: now, Body: b}
	for s.Has(r.ID) { // ends even if neither the time nor the random number changes
		n++
		r.ID = prefix + recordID(at, n)
	}
	return r
}

// Restart returns the record that begins a branch before the first message: what
// follows continues nothing. It holds nothing else.
func (s *Session) Restart(c Clock) Record {
	r := s.Next(Custom{Type: "goclaw.restart"}, c)
	r.Parent = ""
	return r
}

// Has reports whether a loaded record has the id.
func (s *Session) Has(id string) bool {
	_, ok := s.outline.byID[id]
	return ok
}

// Compaction returns the compaction or reset in effect at the end of the
// branch: its index in Branch, and the index of the first record that it
// keeps, which is at if it keeps nothing. ok is false if there is none.
func (s *Session) Compaction() (at, keep int, ok bool) {
	return s.effect.at, s.effect.keep, s.effect.ok
}

// WithBranch returns a copy of s with another branch: a part of it, or a
// redacted version of it. The copy is for reading; Apply refuses records.
func (s *Session) WithBranch(branch []Record) *Session {
	return &Session{Info: s.Info, Branch: branch, Damage: s.Damage, effect: search(branch), outline: NewOutline(s.ID), partial: true}
}

// search finds the compaction or reset in effect on a branch that has no
// outline.
func search(branch []Record) effect {
	undone := map[string]bool{}
	for i, r := range slices.Backward(branch) {
		switch b := r.Body.(type) {
		case Undo:
			undone[b.Target] = true
		case Compaction, Reset:
			if undone[r.ID] {
				continue
			}
			first := firstKept(b)
			keep := slices.IndexFunc(branch[:i], func(r Record) bool { return r.ID == first })
			if first == "" || keep < 0 {
				keep = i
			}
			return effect{at: i, keep: keep, ok: true}
		}
	}
	return effect{}
}

// wholeFrom is the index of the first record of those that are all sent.
func (s *Session) wholeFrom() int {
	at, keep, ok := s.Compaction()
	if !ok {
		return 0
	}
	if c, ok := s.Branch[at].Body.(Compaction); ok && c.Resume != "" {
		for i := keep; i < at; i++ {
			if s.Branch[i].ID == c.Resume {
				return i
			}
		}
	}
	return keep
}

// Unanswered returns the tool calls of the last answer on the branch that
// have no result, in order: those that ran when the log broke off. There are
// none if a later compaction covers the answer.
func (s *Session) Unanswered() []llm.ToolCall {
	done := map[string]bool{}
	for i, r := range slices.Backward(s.Branch) {
		m, ok := r.Body.(Message)
		if !ok {
			continue
		}
		for _, r := range m.Results() {
			done[r.CallID] = true
		}
		if IsTurn(m) {
			return nil
		}
		if m.Role != llm.Assistant {
			continue
		}
		if m.Stop == llm.StopError || m.Stop == llm.StopAborted {
			return nil
		}
		var open []llm.ToolCall
		for _, c := range m.Calls() {
			if !done[c.ID] {
				open = append(open, c)
			}
		}
		if len(open) > 0 && i < s.wholeFrom() {
			return nil
		}
		return open
	}
	return nil
}
