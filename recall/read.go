package recall

import (
	"context"
	"errors"
	"strings"
	"time"

	"goclaw/internal/naming"
	"goclaw/session"
)

// Line is something that was said, as Around returns it.
type Line struct {
	Seq    session.Seq
	Record string
	Role   Role
	Time   time.Time
	Text   string
}

// Around returns what was said in the log id around the record at: so many
// messages before and after it. at 0 is the end.
func Around(ctx context.Context, st session.Store, id session.ID, at session.Seq, before, after int) ([]Line, error) {
	in, err := session.Stat(ctx, st, id)
	if err != nil {
		return nil, err
	}
	if !in.Trashed.IsZero() {
		return nil, session.NotFound("session %q is in the trash", id)
	}
	if at == 0 {
		at, before, after = in.Last, before+after, 0
	}
	if at < 1 || at > in.Last {
		return nil, session.NotFound("session %q has no record %d, the last one is %d", id, at, in.Last)
	}
	var lines []Line
	later := 0
	// Not every record says something: start a little earlier.
	from := max(0, at-1-session.Seq(4*before+8))
	for r, err := range session.Joined(st.Read(ctx, id, from)) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Seq > at && later == after {
			break
		}
		s, ok := speak(r)
		if !ok {
			continue
		}
		l := Line{Seq: r.Seq, Record: r.ID, Role: s.role, Time: s.at, Text: s.text}
		lines = append(lines, l)
		switch {
		case r.Seq > at:
			later++
		case r.Seq < at && len(lines) > before:
			lines = lines[1:]
		case r.Seq == at && len(lines) > before+1:
			lines = lines[1:]
		}
	}
	return lines, nil
}

// Place resolves what a person or a model writes for a place in a log: a key,
// an id or a prefix of either, followed by "#" and the number of a record if a
// record is meant. record is such a number, or a record's id or a prefix of it;
// "" if there is none.
func Place(ctx context.Context, st session.Store, ref, record string) (session.Info, session.Seq, error) {
	in, err := naming.Find(ctx, st, ref, false, naming.Listed{})
	if id, seq, ok := Cited(ref); ok && errors.Is(err, session.ErrNotFound) {
		if record == "" {
			record = seq
		}
		in, err = naming.Find(ctx, st, id, false, naming.Listed{})
	}
	if err != nil || record == "" {
		return in, 0, err
	}
	if i := strings.LastIndexByte(record, '#'); i >= 0 {
		record = record[i+1:]
	}
	seq, err := naming.Locate(st.Read(ctx, in.ID, 0), in, record)
	return in, seq, err
}

// File returns lines of a memory file, from is 1 for the first, and how many
// lines it has. Only memory files can be read.
func (ix *Index) File(name string, from, lines int) (text string, total int, err error) {
	if ix.o.Workspace == "" {
		return "", 0, errors.New("there are no memory files here")
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.memory.Lines(name, from, lines)
}
