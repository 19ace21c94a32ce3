// Package codec writes records as lines and reads them back.
//
// Native is a superset of the line that OpenClaw and pi write (version 3):
// both programs read a native log, and a log of theirs is a native one. A
// line that was read is written back byte for byte, whatever it holds.
package codec

import "goclaw/session"

// Codec is one form of lines.
//
// Encode returns r's line or lines without the last line end. A record with
// Raw gives Raw. Decode returns the records that a line holds, without Seq:
// none where the line says nothing of its own. What cannot be read is an
// error, never a silence.
type Codec interface {
	Encode(r session.Record) ([]byte, error)
	Decode(line []byte) ([]session.Record, error)
}
