// Package doctor examines the transcripts of other programs and writes healed
// copies of them.
package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Finding is something that is wrong with a transcript, and what it costs
// whoever reads it.
type Finding struct {
	Path string
	Line int // of the file, or the row of the database and one; 0: all of it
	What string
	Cost string
}

func (f Finding) String() string {
	s := source.Problem{Path: f.Path, Line: f.Line, What: f.What}.String()
	if f.Cost != "" {
		s += ": " + f.Cost
	}
	return s
}

// Examination is what is to be said of a transcript.
type Examination struct {
	*source.Transcript
	Records  int
	Messages int // in all branches
	Branch   int // messages on the live branch, as it is healed
	Strict   int // messages that pi would show
	Updated  time.Time
	Findings []Finding
}

// Examine reads a transcript and says what is wrong with it. Nothing is
// changed.
func Examine(ctx context.Context, t *source.Transcript) (Examination, error) {
	x := examiner{Examination: Examination{Transcript: t}, at: map[string]int{}, lines: map[string]int{}}
	recs, err := x.read(ctx)
	if err != nil {
		return x.Examination, err
	}
	live, err := session.Replay(x.ID, source.Chain(recs))
	if err != nil {
		return x.Examination, err
	}
	x.Branch = messages(live.Branch)
	x.links(recs, live)
	strict, err := session.Replay(t.ID, source.Chain(recs), session.Strict())
	if err != nil {
		return x.Examination, err
	}
	x.Strict = messages(strict.Branch)
	if lost := x.Branch - x.Strict; lost > 0 && t.Native() && !t.Database() {
		x.find(0, "the history is cut for a program that does not heal it", fmt.Sprintf("pi shows %d of %d messages", x.Strict, x.Branch))
	}
	x.calls(live)
	return x.Examination, nil
}

type examiner struct {
	Examination
	at    map[string]int // where in the log a record is, by its id
	lines map[string]int // and on which line
}

func (x *examiner) find(line int, what, cost string) {
	path := x.Path
	if x.Database() { // one of many in it
		path += "#" + string(x.ID)
	}
	x.Findings = append(x.Findings, Finding{path, line, what, cost})
}

// read reads everything, and notes what cannot be read.
func (x *examiner) read(ctx context.Context) ([]session.Record, error) {
	var recs []session.Record
	var pos source.Position
	for r, err := range x.Raw(ctx, &pos) {
		var d *session.Damage
		if errors.As(err, &d) {
			cost := fmt.Sprintf("%d bytes are lost to every reader", d.Size)
			if d.Size > storekit.MaxRecord {
				cost = fmt.Sprintf("goclaw takes no line of more than %d MiB; another program may read it, and a healed copy has it as it is", storekit.MaxRecord>>20)
			}
			x.find(d.Line, d.Reason, cost)
			continue
		}
		if err != nil {
			return nil, err
		}
		line := pos.Line
		if x.Database() {
			line = int(r.Seq)
		}
		if len(recs) == 0 && r.Raw == nil && x.Native() {
			x.find(0, "the file has no header", "pi up to 0.73 and OpenClaw up to 2026.7 overwrite it when they open it: all of it would be lost")
		}
		r.ID = strings.Clone(r.ID) // not the line with it
		if r.ID != "" {
			if _, again := x.at[r.ID]; again {
				x.find(line, fmt.Sprintf("the id %q is on line %d already", r.ID, x.lines[r.ID]), "one of both is not seen: the first by pi, the second by OpenClaw")
			} else {
				x.at[r.ID], x.lines[r.ID] = len(recs), line
			}
		}
		if _, ok := r.Body.(session.Message); ok {
			x.Messages++
		}
		if r.Time.After(x.Updated) {
			x.Updated = r.Time
		}
		r.Seq = session.Seq(len(recs) + 1)
		recs = append(recs, outlined(r))
	}
	x.Records = len(recs)
	return recs, nil
}

// outlined is what of a record is examined: a long session is held in memory
// without what was said in it.
func outlined(r session.Record) session.Record {
	out := session.Record{Seq: r.Seq, ID: r.ID, Parent: strings.Clone(r.Parent), Link: r.Link, Side: r.Side, Body: r.Body}
	switch b := r.Body.(type) {
	case session.Message:
		m := session.Message{Message: llm.Message{Role: b.Role}, Stop: b.Stop}
		for _, c := range b.Calls() {
			kept := llm.ToolCall{ID: strings.Clone(c.ID)}
			if sent := llm.Sendable(llm.Message{Role: llm.Assistant, Blocks: []llm.Block{c}}); sent[0].(llm.ToolCall).Name != c.Name {
				kept.Name = fmt.Sprintf("%.80q", c.Name) // the odd ones only
			}
			m.Blocks = append(m.Blocks, kept)
		}
		for _, res := range b.Results() {
			// A failed one is kept as such only where it says nothing.
			m.Blocks = append(m.Blocks, llm.ToolResult{CallID: strings.Clone(res.CallID), IsError: res.IsError && llm.Blank(res.Text())})
		}
		out.Body = m
	case session.Compaction:
		out.Body = session.Compaction{FirstKept: strings.Clone(b.FirstKept)}
	case session.BranchSummary:
		out.Body = session.BranchSummary{}
	case session.CustomMessage:
		out.Body = session.CustomMessage{}
	case session.Custom:
		out.Body = session.Custom{}
	case session.Unknown:
		out.Body = session.Unknown{Type: strings.Clone(b.Type)}
	}
	return out
}

