// Package doctor examines the transcripts of other programs and writes repaired
// copies of them.
package doctor

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strings"
	"time"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/internal/inherit/source"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Finding is something that is wrong with a transcript, and what it costs its
// readers.
type Finding struct {
	Path string
	Line int // of the file, or the number of the row; 0: the whole
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

// Examination is what was found out about a transcript.
type Examination struct {
	*source.Transcript
	Records  int
	Messages int // in all branches
	Branch   int // messages on the repaired live branch
	Strict   int // messages that pi would show
	Updated  time.Time
	Findings []Finding
}

// Examine reads a transcript and says what is wrong with it. Nothing is
// changed.
func Examine(ctx context.Context, t *source.Transcript) (Examination, error) {
	x := examiner{Examination: Examination{Transcript: t}, at: map[string]int{}, lines: map[string]place{}}
	if marked(t) {
		x.find(place{line: 1}, "the file begins with a byte order mark", "pi 1.5 refuses the file; a repaired copy has no such mark")
	}
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
	strict, err := session.ReplayStrict(t.ID, source.Chain(recs))
	if err != nil {
		return x.Examination, err
	}
	x.Strict = messages(strict.Branch)
	if lost := x.Branch - x.Strict; lost > 0 && t.Native() && !t.Database() {
		x.find(place{}, "programs that do not repair this show only part of the history", fmt.Sprintf("pi shows %d of %d messages", x.Strict, x.Branch))
	}
	x.calls(live)
	return x.Examination, nil
}

// byteOrderMark is what some editors put before the first line.
var byteOrderMark = []byte("\ufeff")

// marked reports whether the file of t begins with a byte order mark.
func marked(t *source.Transcript) bool {
	if t.Database() {
		return false
	}
	f, err := t.Open()
	if err != nil {
		return false // reading it says why
	}
	defer f.Close()
	mark := make([]byte, len(byteOrderMark))
	_, err = io.ReadFull(f, mark)
	return err == nil && bytes.Equal(mark, byteOrderMark)
}

type examiner struct {
	Examination
	at    map[string]int   // where in the log a record is, by its id
	lines map[string]place // and in which file
	ends  []ending         // of each record, as far as it was asked for
	steps int              // that were walked for it
}

// place is a line of a file, or the number of a row.
type place struct {
	path string // "": the transcript's own
	line int    // 0: the whole
}

func (x *examiner) find(at place, what, cost string) {
	path := cmp.Or(at.path, x.Path)
	if x.Database() { // one of many in it
		path += "#" + string(x.ID)
	}
	x.Findings = append(x.Findings, Finding{path, at.line, what, cost})
}

// read reads everything, and notes what cannot be read.
func (x *examiner) read(ctx context.Context) ([]session.Record, error) {
	var recs []session.Record
	var pos source.Position
	for r, err := range x.Raw(ctx, &pos) {
		var d *session.Damage
		if errors.As(err, &d) {
			at := place{line: d.Line}
			if x.Pieces != nil {
				at.path = d.File
			}
			cost := fmt.Sprintf("%d bytes are lost to every reader", d.Size)
			switch {
			case d.Mended:
				cost = "that character is lost, and shown as \ufffd; the rest of the line is read"
			case d.Size == 0: // a page of a database
				cost = "they are lost to every reader; the rest of the session is read"
			case d.Size > storekit.MaxRecord:
				cost = fmt.Sprintf("goclaw reads no line longer than %d MiB; other programs may, and a repaired copy has it unchanged", storekit.MaxRecord>>20)
			}
			x.find(at, d.Reason, cost)
			continue
		}
		if err != nil {
			return nil, err
		}
		line := place{pos.Path, pos.Line}
		if x.Database() {
			line = place{line: int(r.Seq)}
		}
		if len(recs) == 0 && r.Raw == nil && x.Native() {
			x.find(place{}, "the file has no header", "pi up to 0.73 and OpenClaw up to 2026.7 overwrite it when they open it: all of it would be lost")
		}
		if _, err := native.Check(r.Raw); err != nil {
			x.find(line, "the line has changed since goclaw wrote it: "+err.Error(), "every reader takes it as it is: restore it from a backup if you did not edit it")
		}
		r.ID = strings.Clone(r.ID) // not the line with it
		if r.ID != "" {
			if _, again := x.at[r.ID]; again {
				x.find(line, fmt.Sprintf("the id %q is on line %d already", r.ID, x.lines[r.ID].line), "only one of them is shown: pi shows the second, OpenClaw the first")
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

// outlined returns what is examined of a record, without its text: long sessions
// are held in memory.
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
			// IsError only matters if the result says nothing.
			m.Blocks = append(m.Blocks, llm.ToolResult{CallID: strings.Clone(res.CallID), IsError: res.IsError && llm.Blank(res.Text())})
		}
		out.Body = m
	case session.Compaction:
		out.Body = session.Compaction{FirstKept: strings.Clone(b.FirstKept)}
	case session.BranchSummary:
		out.Body = session.BranchSummary{}
	case session.CustomMessage:
		out.Body = session.CustomMessage{}
	case session.Custom, session.Partial:
		out.Body = session.Custom{}
	case session.Unknown:
		out.Body = session.Unknown{Type: strings.Clone(b.Type)}
	}
	return out
}

// links looks at what each record continues. live is the repaired branch.
func (x *examiner) links(recs []session.Record, live *session.Session) {
	if !x.Native() {
		return // they were linked here
	}
	seen := map[session.Seq]bool{}
	for _, r := range live.Branch {
		seen[r.Seq] = true
	}
	said := 0
	for i, r := range recs {
		line := x.lines[r.ID]
		if r.ID != "" && i > 0 {
			x.link(recs, i, said, seen)
		}
		switch b := r.Body.(type) {
		case session.Compaction:
			if at, ok := x.at[b.FirstKept]; b.FirstKept != "" && b.FirstKept != r.ID && (!ok || at > i) {
				x.find(line, fmt.Sprintf("it keeps records from %q, which does not precede it", b.FirstKept), "the records that it should keep word for word are not sent")
			}
		case session.Message:
			said++
		}
	}
}

// link looks at the parent of recs[i]. said is how many messages come before
// it.
func (x *examiner) link(recs []session.Record, i, said int, seen map[session.Seq]bool) {
	r := recs[i]
	line := x.lines[r.ID]
	at, known := x.at[r.Parent]
	switch {
	case r.Link == session.Blank:
		x.find(line, "its parentId is blank", "it belongs to no branch")
	case r.Link == session.Absent:
		if _, unknown := r.Body.(session.Unknown); !unknown && said > 0 {
			x.find(line, "it has no parentId", forgets(said))
		}
	case r.Parent == r.ID:
		x.find(line, "it is its own parent", "pi hangs on it")
	case r.Parent == "":
	case !known:
		x.find(line, fmt.Sprintf("its parent %q is nowhere in the file", r.Parent), forgets(said))
	case at > i:
		cost := "readers that do not look ahead take it for the first message"
		if _, message := recs[at].Body.(session.Message); x.circle(recs, i) {
			cost = "pi hangs on it: they continue each other"
		} else if message && seen[r.Seq] && !seen[recs[at].Seq] {
			cost = fmt.Sprintf("the message %q is lost to OpenClaw and goclaw, which do not look ahead; pi shows it, and a repaired copy has it", r.Parent)
		}
		x.find(line, fmt.Sprintf("its parent %q comes after it, on line %d", r.Parent, x.lines[r.Parent].line), cost)
	}
}

// circle reports whether the parents of a record lead back to it, or to another
// circle. Whatever it walks through it remembers, so that all records together
// take one walk: in a file whose lines are in reverse, every record is asked
// about.
func (x *examiner) circle(recs []session.Record, i int) bool {
	if x.ends == nil {
		x.ends = make([]ending, len(recs))
	}
	at, ok := i, true
	var walked []int
	for ok && x.ends[at] == unwalked {
		x.ends[at] = walking
		walked = append(walked, at)
		at, ok = x.at[recs[at].Parent]
	}
	x.steps += len(walked)
	end := atRoot
	if ok && x.ends[at] != atRoot {
		end = inCircle
	}
	for _, at := range walked {
		x.ends[at] = end
	}
	return x.ends[i] == inCircle
}

// ending is where the parents of a record lead to.
type ending uint8

const (
	unwalked ending = iota
	walking
	atRoot
	inCircle
)

// forgets says what a broken link costs.
func forgets(messages int) string {
	switch messages {
	case 0:
		return "what came before is not in the file"
	case 1:
		return "readers that do not repair this drop the message before it"
	}
	return fmt.Sprintf("readers that do not repair this drop the %d messages before it", messages)
}

// calls looks on the live branch for calls without a result, results without a
// call, and for calls and results that an API would refuse.
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
				x.find(x.lines[r.ID], fmt.Sprintf("the call %q names the tool %s", c.ID, c.Name), "APIs refuse every request with that name; goclaw sends another one")
			}
		}
		for _, res := range m.Results() {
			delete(open, res.CallID)
			if !results[res.CallID] {
				x.find(x.lines[r.ID], fmt.Sprintf("a result of %q without its call", res.CallID), "no API accepts it, so it is not sent")
			} else if res.IsError {
				x.find(x.lines[r.ID], fmt.Sprintf("the failed result of %q says nothing", res.CallID), "Anthropic refuses every request that holds it; goclaw sends a text instead")
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

// Repair writes a repaired copy of t to w, in native lines that pi, OpenClaw and
// goclaw read alike: a header first, every record of the live branch after
// its parent, the others as they were, and the end of the branch last. Damaged
// lines are left out; lines that are only too long for goclaw are copied as
// they are.
func Repair(ctx context.Context, t *source.Transcript, w io.Writer) error {
	c := &copier{t: t, out: bufio.NewWriter(w), seen: map[string]bool{}, long: map[session.Seq][]longer{}, unread: map[string]bool{}}
	all, err := source.Replay(t.ID, c.records(ctx))
	if err != nil {
		return err
	}
	branch, err := shown(t.ID, all)
	if err != nil {
		return err
	}
	place := map[session.Seq]int{}
	for i, r := range branch {
		place[r.Seq] = i
	}
	if len(all.Log) > 0 && all.Log[0].Time.IsZero() {
		all.Log[0].Time = cmp.Or(all.Created, t.Stat.Time())
	}
	next := 0
	for i, r := range all.Log {
		_, header := r.Body.(session.Header)
		at, live := place[r.Seq]
		switch {
		case live: // after everything that it continues
			for ; next <= at; next++ {
				c.live(branch[next])
			}
		case i > 0 && (header || r.ID != "" && c.seen[r.ID]):
		default:
			c.put(r)
		}
		for _, l := range c.long[r.Seq] {
			c.err = cmp.Or(c.err, l.copy(c.out))
			c.last = l.id
		}
	}
	if leaf := all.Leaf; leaf != "" && c.last != leaf && !c.unread[c.last] {
		id := fmt.Sprintf("repair-%08x", crc32.ChecksumIEEE([]byte(leaf)))
		c.put(session.Record{ID: id, Parent: leaf, Time: all.Updated, Body: session.Custom{Type: "goclaw.repair"}})
	}
	return cmp.Or(c.err, c.out.Flush())
}

// copier writes a repaired copy.
type copier struct {
	t      *source.Transcript
	out    *bufio.Writer
	seen   map[string]bool          // ids that were written
	last   string                   // the latest of them
	prev   string                   // the latest of the live branch
	long   map[session.Seq][]longer // by the record before
	unread map[string]bool          // their ids
	err    error                    // the first one; then nothing more is written
}

// records yields the records of the transcript, and notes the lines that are too
// long.
func (c *copier) records(ctx context.Context) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for r, err := range c.t.Raw(ctx, nil) {
			var d *session.Damage
			if errors.As(err, &d) && d.Size > storekit.MaxRecord && !c.t.Database() {
				l, e := longerOf(c.t, d.Line)
				if e != nil {
					err = e
				} else if l.good {
					c.long[d.After] = append(c.long[d.After], l)
					c.unread[l.id] = true
				}
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// live writes the next record of the live branch. One that continues a line
// that is too long keeps its parent.
func (c *copier) live(r session.Record) {
	if r.Link != session.Given || !c.unread[r.Parent] {
		r = source.Linked(r, c.prev)
	}
	c.prev = cmp.Or(r.ID, c.prev)
	c.put(r)
}

func (c *copier) put(r session.Record) {
	line, err := codec.Native.Encode(r)
	c.seen[r.ID], c.last = true, r.ID
	if c.err = cmp.Or(c.err, err); c.err == nil {
		c.out.Write(bytes.TrimPrefix(line, byteOrderMark)) // Flush returns its errors
		c.out.WriteByte('\n')
	}
}

// shown returns the repaired live branch, and in it the messages that only pi
// shows: those that come after a record that continues them.
func shown(id session.ID, all source.Replayed) ([]session.Record, error) {
	strict, err := session.ReplayStrict(id, source.Chain(all.Log))
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
