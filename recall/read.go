package recall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
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

// Around returns what was said in the log id around the record at: before
// messages before it, and after behind it. at 0 is the end.
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
	behind := 0
	// Not every record says something: begin a little earlier.
	from := max(0, at-1-session.Seq(4*before+8))
	for r, err := range st.Read(ctx, id, from) {
		var d *session.Damage
		if errors.As(err, &d) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Seq > at && behind == after {
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
			behind++
		case r.Seq < at && len(lines) > before:
			lines = lines[1:]
		case r.Seq == at && len(lines) > before+1:
			lines = lines[1:]
		}
	}
	return lines, nil
}

// Place resolves what a person or a model writes for a place in a log: a key,
// an id or a prefix of either, with "#" and the number of a record behind it
// if a record is meant. record is such a number, or a record's id or a prefix
// of it; "" if there is none.
func Place(ctx context.Context, st session.Store, ref, record string) (session.Info, session.Seq, error) {
	in, err := naming.Find(ctx, st, ref, false)
	if id, seq, ok := Cited(ref); ok && errors.Is(err, session.ErrNotFound) {
		if record == "" {
			record = seq
		}
		in, err = naming.Find(ctx, st, id, false)
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

// errOutside says that a path is no memory file.
var errOutside = errors.New("not a memory file")

// File returns lines of a memory file, from is 1 for the first, and how many
// lines it has. Only memory files can be read.
func (ix *Index) File(name string, from, lines int) (text string, total int, err error) {
	if ix.o.Workspace == "" {
		return "", 0, errors.New("there are no memory files here")
	}
	ix.mu.Lock()
	m := &ix.memory
	_, err = m.sync(ix.o.Workspace, ix.o.Memory, nil)
	clean := path.Clean(filepath.ToSlash(name))
	var size int64
	var flaw string
	f, known := m.files[clean]
	if known {
		size, flaw = f.info.Size(), f.flaw
	}
	var near []string
	for _, f := range m.order {
		near = append(near, f.path)
	}
	flaws := m.flaws
	ix.mu.Unlock()
	if err != nil {
		return "", 0, err
	}
	if !known {
		for _, s := range flaws {
			if strings.HasPrefix(s, clean+" ") {
				return "", 0, errors.New(s)
			}
		}
		hint := ""
		if n := len(near); n > 0 {
			hint = "; there are " + strings.Join(near[max(0, n-8):], ", ")
		}
		return "", 0, fmt.Errorf("%q is %w%s", name, errOutside, hint)
	}
	root, err := os.OpenRoot(ix.o.Workspace)
	if err != nil {
		return "", 0, err
	}
	defer root.Close()
	data, err := readFile(root.FS(), clean)
	if err != nil {
		return "", 0, err
	}
	content, ok := textOf(whole(data, size))
	if !ok {
		return "", 0, fmt.Errorf("%s is no text", clean)
	}
	all := linesOf(content)
	from = max(from, 1)
	if from > max(len(all), 1) {
		if flaw != "" {
			return "", len(all), fmt.Errorf("%s has %d lines that were read; it %s", clean, len(all), flaw)
		}
		return "", len(all), fmt.Errorf("%s has %d lines", clean, len(all))
	}
	if lines <= 0 || lines > len(all)-from+1 {
		lines = len(all) - from + 1
	}
	return strings.Join(all[from-1:from-1+lines], "\n"), len(all), nil
}
