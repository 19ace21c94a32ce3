package inherit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"goclaw/codec"
	"goclaw/llm"
	"goclaw/session"
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
	s := Problem{Path: f.Path, Line: f.Line, What: f.What}.String()
	if f.Cost != "" {
		s += ": " + f.Cost
	}
	return s
}

// Examination is what is to be said of a transcript.
type Examination struct {
	*Transcript
	Records  int
	Messages int // in all branches
	Branch   int // messages on the live branch, as it is healed
	Strict   int // messages that pi would show
	Findings []Finding
}

// Examine reads a transcript and says what is wrong with it. Nothing is
// changed.
func Examine(ctx context.Context, t *Transcript) (Examination, error) {
	x := examiner{Examination: Examination{Transcript: t}, at: map[string]int{}, lines: map[string]int{}}
	recs, err := x.read(ctx)
	if err != nil {
		return x.Examination, err
	}
	x.links(recs)
	said := x.Findings
	x.Findings = nil
	if err := x.branch(recs); err != nil {
		return x.Examination, err
	}
	calls := x.Findings
	x.Findings = said
	strict, err := session.Replay(t.ID, chain(recs), session.Strict())
	if err != nil {
		return x.Examination, err
	}
	x.Strict = messages(strict.Branch)
	if lost := x.Branch - x.Strict; lost > 0 && t.form == codec.FormNative && t.old == nil {
		x.find(0, "the history is cut for a program that does not heal it", fmt.Sprintf("pi shows %d of %d messages", x.Strict, x.Branch))
	}
	x.Findings = append(x.Findings, calls...)
	return x.Examination, nil
}

// branch looks at the live branch.
func (x *examiner) branch(recs []session.Record) error {
	s, err := session.Replay(x.ID, chain(recs))
	if err != nil {
		return err
	}
	x.Branch = messages(s.Branch)
	x.calls(s)
	return nil
}

type examiner struct {
	Examination
	at    map[string]int // where in the log a record is, by its id
	lines map[string]int // and on which line
}

func (x *examiner) find(line int, what, cost string) {
	x.Findings = append(x.Findings, Finding{x.Path, line, what, cost})
}

// read reads everything, and notes what cannot be read.
func (x *examiner) read(ctx context.Context) ([]session.Record, error) {
	var recs []session.Record
	var pos position
	src := x.Transcript.read(ctx)
	if x.old == nil {
		src = x.Transcript.lines(ctx, position{}, &pos)
	}
	for r, err := range src {
		var d *session.Damage
		if errors.As(err, &d) {
			x.find(d.Line, d.Reason, fmt.Sprintf("%d bytes are lost to every reader", d.Size))
			continue
		}
		if err != nil {
			return nil, err
		}
		line := pos.Line
		if x.old != nil {
			line = int(r.Seq)
		}
		if len(recs) == 0 && r.Raw == nil && x.form == codec.FormNative {
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
			m.Blocks = append(m.Blocks, llm.ToolCall{ID: strings.Clone(c.ID)})
		}
		for _, res := range b.Results() {
			m.Blocks = append(m.Blocks, llm.ToolResult{CallID: strings.Clone(res.CallID)})
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

// links looks at what each record continues.
func (x *examiner) links(recs []session.Record) {
	said := 0
	for i, r := range recs {
		if x.form != codec.FormNative {
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
				x.find(line, fmt.Sprintf("its parent %q comes after it, on line %d", r.Parent, x.lines[r.Parent]), "pi may hang on it")
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

// calls looks for calls without a result on the live branch, and the reverse.
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
		}
		for _, res := range m.Results() {
			delete(open, res.CallID)
			if !results[res.CallID] {
				x.find(x.lines[r.ID], fmt.Sprintf("a result of %q without its call", res.CallID), "no model would accept it: it is not sent")
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
// goclaw read alike: a header first, every record of the live branch naming
// the one before it, the others as they were, and the end of the branch last.
// What could not be read is not in it.
func Repair(ctx context.Context, t *Transcript, w io.Writer) error {
	im := &importer{}
	all, err := im.replay(t.ID, t.read(ctx))
	if err != nil {
		return err
	}
	parent := map[session.Seq]string{}
	prev := ""
	for _, r := range all.s.Branch {
		parent[r.Seq] = prev
		if r.ID != "" {
			prev = r.ID
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
		last = r.ID
		if _, err := out.Write(line); err != nil {
			return err
		}
		return out.WriteByte('\n')
	}
	for i, r := range all.recs {
		_, header := r.Body.(session.Header)
		up, live := parent[r.Seq]
		switch {
		case i == 0 && r.Time.IsZero():
			r.Time = t.stat.time()
		case i > 0 && (header || r.ID != "" && seen[r.ID] && !live):
			continue
		case live:
			r = linked(r, up)
		}
		seen[r.ID] = true
		if err := put(r); err != nil {
			return err
		}
	}
	if leaf := all.s.Leaf; leaf != "" && last != leaf {
		id := fmt.Sprintf("repair-%08x", crc32.ChecksumIEEE([]byte(leaf)))
		if err := put(session.Record{ID: id, Parent: leaf, Time: all.s.Updated, Body: session.Custom{Type: "goclaw.repair"}}); err != nil {
			return err
		}
	}
	return out.Flush()
}
