package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"goclaw/internal/rawjson"
	"goclaw/llm"
)

// The conversation is most of a request: 800 KB at 200k tokens. encoding/json
// writes strings at a fraction of the speed at which they can be copied. So the
// messages, and only they, are written by hand. They are also the part whose
// bytes must not change from call to call.

// Valid returns s with U+FFFD for each byte that is not UTF-8.
func Valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// AppendString appends s as a JSON string, made valid.
func AppendString(dst []byte, s string) []byte { return rawjson.AppendString(dst, Valid(s)) }

// Length is about how long blocks are on the wire.
func Length(blocks []llm.Block) (n int) {
	for _, b := range blocks {
		n += 64
		switch b := b.(type) {
		case llm.Text:
			n += len(b.Text)
		case llm.Image:
			n += len(b.Data)
		case llm.Thinking:
			n += len(b.Text) + len(b.Signature)
		case llm.ToolCall:
			n += len(b.Args) + len(b.Args)/4
		case llm.ToolResult:
			n += Length(b.Blocks)
		}
	}
	return n
}

// Body makes a request of the messages, a JSON array in field that write appends
// and that takes about size bytes, and of rest, the JSON object of everything
// else.
func Body(field string, size int, write func([]byte) []byte, rest any) ([]byte, error) {
	var settings bytes.Buffer
	enc := json.NewEncoder(&settings)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rest); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size+size/8+settings.Len()+1024)
	body = write(append(body, `{"stream":true,"`+field+`":`...))
	if settings.Len() > len("{}\n") {
		body = append(body, ',')
	}
	return append(body, bytes.TrimSpace(settings.Bytes())[1:]...), nil
}
