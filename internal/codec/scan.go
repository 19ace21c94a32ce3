package codec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"goclaw/internal/codec/claw0"
	"goclaw/internal/codec/native"
	"goclaw/internal/codec/piv1"
	"goclaw/internal/rawjson"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Stream reads the lines of one file, in order.
//
// Line appends to out the records that are complete with the n'th line, the
// first being 1; it may keep line. Not every line completes one. An error
// means that the line cannot be read; the next one can. End appends the records
// that wait for more lines.
type Stream interface {
	Line(n int, line []byte, out []session.Record) ([]session.Record, error)
	End(out []session.Record) []session.Record
}

// Options say how to read a file. The zero value detects the form.
type Options struct {
	Form   Form            // "": detected from the lines
	Stream Stream          // reads the lines, whatever Form says
	Header *session.Header // comes first in a file that has no header

	// Mend reads lines that are JSON but for bytes that are no UTF-8, as programs
	// in JavaScript do: half a character costs that character, which is a Damage,
	// and not the line. A byte order mark before the first line is left out if
	// Stream reads it.
	Mend bool

	// Each is called with each line before it is read, unless it is blank or too
	// long.
	Each func(n int, line []byte)

	// Where the reader begins if not at the beginning of its file: the bytes,
	// lines and records before it, and Leaf, the end of the branch so far. A
	// file can be entered before or after a record for which WholeLine is true;
	// elsewhere, lines that belong together would be parted.
	Offset int64
	Line   int
	After  session.Seq
	Leaf   string
}

// Scanner reads a file record by record. It holds no more than one line in
// memory, apart from what a form must hold back.
type Scanner struct {
	name   string
	r      *bufio.Reader
	o      Options
	stream Stream
	native *nativeStream

	queue   []session.Record
	at      int
	rec     session.Record
	damage  *session.Damage
	err     error
	seq     session.Seq
	line    int
	offset  int64
	end     int64
	unended bool // the last line has no line end
	done    bool
	begun   bool

	whole, lastWhole bool // see WholeLine: rec, and the last one in the queue
}

// NewScanner returns a scanner of r. name is the file's name in Damage.
func NewScanner(name string, r io.Reader, o Options) *Scanner {
	s := &Scanner{name: name, r: bufio.NewReaderSize(r, 64<<10), o: o, line: o.Line, offset: o.Offset, end: o.Offset, seq: o.After, begun: o.After > 0}
	s.native = &nativeStream{}
	if o.After > 0 {
		s.native.version = session.Version
	}
	switch {
	case o.Stream != nil:
		s.stream = o.Stream
	case o.Form == FormNative:
		s.stream = s.native
	case o.Form == FormClaw0, o.Form == FormClaw0Old:
		s.stream = enterClaw0(o)
	}
	return s
}

// Next advances to the next record or damage and reports whether there is one.
// Blank lines are neither.
func (s *Scanner) Next() bool {
	s.damage, s.rec, s.whole = nil, session.Record{}, false
	for s.at == len(s.queue) {
		if s.err != nil {
			return false
		}
		if s.done {
			return s.header(time.Time{})
		}
		s.queue, s.at = s.queue[:0], 0
		if s.step(); s.damage != nil {
			return true
		}
	}
	if _, ok := s.queue[s.at].Body.(session.Header); !ok && s.header(s.queue[s.at].Time) {
		return true
	}
	s.rec = s.queue[s.at]
	s.queue[s.at] = session.Record{}
	s.at++
	s.begun = true
	s.seq++
	s.rec.Seq = s.seq
	s.whole = s.lastWhole && s.at == len(s.queue)
	return true
}

// enterClaw0 begins where o says. After the header alone comes a root.
func enterClaw0(o Options) *claw0.Stream { return claw0.NewStream(o.Leaf, o.After > 1) }

// header advances to o.Header if the file has no header and it is due.
func (s *Scanner) header(t time.Time) bool {
	if s.begun || s.o.Header == nil {
		return false
	}
	s.begun = true
	s.seq++
	s.rec = session.Record{Seq: s.seq, Time: t, Body: *s.o.Header}
	return true
}

// Record returns the record that Next found; its Seq is 1 for the first of
// the file.
func (s *Scanner) Record() session.Record { return s.rec }

// Damage returns the damage that Next found, or nil if it found a record.
func (s *Scanner) Damage() *session.Damage { return s.damage }

// Err returns the error that ended the reading, unless that was the end of
// the file.
func (s *Scanner) Err() error { return s.err }

