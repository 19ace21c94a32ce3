package source

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
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Position is how far a file was read: after the line that begins at Tail and
// whose checksum is Sum. The zero value is the beginning.
type Position struct {
	Off  int64       `json:"o,omitempty"`
	Tail int64       `json:"t,omitempty"`
	Sum  uint32      `json:"c,omitempty"`
	Line int         `json:"l,omitempty"`
	Seq  session.Seq `json:"n,omitempty"` // records of the file, a header that we made included
	// Own: the file can be entered here.
	Own bool `json:"own,omitempty"`
	// Path is the file, where there may be several.
	Path string `json:"-"`
}

// Open opens the file of t for reading, unpacked.
func (t *Transcript) Open() (io.ReadCloser, error) { return t.open(t.Path) }

// open opens one of the files that t is read from.
func (t *Transcript) open(path string) (io.ReadCloser, error) {
	f, err := wholefile.Open(path)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is %s, not a file", path, wholefile.KindOf(fi.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	if !strings.HasSuffix(path, ".zst") {
		// No further than it goes now: the rest of a line that is being
		// written must not be taken for the next one.
		return limited{io.NewSectionReader(f, 0, fi.Size()), f, t}, nil
	}
	z, err := Unpack(reader{f, t})
	if err != nil {
		f.Close()
		return nil, err
	}
	return packed{z, f, t}, nil
}

// LongLine is the length of a line, and the size of a record, that is large. Of
// the transcripts that have such, one is read at a time.
const LongLine = 4 << 20

// lineOf counts the bytes of the line that is being read.
func (t *Transcript) lineOf(p []byte) {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		t.pending = int64(len(p) - i - 1)
	} else {
		t.pending += int64(len(p))
	}
	if t.pending > LongLine {
		t.Enter()
	}
}

// maxWindow bounds the memory that a packed file can claim.
const maxWindow = 32 << 20

// Unpack unpacks what was packed by zstd, in little memory.
func Unpack(r io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
}

type limited struct {
	*io.SectionReader
	f *os.File
	t *Transcript
}

func (l limited) Read(p []byte) (int, error) {
	n, err := l.SectionReader.Read(p)
	l.t.Counted(n)
	l.t.lineOf(p[:n])
	return n, err
}

// reader counts what is read of a file.
type reader struct {
	io.Reader
	t *Transcript
}

// Counting returns what reads r and counts it for t.
func (t *Transcript) Counting(r io.Reader) io.Reader { return reader{r, t} }

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.t.Counted(n)
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

// Lines yields the file of t from a Position on. The latest Position is left
// in *end, if end is not nil.
func (t *Transcript) Lines(ctx context.Context, from Position, end *Position) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		if t.Pieces != nil {
			t.pieces(ctx, end, yield)
			return
		}
		f, err := t.Open()
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
		t.Scan(ctx, f, from, end, yield)
	}
}

// pieces yields the lines of all pieces.
func (t *Transcript) pieces(ctx context.Context, end *Position, yield func(session.Record, error) bool) {
	o := codec.Options{Header: t.Header(), Stream: t.Stream(), Mend: true}
	lines := map[string]int{} // that were read of each file
	for _, p := range t.Pieces {
		if p.Enter != nil {
			p.Enter(o.Stream)
		}
		o.Offset, o.Line = p.From, lines[p.Path]
		if !t.piece(ctx, p, &o, end, yield) {
			return
		}
		lines[p.Path] = o.Line
	}
}

