package wire

import (
	"encoding/json"
	"unicode/utf8"
)

// The conversation is most of a request: 800 KB at 200k tokens. The SDKs'
// parameter types encode it several times over, each level copying the one
// below, which alone takes longer than a whole turn may. So the messages, and
// only they, are written by hand; they also are the part whose bytes must not
// change from call to call.

const hex = "0123456789abcdef"

// plain are the bytes that stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
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

// Object returns args if they are a JSON object, and otherwise what Args makes
// of them, so that nothing in a log can break the request around it.
func Object(args json.RawMessage) json.RawMessage {
	if len(args) > 1 && args[0] == '{' && json.Valid(args) && utf8.Valid(args) {
		return args
	}
	return Args(string(args))
}

// Join puts messages, a JSON array, before the fields of rest, which is the
// JSON object that an SDK makes of everything else. Stream comes first, where
// the SDK that sets it finds it without reading on.
func Join(messages, rest []byte) []byte {
	const head = `{"stream":true,"messages":`
	body := make([]byte, 0, len(head)+len(messages)+len(rest)+1)
	body = append(body, head...)
	body = append(body, messages...)
	if len(rest) > len("{}") {
		body = append(body, ',')
	}
	return append(body, rest[1:]...)
}

// Size is about how much room the messages take.
func Size(n int) int { return n + n/8 + 1024 }