// Offset and End are where the line that completed the record begins and ends,
// its line end included; Line is its number.
func (s *Scanner) Offset() int64 { return s.offset }
func (s *Scanner) End() int64    { return s.end }
func (s *Scanner) Line() int     { return s.line }

// WholeLine reports whether the record is exactly its line, as goclaw, pi and OpenClaw
// write it. If not, it was also made of lines before it, or was upgraded by
// counting them.
func (s *Scanner) WholeLine() bool { return s.whole }

// Unended reports whether the last line read has no line end. It must be ended
// before anything else is written.
func (s *Scanner) Unended() bool { return s.unended }

// Form returns the form of the lines, "" as long as it is not known.
func (s *Scanner) Form() Form {
	switch s.stream.(type) {
	case *nativeStream:
		return FormNative
	case *claw0.Stream:
		if s.o.Form == "" {
			return FormClaw0
		}
	}
	return s.o.Form
}

// Version returns the version of a native log as it is in the file: records
// of versions 1 and 2 come out as version 3. It is 0 as long as it is not known.
func (s *Scanner) Version() int { return s.native.version }

// step reads one line into the queue, or finds damage.
func (s *Scanner) step() {
	line, size, err := s.readLine()
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = fmt.Errorf("%s: after line %d: %w", s.name, s.line, err)
		return
	}
	if size == 0 && err != nil {
		s.done, s.lastWhole = true, false
		if s.stream != nil {
			s.queue = s.stream.End(s.queue)
		}
		return
	}
	s.line++
	s.offset = s.end
	s.end += size
	s.unended = err != nil
	if line == nil {
		s.lost(size, fmt.Sprintf("a line of %d bytes, the limit is %d", size, storekit.MaxRecord))
		return
	}
	if len(native.Trim(line)) == 0 {
		return
	}
	if s.o.Each != nil {
		s.o.Each(s.line, line)
	}
	var mended *session.Damage
	if s.o.Mend {
		line, mended = s.mend(line)
	}
	stream := s.stream
	if stream == nil {
		if stream, err = s.decide(line); err == nil && stream == nil {
			stream = s.native
		}
	} else {
		err = nil
	}
	if err == nil {
		s.queue, err = stream.Line(s.line, line, s.queue)
		switch st := stream.(type) {
		case *nativeStream:
			s.lastWhole = st.version == 0 || st.version >= session.Version
		case *claw0.Stream:
			s.lastWhole = st.WholeLine()
		default:
			s.lastWhole = false
		}
	}
	if err != nil {
		reason := strings.TrimPrefix(err.Error(), "codec: ")
		if s.unended {
			reason = "the last line is incomplete: " + reason
		}
		s.lost(size, reason)
		s.damage.Unfinished = s.unended
	} else if mended != nil {
		s.damage = mended
	}
}

// mend returns line as text, and what is lost of it. The last line of a file that
// has no end may be cut in the middle of a character that is still to come.
func (s *Scanner) mend(line []byte) ([]byte, *session.Damage) {
	if s.line == 1 && s.o.Stream != nil {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if s.unended || utf8.Valid(line) {
		return line, nil
	}
	bad, at := 0, -1
	for i := 0; i < len(line); {
		r, n := utf8.DecodeRune(line[i:])
		if r == utf8.RuneError && n == 1 {
			if bad++; at < 0 {
				at = i
			}
		}
		i += n
	}
	return bytes.ToValidUTF8(line, []byte("\ufffd")), &session.Damage{File: s.name, Line: s.line, After: s.seq, Size: int64(bad),
		Reason: fmt.Sprintf("not text from byte %d on: part of a character", at), Mended: true}
}

func (s *Scanner) lost(size int64, reason string) {
	s.damage = &session.Damage{File: s.name, Line: s.line, After: s.seq, Size: size, Reason: reason}
}

// decide sets the stream if the line shows the form.
func (s *Scanner) decide(line []byte) (Stream, error) {
	f, err := formOf(line)
	switch f {
	case FormNative:
		s.stream = s.native
	case FormClaw0, FormClaw0Old:
		s.stream, s.o.Form = enterClaw0(s.o), f
	}
	return s.stream, err
}

// linePart is the size of the parts that a long line is gathered in.
const linePart = 1 << 20

// readLine returns the next line without its '\n', in new memory, and
// how many bytes it took from the reader. The line is nil if it is too long.
// The error is io.EOF if there was no '\n'. A long line is gathered in parts,
// so that its memory is never more than twice its size.
func (s *Scanner) readLine() (line []byte, size int64, err error) {
	var full [][]byte
	var long []byte // the last part
	held := 0
	tooLong := false
	for {
		part, err := s.r.ReadSlice('\n')
		size += int64(len(part))
		if err == nil {
			part = part[:len(part)-1]
		}
		if held += len(part); held > storekit.MaxRecord {
			tooLong, full, long = true, nil, nil
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if tooLong {
				continue
			}
			if len(long)+len(part) > linePart {
				full = append(full, long)
				long = make([]byte, 0, linePart)
			}
			long = append(long, part...)
			continue
		case tooLong:
			return nil, size, err
		}
		line = make([]byte, 0, held)
		for i, p := range full {
			line = append(line, p...)
			full[i] = nil
		}
		return append(append(line, long...), part...), size, err
	}
}

// Read yields the records of r, numbered from 1, and a *session.Damage for
// each line that cannot be read. name is the file's name. Any other error
// ends the reading.
func Read(name string, r io.Reader, o Options) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		s := NewScanner(name, r, o)
		for s.Next() {
			var err error
			if d := s.Damage(); d != nil {
				err = d
			}
			if !yield(s.Record(), err) {
				return
			}
		}
		if s.Err() != nil {
			yield(session.Record{}, s.Err())
		}
	}
}

