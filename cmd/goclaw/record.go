package main

import (
	"encoding/json"
	"fmt"

	"goclaw/internal/codec"
	"goclaw/internal/codec/native"
	"goclaw/session"
)

type rawJSON = json.RawMessage

// recordJSON returns a record's native line with its position in it, and without
// the checksum of the line.
func recordJSON(r session.Record) (rawJSON, error) {
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
	return append(rawJSON(head), line[1:]...), nil
}