// links looks at what each record continues. live is the branch as it is healed.
func (x *examiner) links(recs []session.Record, live *session.Session) {
	seen := map[session.Seq]bool{}
	for _, r := range live.Branch {
		seen[r.Seq] = true
	}
	said := 0
	for i, r := range recs {
		if !x.Native() {
			return // put together here
		}
		line := x.lines[r.ID]
		switch {
		case r.ID == "" || i == 0:
		case r.Link == session.Blank:
			x.find(line, "its parentId is blank", "it belongs to no branch")
		case r.Link == session.Absent:
			if _, unknown := r.Body.(session.Unknown); !unknown && said > 0 {
				x.find(line, "it has no parentId", forgets(said))
			}
		case r.Parent == r.ID:
			x.find(line, "it is its own parent", "pi hangs on it")
		case r.Parent != "":
			if at, ok := x.at[r.Parent]; !ok {
				x.find(line, fmt.Sprintf("its parent %q is nowhere in the file", r.Parent), forgets(said))
			} else if at > i {
				cost := "a reader that does not look ahead takes it for a new beginning"
				_, message := recs[at].Body.(session.Message)
				switch {
				case x.circle(recs, i):
					cost = "pi hangs on it: they continue each other"
				case message && seen[r.Seq] && !seen[recs[at].Seq]:
					cost = fmt.Sprintf("the message %q is lost to OpenClaw and goclaw, which do not look ahead; pi shows it, and a healed copy has it", r.Parent)
				}
				x.find(line, fmt.Sprintf("its parent %q comes after it, on line %d", r.Parent, x.lines[r.Parent]), cost)
			}
		}
		if c, ok := r.Body.(session.Compaction); ok && c.FirstKept != "" && c.FirstKept != r.ID {
			if at, ok := x.at[c.FirstKept]; !ok || at > i {
				x.find(line, fmt.Sprintf("it folds up to %q, which is not before it", c.FirstKept), "what should have been kept word for word is not sent")
			}
		}
		if _, ok := r.Body.(session.Message); ok {
			said++
		}
	}
}

// circle reports whether the parents of a record lead back to it.
func (x *examiner) circle(recs []session.Record, i int) bool {
	at, ok := i, true
	for range recs {
		if at, ok = x.at[recs[at].Parent]; !ok || at == i {
			return ok
		}
	}
	return true
}

// forgets says what a broken link costs.
func forgets(messages int) string {
	switch messages {
	case 0:
		return "what came before is not in the file"
	case 1:
		return "a reader that does not heal it forgets the message before"
	}
	return fmt.Sprintf("a reader that does not heal it forgets the %d messages before", messages)
}

// calls looks for calls without a result on the live branch, for the reverse,
// and for what an API would refuse of both.
func (x *examiner) calls(s *session.Session) {
	open, results := map[string]session.Record{}, map[string]bool{}
	var order []string
	for _, r := range s.Branch {
		m, ok := r.Body.(session.Message)
		if !ok {
			continue
		}
		failed := m.Stop == llm.StopError || m.Stop == llm.StopAborted
		for _, c := range m.Calls() {
			if !failed {
				open[c.ID] = r
				order = append(order, c.ID)
			}
			results[c.ID] = true
			if c.Name != "" {
				x.find(x.lines[r.ID], fmt.Sprintf("the call %q is of a tool named %s", c.ID, c.Name), "APIs refuse every request with that name in it; goclaw sends another")
			}
		}
		for _, res := range m.Results() {
			delete(open, res.CallID)
			if !results[res.CallID] {
				x.find(x.lines[r.ID], fmt.Sprintf("a result of %q without its call", res.CallID), "no model would accept it: it is not sent")
			} else if res.IsError {
				x.find(x.lines[r.ID], fmt.Sprintf("the failed result of %q says nothing", res.CallID), "Anthropic refuses every request with it in it; goclaw sends words in its place")
			}
		}
	}
	for _, id := range order {
		if r, ok := open[id]; ok {
			x.find(x.lines[r.ID], fmt.Sprintf("the call %q has no result", id), "the model is told that it was interrupted")
			delete(open, id)
		}
	}
}

func messages(recs []session.Record) (n int) {
	for _, r := range recs {
		if _, ok := r.Body.(session.Message); ok {
			n++
		}
	}
	return n
}