// Detect returns the form of the lines of r. It reads up to the first line that
// shows it. The form is "" if none of the first hundred does: the file is empty,
// or from an unknown program.
func Detect(r io.Reader) (Form, error) {
	s := NewScanner("", r, Options{})
	for range 100 {
		line, size, err := s.readLine()
		if err != nil && !errors.Is(err, io.EOF) || size == 0 {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return "", err
		}
		if f, _ := formOf(line); f != "" {
			return f, nil
		}
	}
	return "", nil
}

// formOf returns the form that a line shows, or "".
func formOf(line []byte) (Form, error) {
	d := native.Borrow()
	defer d.Release()
	if err := d.Line(line, false); err != nil {
		return "", err
	}
	if d.Kind(0) != rawjson.Object {
		return "", nil
	}
	get := func(key string) rawjson.Kind { return d.Kind(d.Get(0, key)) }
	switch typ := d.String(d.Get(0, "type")); typ {
	case "session":
		if get("timestamp") == rawjson.Null && get("version") == rawjson.Null {
			switch get("created") {
			case rawjson.String:
				return FormClaw0Old, nil
			case rawjson.Number:
				return FormClaw0, nil
			}
			if get("id") == rawjson.Null {
				return "", nil // a line of this type is not rare
			}
		}
		return FormNative, nil
	case "message":
		if d.Kind(d.Get(d.Get(0, "message"), "role")) == rawjson.String {
			return FormNative, nil
		}
	case "model_change", "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message",
		"label", "session_info", "reset", "leaf", "context_edit", "checkpoint":
		if get("timestamp") != rawjson.Null {
			return FormNative, nil
		}
	case "user", "assistant", "tool_use", "tool_result":
		switch {
		case get("message") != rawjson.Null, get("content") == rawjson.Null && get("tool_use_id") == rawjson.Null:
		case get("ts") == rawjson.String, get("output") != rawjson.Null, get("ts") == rawjson.Null && get("content") == rawjson.String && typ == "assistant":
			return FormClaw0Old, nil
		default:
			return FormClaw0, nil
		}
	}
	return "", nil
}

// nativeStream reads a native file of any version. Versions 1 and 2 come out
// as the lines by which the real program replaces them.
type nativeStream struct {
	version int // of the file; 0 until a line shows it
	upgrade piv1.Upgrader
}

func (s *nativeStream) Line(_ int, line []byte, out []session.Record) ([]session.Record, error) {
	d := native.Borrow()
	defer d.Release()
	r, err := d.Record(line)
	if err != nil {
		return out, err
	}
	if s.version == 0 {
		s.decide(r)
	}
	if s.version < session.Version && s.version > 0 {
		if up := s.upgrade.Line(&d.Tape, s.version); !bytes.Equal(up, line) {
			if _, sealed := native.Unseal(line); sealed { // goclaw has appended to an old file
				up, _ = native.Unseal(up)
				up = native.Seal(up)
			}
			if r, err = d.Record(up); err != nil {
				return out, err
			}
		}
	}
	return append(out, r), nil
}

// decide takes the version from the header. A file without one has version
// 1 if its entries have no ids.
func (s *nativeStream) decide(r session.Record) {
	switch b := r.Body.(type) {
	case session.Header:
		s.version = max(b.Version, 1)
	case session.Unknown: // shows nothing, but counts as a line
		s.upgrade.Skip()
	default:
		s.version = session.Version
		if r.ID == "" {
			s.version = 1
		}
	}
}

func (s *nativeStream) End(out []session.Record) []session.Record { return out }
