package inherit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"goclaw/codec"
	"goclaw/session"
)

// position is how far a file was read: behind the line that begins at Tail and
// whose checksum is Sum. The zero value is the beginning.
type position struct {
	Off  int64       `json:"o,omitempty"`
	Tail int64       `json:"t,omitempty"`
	Sum  uint32      `json:"c,omitempty"`
	Line int         `json:"l,omitempty"`
	Seq  session.Seq `json:"n,omitempty"` // records of the file, a header that we made included
	// Own: the file can be entered here.
	Own bool `json:"own,omitempty"`
}

// open opens the file of t for reading, unpacked.
func (t *Transcript) open() (io.ReadCloser, error) {
	f, err := OpenFile(t.Path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is %s, not a file", t.Path, kindOf(fi.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if !strings.HasSuffix(t.Path, ".zst") {
		// No further than it goes now: the rest of a line that is being
		// written must not be taken for the next one.
		return limited{io.NewSectionReader(f, 0, fi.Size()), f, t}, nil
	}
	z, err := unpack(reader{f, t})
	if err != nil {
		f.Close()
		return nil, err
	}
	return packed{z, f, t}, nil
}

// longLine is the length of a line, and the size of a record, that is large. Of
// the transcripts that have such, one is read at a time.
const longLine = 4 << 20

// lineOf is told what was read of t.
func (t *Transcript) lineOf(p []byte) {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		t.line = int64(len(p) - i - 1)
	} else {
		t.line += int64(len(p))
	}
	if t.line > longLine {
		t.enter()
	}
}

// enter passes the gate, if there is one, and leave gives way.
func (t *Transcript) enter() {
	if t.gate != nil && !t.inside {
		t.gate <- struct{}{}
		t.inside = true
	}
}

func (t *Transcript) leave() {
	if t.inside {
		<-t.gate
		t.inside = false
	}
}

// maxWindow bounds the memory that a packed file can claim.
const maxWindow = 32 << 20

func unpack(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

// counted tells whoever wants to know of what was read.
func (t *Transcript) counted(bytes int) {
	if t.count != nil {
		t.count(bytes)
	}
}

type limited struct {
	*io.SectionReader
	f *os.File
	t *Transcript
}

func (l limited) Read(p []byte) (int, error) {
	n, err := l.SectionReader.Read(p)
	l.t.counted(n)
	l.t.lineOf(p[:n])
	return n, err
}

// reader counts what is read of a file.
type reader struct {
	io.Reader
	t *Transcript
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.t.counted(n)
	return n, err
}

func (l limited) Close() error { return l.f.Close() }

type packed struct {
	*zstd.Decoder
	f *os.File
	t *Transcript
}

func (p packed) Read(b []byte) (int, error) {
	n, err := p.Decoder.Read(b)
	p.t.lineOf(b[:n])
	return n, err
}

func (p packed) Close() error {
	p.Decoder.Close()
	return p.f.Close()
}

// stream returns what reads lines of a form that codec does not know.
func (t *Transcript) stream() codec.Stream {
	switch t.form {
	case formClaude:
		return newClaude(t.side)
	case formCodex:
		return newCodex()
	}
	return nil
}

// lines yields the file of t from a position on. The latest position is left
// in *end, if end is not nil.
func (t *Transcript) lines(ctx context.Context, from position, end *position) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		f, err := t.open()
		if err != nil {
			yield(session.Record{}, err)
			return
		}
		defer f.Close()
		if from.Off > 0 {
			if _, err := f.(io.Seeker).Seek(from.Off, io.SeekStart); err != nil {
				yield(session.Record{}, err)
				return
			}
		}
		t.scan(ctx, f, from, end, yield)
	}
}

