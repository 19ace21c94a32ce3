package wire

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"goclaw/llm"
)

// The conversation is most of a request: 800 KB at 200k tokens. encoding/json
// writes strings at a fraction of the speed at which they can be copied. So the
// messages, and only they, are written by hand; they also are the part whose
// bytes must not change from call to call.

const hex = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// plain8 reports whether the eight bytes of s are all plain, by the high bits
// of what is left after subtracting: a byte below 0x20 borrows from its own,
// one that equals '"' or '\\' becomes zero and does so too, and one from 0x80
// on has it already. A borrow reaches only into bytes above one that failed,
// so it never hides anything.
func plain8(s string) bool {
	_ = s[7]
	v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
	const ones, high = 0x0101010101010101, 0x8080808080808080
	low := v - 0x20*ones
	quote := (v ^ '"'*ones) - ones
	slash := (v ^ '\\'*ones) - ones
	return (v|low|quote|slash)&high == 0
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if i+8 <= len(s) && plain8(s[i:i+8]) {
			i += 8
			continue
		}
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

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

// Body makes a request of the messages, a JSON array that write appends and
// that takes about size bytes, and of rest, the JSON object of everything else.
func Body(size int, write func([]byte) []byte, rest any) ([]byte, error) {
	var settings bytes.Buffer
	enc := json.NewEncoder(&settings)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(rest); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size+size/8+settings.Len()+1024)
	body = write(append(body, `{"stream":true,"messages":`...))
	if settings.Len() > len("{}\n") {
		body = append(body, ',')
	}
	return append(body, bytes.TrimSpace(settings.Bytes())[1:]...), nil
}
