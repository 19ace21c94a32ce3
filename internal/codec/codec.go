// Package codec writes records as lines and reads them back.
//
// Native is a superset of the line that OpenClaw and pi write (version 3):
// both programs read a native log, and a log of theirs is a native one. A
// line that was read is written back byte for byte, whatever it holds.
//
// Each form has its own package: native, claw0, and piv1 for the older
// versions of native files.
package codec

import (
	"bytes"
	"fmt"

	"goclaw/internal/codec/claw0"
	"goclaw/internal/codec/native"
	"goclaw/session"
	"goclaw/session/storekit"
)

// Codec is one form of lines.
//
// Encode returns r's line or lines without the last line end. A record with
// Raw gives Raw. Decode returns the records that a line holds, without Seq:
// none where the line adds nothing. A line that cannot be read is
// an error; it is never skipped in silence.
type Codec interface {
	Encode(r session.Record) ([]byte, error)
	Decode(line []byte) ([]session.Record, error)
}

var (
	// Native is the native form. Decode returns exactly one record for each
	// line that is not blank; Raw is a copy of the line, so that the caller may
	// reuse the line's memory. White space around the value and a byte order
	// mark before it are skipped, and are part of Raw.
	//
	// A line that is not JSON is an error, and so is one with invalid UTF-8. A
	// line that is JSON always gives a record: one that is not an object, or
	// lacks what its type needs, is Unknown.
	Native = FormNative.Codec()

	// Claw0 and Claw0Old are the two forms of claw0. Decode gives back the very
	// record that was encoded, Raw being the native line. Lines that claw0
	// itself wrote are read as well as single lines can be: use a Scanner for
	// its files, where the lines of a turn belong together.
	Claw0    = FormClaw0.Codec()
	Claw0Old = FormClaw0Old.Codec()
)

// Form names a form of lines.
type Form string

const (
	FormNative   Form = "native"    // pi, OpenClaw and goclaw, any version
	FormClaw0    Form = "claw0"     // claw0 since it writes blocks
	FormClaw0Old Form = "claw0-old" // claw0 with a session line and plain text
)

// Codec returns the codec of the form, for single lines.
func (f Form) Codec() Codec { return lines(f) }

// lines is the codec of a form.
type lines Form

func (f lines) Encode(r session.Record) ([]byte, error) {
	switch Form(f) {
	case FormClaw0, FormClaw0Old:
		return claw0.Encode(r, Form(f) == FormClaw0Old)
	}
	return native.Encode(r)
}

func (f lines) Decode(line []byte) ([]session.Record, error) {
	if len(line) > storekit.MaxRecord {
		return nil, fmt.Errorf("codec: a line of %d bytes, the limit is %d: %w", len(line), storekit.MaxRecord, session.ErrTooLarge)
	}
	if len(native.Trim(line)) == 0 {
		return nil, nil
	}
	line = bytes.Clone(line)
	if f := Form(f); f == FormClaw0 || f == FormClaw0Old {
		s := claw0.NewStream("", false)
		recs, err := s.Line(1, line, nil)
		if err != nil {
			return nil, err
		}
		return s.End(recs), nil
	}
	d := native.Borrow()
	defer d.Release()
	r, err := d.Record(line)
	if err != nil {
		return nil, err
	}
	return []session.Record{r}, nil
}
