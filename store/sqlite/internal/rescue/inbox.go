package rescue

import (
	"encoding/binary"

	"goclaw/session"
	"goclaw/store/internal/sqlstore"
)

// Inbox is what is in the table inbox, which databases of schema 1 have: the
// lines that were appended last, by session. Each row holds what many sessions
// appended in one transaction. Some lines may be in the table records as well,
// under the same numbers.
type Inbox map[session.ID][]sqlstore.Line

// Add parses a row: the session, the number and the line of each record. It
// returns the rest that cannot be parsed.
func (in Inbox) Add(path string, b []byte) (rest []byte) {
	for len(b) > 0 {
		id, rest, ok := field(b)
		seq, n := binary.Uvarint(rest)
		if !ok || n <= 0 {
			return b
		}
		data, rest, ok := field(rest[n:])
		if !ok {
			return b
		}
		rec, _ := sqlstore.Decode(path, session.Seq(seq), data, nothing)
		in[session.ID(id)] = append(in[session.ID(id)], sqlstore.NewLine(rec, data))
		b = rest
	}
	return nil
}

func field(b []byte) (f, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}

// nothing is beside a line of which only the line is known.
func nothing() (id, parent, typ string) { return "", "", "" }