// piece yields the lines of one of them, and leaves in o where the next one
// begins.
func (t *Transcript) piece(ctx context.Context, p Piece, o *codec.Options, end *Position, yield func(session.Record, error) bool) bool {
	f, err := t.open(p.Path)
	if err == nil {
		defer f.Close()
		if s, ok := f.(io.Seeker); ok {
			_, err = s.Seek(p.From, io.SeekStart)
		} else if _, err = io.CopyN(io.Discard, f, p.From); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if err != nil {
		yield(session.Record{}, err)
		return false
	}
	r := io.Reader(f)
	if p.To > 0 {
		r = io.LimitReader(f, p.To-p.From)
	}
	s := codec.NewScanner(p.Path, r, *o)
	more := t.scan(ctx, s, p.Path, end, func(r session.Record, err error) bool {
		o.After = max(o.After, r.Seq)
		return yield(r, err)
	})
	o.Line = s.Line()
	return more
}

// Scan yields the lines of r, which is t from a position on.
func (t *Transcript) Scan(ctx context.Context, r io.Reader, from Position, end *Position, yield func(session.Record, error) bool) {
	o := codec.Options{Mend: true, Form: t.Form, Header: t.Header(), Offset: from.Off, Line: from.Line, After: from.Seq}
	if t.Stream != nil {
		o.Form, o.Stream = "", t.Stream()
	}
	t.scan(ctx, codec.NewScanner(t.Path, r, o), t.Path, end, yield)
}

// scan yields what s reads of the file at path. It is false once yield, or an
// error, has ended it.
func (t *Transcript) scan(ctx context.Context, s *codec.Scanner, path string, end *Position, yield func(session.Record, error) bool) bool {
	for s.Next() {
		if ctx.Err() != nil {
			yield(session.Record{}, ctx.Err())
			return false
		}
		if d := s.Damage(); d != nil {
			if !yield(session.Record{}, d) {
				return false
			}
			continue
		}
		rec := s.Record()
		if strings.IndexByte(rec.ID, 0) >= 0 {
			if !yield(session.Record{}, &session.Damage{File: path, Line: s.Line(), After: rec.Seq - 1, Size: int64(len(rec.Raw)), Reason: "an id with a NUL"}) {
				return false
			}
			continue
		}
		if end != nil && rec.Raw != nil {
			*end = Position{Path: path, Off: s.End(), Tail: s.Offset(), Line: s.Line(), Seq: rec.Seq, Own: s.WholeLine() && t.Native()}
			if end.Own {
				end.Sum = crc32.ChecksumIEEE(rec.Raw)
			}
		}
		if len(rec.Raw) > LongLine { // what reading it took is given back: a store needs as much again
			debug.FreeOSMemory()
		}
		if !yield(rec, nil) {
			return false
		}
	}
	if err := s.Err(); err != nil {
		yield(session.Record{}, err)
		return false
	}
	return true
}

// Enters reports whether the file of t still holds, at p, what it held when p
// was taken: then only what follows is new.
func (t *Transcript) Enters(p Position) bool {
	if !p.Own || p.Off > t.Stat.Size || t.Read != nil || strings.HasSuffix(t.Path, ".zst") {
		return false
	}
	f, err := wholefile.Open(t.Path)
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

// Opened returns the first record of t's log: its own header with our id, key
// and origin in it, and whatever else it said.
func (t *Transcript) Opened(r session.Record, id session.ID) session.Record {
	h, ok := r.Body.(session.Header)
	if !ok {
		h = *t.Header()
	}
	h.ID, h.Key, h.Origin = id, t.Key, t.Origin()
	if h.CWD == "" {
		h.CWD = t.CWD
	}
	h.Version = max(h.Version, session.Version)
	if r.Time.IsZero() {
		r.Time = t.Stat.Time()
	}
	out := session.Record{Seq: 1, Time: r.Time, Body: h}
	var fields map[string]json.RawMessage
	bare, _ := native.Unseal(r.Raw)
	if json.Unmarshal(bare, &fields) != nil {
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
	line, err := native.Bare(out)
	if err != nil {
		return out
	}
	line = line[:len(line)-1]
	for _, k := range more {
		name, _ := json.Marshal(k)
		line = append(append(append(append(line, ','), name...), ':'), fields[k]...)
	}
	if recs, err := codec.Native.Decode(native.Seal(append(line, '}'))); err == nil && len(recs) == 1 {
		recs[0].Seq = 1
		return recs[0]
	}
	return out
}

// maxSniff is how many lines are looked at, blank ones aside.
const maxSniff = 100

// Sniff reads as much of r as tells which of the sources wrote it.
func Sniff(r io.Reader, sources []Source) (Sniffed, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	out := Sniffed{Empty: true}
	var of Source
	for n := 0; n < maxSniff; {
		line, err := readLine(br)
		if n == 0 && errors.Is(err, io.EOF) && len(line) > 0 && len(bytes.Trim(line, "\x00")) == 0 {
			return Sniffed{Zeros: true}, nil
		}
		if n == 0 && errors.Is(err, io.EOF) && bytes.HasPrefix(line, []byte("{")) {
			out.Begun = !json.Valid(line)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			n++
			out.Empty = false
			if n == 1 {
				out.Looks = looks(line)
			}
			done := false
			if of, done = sniffLine(line, of, sources, &out); of != nil {
				out.Looks = ""
			}
			if len(line) > LongLine {
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

// maxFields is how many fields of a line are named.
const maxFields = 5

// looks says what a line looks like that may be no program's.
func looks(line []byte) string {
	line = bytes.TrimSpace(line)
	if len(line) > LongLine {
		return "very long lines"
	}
	if name := foreign(line); name != "" {
		return "it looks like " + name + "'s, which goclaw does not read"
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	t, err := dec.Token()
	switch {
	case err != nil && utf8.Valid(line):
		return "text"
	case err != nil:
		return "binary data"
	case t != json.Delim('{'):
		return "JSON, but not an object on each line"
	}
	var names []string
	for dec.More() && len(names) < maxFields {
		name, err := dec.Token()
		var skip json.RawMessage
		if err != nil || dec.Decode(&skip) != nil {
			break
		}
		names = append(names, fmt.Sprintf("%.40s", name))
	}
	if len(names) == 0 {
		return "JSON, but not an object on each line"
	}
	return "JSON lines with the fields " + strings.Join(names, ", ")
}

// foreign names a program whose lines are like those of one that is known, but
// mean something else.
func foreign(raw []byte) string {
	l, ok := parseLine(raw)
	if !ok {
		return ""
	}
	var m struct {
		Parts json.RawMessage `json:"parts"`
	}
	_ = json.Unmarshal(l.Message, &m) // what has no message has none
	if l.UUID != "" && l.SessionID != "" && (m.Parts != nil || l.System != nil) {
		return "Qwen Code"
	}
	return ""
}

// sniffLine shows a line to the source whose file it is or, as long as that is
// not known, to all of them.
func sniffLine(raw []byte, of Source, sources []Source, s *Sniffed) (Source, bool) {
	l, ok := parseLine(raw)
	if !ok {
		return of, false
	}
	if of == nil && foreign(raw) != "" {
		return nil, true
	}
	if of != nil {
		_, done := of.Sniff(l, s)
		return of, done
	}
	for _, src := range sources {
		if mine, done := src.Sniff(l, s); mine {
			return src, done
		}
	}
	s.Strange = s.Strange || l.Type != "" && len(l.ParentID) == 0
	return nil, false
}

// readLine returns a line, cut off where no line of ours can end.
func readLine(br *bufio.Reader) (line []byte, err error) {
	for {
		part, err := br.ReadSlice('\n')
		if len(line) <= storekit.MaxRecord {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