// Repair writes a healed copy of t to w, in native lines that pi, OpenClaw and
// goclaw read alike: a header first, every record of the live branch after
// the one that it names, the others as they were, and the end of the branch
// last. What could not be read is not in it, but for lines that are only too
// long for goclaw: they are in it as they are.
func Repair(ctx context.Context, t *source.Transcript, w io.Writer) error {
	long := map[session.Seq][]longer{} // by the record before
	all, err := source.Replay(t.ID, func(yield func(session.Record, error) bool) {
		for r, err := range t.Raw(ctx, nil) {
			var d *session.Damage
			if errors.As(err, &d) && d.Size > storekit.MaxRecord && !t.Database() {
				l, e := longerOf(t, d.Line)
				if e != nil {
					err = e
				} else if l.good {
					long[d.After] = append(long[d.After], l)
				}
			}
			if !yield(r, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	branch, err := shown(t.ID, all)
	if err != nil {
		return err
	}
	unread := map[string]bool{}
	for _, ls := range long {
		for _, l := range ls {
			unread[l.id] = true
		}
	}
	out := bufio.NewWriter(w)
	seen := map[string]bool{}
	last := ""
	put := func(r session.Record) error {
		line, err := codec.Native.Encode(r)
		if err != nil {
			return err
		}
		seen[r.ID], last = true, r.ID
		if _, err := out.Write(line); err != nil {
			return err
		}
		return out.WriteByte('\n')
	}
	place := map[session.Seq]int{}
	for i, r := range branch {
		place[r.Seq] = i
	}
	next, prev := 0, ""
	for i, r := range all.Log {
		_, header := r.Body.(session.Header)
		at, live := place[r.Seq]
		switch {
		case live: // after what it continues
			for ; next <= at; next++ {
				r := branch[next]
				if r.Link != session.Given || !unread[r.Parent] {
					r = source.Linked(r, prev)
				}
				if r.ID != "" {
					prev = r.ID
				}
				if err := put(r); err != nil {
					return err
				}
			}
		case i > 0 && (header || r.ID != "" && seen[r.ID]):
		default:
			if i == 0 && r.Time.IsZero() {
				r.Time = t.Stat.Time()
			}
			if err := put(r); err != nil {
				return err
			}
		}
		for _, l := range long[r.Seq] {
			if err := l.copy(out); err != nil {
				return err
			}
			last = l.id
		}
	}
	if leaf := all.Leaf; leaf != "" && last != leaf && !unread[last] {
		id := fmt.Sprintf("repair-%08x", crc32.ChecksumIEEE([]byte(leaf)))
		if err := put(session.Record{ID: id, Parent: leaf, Time: all.Updated, Body: session.Custom{Type: "goclaw.repair"}}); err != nil {
			return err
		}
	}
	return out.Flush()
}

// shown is the live branch as it is healed, with the messages that pi shows on
// it beside: where a message comes after what continues it, pi alone finds it.
func shown(id session.ID, all source.Replayed) ([]session.Record, error) {
	strict, err := session.Replay(id, source.Chain(all.Log), session.Strict())
	if err != nil || strict.Leaf != all.Leaf {
		return all.Branch, err
	}
	has, ids := map[session.Seq]bool{}, map[string]bool{}
	for _, r := range all.Branch {
		has[r.Seq], ids[r.ID] = true, true
	}
	before := map[session.Seq][]session.Record{}
	var more []session.Record
	for _, r := range strict.Branch {
		_, message := r.Body.(session.Message)
		switch {
		case has[r.Seq]:
			before[r.Seq], more = more, nil
		case message && !ids[r.ID]:
			more = append(more, r)
		}
	}
	var out []session.Record
	for _, r := range all.Branch {
		out = append(append(out, before[r.Seq]...), r)
	}
	return out, nil
}

// longer is a line of a file that is too long for goclaw.
type longer struct {
	t    *source.Transcript
	line int
	id   string
	good bool // it looks like a record of pi or OpenClaw
}

// longerOf looks at the beginning and the end of a line.
func longerOf(t *source.Transcript, line int) (longer, error) {
	l := longer{t: t, line: line}
	var head bytes.Buffer
	end := byte(0)
	err := l.each(func(part []byte) error {
		if head.Len() < 4<<10 {
			head.Write(part[:min(len(part), 4<<10)])
		}
		if part = bytes.TrimRight(part, " \t\r\n"); len(part) > 0 {
			end = part[len(part)-1]
		}
		return nil
	})
	dec := json.NewDecoder(&head)
	if t, e := dec.Token(); err != nil || e != nil || t != json.Delim('{') {
		return l, err
	}
	for l.id == "" {
		key, err := dec.Token()
		var v any
		if err != nil || dec.Decode(&v) != nil {
			break
		}
		if key == "id" {
			l.id, _ = v.(string)
		}
	}
	l.good = l.id != "" && end == '}'
	return l, nil
}

func (l longer) copy(w *bufio.Writer) error {
	last := byte(0)
	if err := l.each(func(part []byte) error {
		last = part[len(part)-1]
		_, err := w.Write(part)
		return err
	}); err != nil || last == '\n' {
		return err
	}
	return w.WriteByte('\n')
}

// each calls part with the line, piece by piece.
func (l longer) each(part func([]byte) error) error {
	f, err := l.t.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	br := bufio.NewReaderSize(f, 64<<10)
	for n := 1; n <= l.line; {
		p, err := br.ReadSlice('\n')
		if n == l.line && len(p) > 0 {
			if err := part(p); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
			n++
		case errors.Is(err, io.EOF):
			return nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}