func (t *Transcript) scan(ctx context.Context, r io.Reader, from position, end *position, yield func(session.Record, error) bool) {
	o := codec.Options{Form: t.form, Header: t.header(), Offset: from.Off, Line: from.Line, After: from.Seq}
	if s := t.stream(); s != nil {
		o.Form, o.Stream = "", s
	}
	s := codec.NewScanner(t.Path, r, o)
	for s.Next() {
		if ctx.Err() != nil {
			yield(session.Record{}, ctx.Err())
			return
		}
		if d := s.Damage(); d != nil {
			if !yield(session.Record{}, d) {
				return
			}
			continue
		}
		rec := s.Record()
		if strings.IndexByte(rec.ID, 0) >= 0 {
			if !yield(session.Record{}, &session.Damage{File: t.Path, Line: s.Line(), After: rec.Seq - 1, Size: int64(len(rec.Raw)), Reason: "an id with a NUL"}) {
				return
			}
			continue
		}
		if end != nil && rec.Raw != nil {
			*end = position{Off: s.End(), Tail: s.Offset(), Line: s.Line(), Seq: rec.Seq, Own: s.Own() && t.form == codec.FormNative}
			if end.Own {
				end.Sum = crc32.ChecksumIEEE(rec.Raw)
			}
		}
		if len(rec.Raw) > longLine { // what reading it took is given back: a store needs as much again
			debug.FreeOSMemory()
		}
		if !yield(rec, nil) {
			return
		}
	}
	if err := s.Err(); err != nil {
		yield(session.Record{}, err)
	}
}

