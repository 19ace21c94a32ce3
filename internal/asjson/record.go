// Package asjson is what other programs get: sessions, records, events, search
// results and compactions in JSON, the same from the commands and from goclaw serve.
// Programs rely on the names.
package asjson

import (
	"encoding/json"
	"fmt"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/session"
)

// Record returns a record's native line with its position in it, and without
// the checksum of the line.
func Record(r session.Record) (json.RawMessage, error) {
	line, err := codec.Native.Encode(r)
	if err != nil {
		return nil, err
	}
	line, _ = native.Unseal(line)
	if len(line) < 2 || line[0] != '{' {
		return json.Marshal(map[string]any{"seq": r.Seq, "raw": string(line)})
	}
	head := fmt.Sprintf(`{"seq":%d`, r.Seq)
	if line[1] != '}' {
		head += ","
	}
	return append(json.RawMessage(head), line[1:]...), nil
}