// enters reports whether the file of t still holds, at p, what it held when p
// was taken: then only what is behind it is new.
func (t *Transcript) enters(p position) bool {
	if !p.Own || p.Off > t.stat.Size || t.old != nil || strings.HasSuffix(t.Path, ".zst") {
		return false
	}
	f, err := OpenFile(t.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	line := make([]byte, p.Off-p.Tail)
	if _, err := f.ReadAt(line, p.Tail); err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return crc32.ChecksumIEEE(bytes.TrimSuffix(line, []byte("\n"))) == p.Sum
}

// known are the fields of a header that Header holds.
var known = map[string]bool{
	"type": true, "version": true, "id": true, "timestamp": true, "cwd": true, "parentSession": true, "key": true, "origin": true,
}

// opened returns the first record of t's log: its own header with our id, key
// and origin in it, and whatever else it said.
func (t *Transcript) opened(r session.Record, id session.ID) session.Record {
	h, ok := r.Body.(session.Header)
	if !ok {
		h = *t.header()
	}
	h.ID, h.Key, h.Origin = id, t.Key, t.origin()
	if h.CWD == "" {
		h.CWD = t.cwd
	}
	h.Version = max(h.Version, session.Version)
	if r.Time.IsZero() {
		r.Time = t.stat.time()
	}
	out := session.Record{Seq: 1, Time: r.Time, Body: h}
	var fields map[string]json.RawMessage
	if json.Unmarshal(r.Raw, &fields) != nil {
		return out
	}
	var more []string
	for k := range fields {
		if !known[k] {
			more = append(more, k)
		}
	}
	if len(more) == 0 {
		return out
	}
	slices.Sort(more)
	line, err := codec.Native.Encode(out)
	if err != nil {
		return out
	}
	line = line[:len(line)-1]
	for _, k := range more {
		name, _ := json.Marshal(k)
		line = append(append(append(append(line, ','), name...), ':'), fields[k]...)
	}
	if recs, err := codec.Native.Decode(append(line, '}')); err == nil && len(recs) == 1 {
		recs[0].Seq = 1
		return recs[0]
	}
	return out
}

// sniffed is what the first lines of a file tell.
type sniffed struct {
	Program string     `json:"p,omitempty"`
	Form    codec.Form `json:"f,omitempty"`
	ID      string     `json:"i,omitempty"`
	Key     string     `json:"k,omitempty"`
	CWD     string     `json:"d,omitempty"`
	Version int        `json:"v,omitempty"`
	Side    bool       `json:"side,omitempty"` // a subagent's own file
	Empty   bool       `json:"e,omitempty"`
	Zeros   bool       `json:"z,omitempty"` // it holds nothing else
	Bare    bool       `json:"b,omitempty"` // it holds no conversation, only what is said of others

	maybe string // the id that a line gives which could be the first one of Codex
}

// The forms that codec does not know.
const (
	formClaude codec.Form = "claude-code"
	formCodex  codec.Form = "codex"
)

// maxSniff is how many lines are looked at, blank ones aside.
const maxSniff = 100

// probe is what the lines of all programs are told apart by.
type probe struct {
	Type        string          `json:"type"`
	ID          any             `json:"id"`
	Key         string          `json:"key"`
	CWD         string          `json:"cwd"`
	Version     any             `json:"version"`
	Timestamp   any             `json:"timestamp"`
	Origin      json.RawMessage `json:"origin"`
	Payload     json.RawMessage `json:"payload"`
	UUID        string          `json:"uuid"`
	ParentUUID  *string         `json:"parentUuid"`
	SessionID   string          `json:"sessionId"`
	LeafUUID    string          `json:"leafUuid"`
	Sidechain   bool            `json:"isSidechain"`
	MessageID   string          `json:"messageId"`
	RecordType  string          `json:"record_type"`
	Instruction json.RawMessage `json:"instructions"`
	Role        string          `json:"role"`
}

// sniff reads as much of r as tells which program wrote it.
func sniff(r io.Reader) (sniffed, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var out sniffed
	out.Empty = true
	for n := 0; n < maxSniff; {
		line, err := readLine(br)
		if n == 0 && errors.Is(err, io.EOF) && len(line) > 0 && len(bytes.Trim(line, "\x00")) == 0 {
			return sniffed{Zeros: true}, nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			n++
			out.Empty = false
			done := out.line(line)
			if len(line) > longLine {
				line = nil
				debug.FreeOSMemory()
			}
			if done {
				return out, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// readLine returns a line, cut off where no line of ours can end.
func readLine(br *bufio.Reader) (line []byte, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(line) <= session.MaxRecord {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// line looks at one line and reports whether everything is known.
func (s *sniffed) line(line []byte) bool {
	var p probe
	if json.Unmarshal(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("\xef\xbb\xbf")), &p) != nil && p.Type == "" {
		return false
	}
	switch {
	case s.Form == formClaude, s.Form == "" && isClaude(p):
		if s.Form == "" {
			s.Form, s.Program, s.Bare = formClaude, ClaudeCode, true
		}
		if p.SessionID != "" && s.ID == "" {
			s.ID = p.SessionID
		}
		if p.UUID != "" { // a subagent may stand before the conversation
			s.Side = p.Sidechain && (s.Bare || s.Side)
			s.Bare = false
		}
		s.CWD = or(s.CWD, p.CWD)
		return s.ID != "" && s.CWD != "" && !s.Bare && !s.Side
	case s.Form == "" && (isCodex(p) || s.maybe != "" && isBareItem(p)):
		s.Form, s.Program = formCodex, Codex
		var meta struct {
			ID     string          `json:"id"`
			CWD    string          `json:"cwd"`
			Source json.RawMessage `json:"source"`
			Thread string          `json:"thread_source"`
		}
		if json.Unmarshal(p.Payload, &meta) == nil {
			s.ID, s.CWD = meta.ID, meta.CWD
			s.Side = meta.Thread == "subagent" || bytes.Contains(meta.Source, []byte(`"subagent"`))
		} else if id, ok := p.ID.(string); ok && p.Type == "" {
			s.ID = id
		} else {
			s.ID = s.maybe
		}
		return true
	case s.Form == "" && p.Type == "" && p.Timestamp != nil:
		s.maybe, _ = p.ID.(string)
		return false
	}
	s.maybe = ""
	f, err := codec.Detect(bytes.NewReader(line))
	if err != nil || f == "" {
		return false
	}
	s.Form = f
	if f == codec.FormClaw0 || f == codec.FormClaw0Old {
		s.Program = Claw0
	}
	if p.Type == "session" {
		if id, ok := p.ID.(string); ok {
			s.ID = id
		}
		s.Key, s.CWD = p.Key, p.CWD
		if v, ok := p.Version.(float64); ok {
			s.Version = int(v)
		}
		if f == codec.FormNative && (len(p.Origin) > 0 || p.Key != "") {
			s.Program = Goclaw
		}
	}
	return true
}

func isClaude(p probe) bool {
	switch p.Type {
	case "user", "assistant", "system", "progress", "attachment":
		return p.UUID != "" && (p.SessionID != "" || p.ParentUUID != nil)
	case "summary":
		return p.LeafUUID != ""
	case "file-history-snapshot":
		return p.MessageID != ""
	case "queue-operation", "custom-title", "ai-title", "permission-mode", "last-prompt", "agent-name", "tag", "mode":
		return p.SessionID != ""
	}
	return false
}

// isBareItem reports whether p is what stood on a line of Codex before lines
// had a type of their own.
func isBareItem(p probe) bool {
	switch p.Type {
	case "message":
		return p.Role != ""
	case "reasoning", "function_call", "local_shell_call":
		return true
	}
	return p.RecordType == "state"
}

func isCodex(p probe) bool {
	switch p.Type {
	case "session_meta", "response_item", "event_msg", "turn_context", "compacted":
		return len(p.Payload) > 0
	case "": // before lines had a type
		_, id := p.ID.(string)
		return id && p.Timestamp != nil && p.Instruction != nil || p.RecordType == "state"
	}
	return false
}
