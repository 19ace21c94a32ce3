package look

import (
	"bytes"
	"strings"
)

// find returns where query is in text at or after from, -1 if nowhere. A query
// without capitals finds either case of ASCII letters.
func find(text, query string, from int) int {
	if query == "" || from > len(text) {
		return -1
	}
	if query != lower(query) {
		if i := strings.Index(text[from:], query); i >= 0 {
			return from + i
		}
		return -1
	}
	q, buf := []byte(query), make([]byte, 0, block+len(query))
	for at := from; at < len(text); at += block {
		buf = appendLower(buf[:0], text[at:min(at+block+len(q)-1, len(text))])
		if i := bytes.Index(buf, q); i >= 0 {
			return at + i
		}
	}
	return -1
}

// findBack returns where query is in text before the byte before, -1 if nowhere.
func findBack(text, query string, before int) int {
	if query == "" {
		return -1
	}
	exact := query != lower(query)
	q, buf := []byte(query), make([]byte, 0, block+len(query))
	for end := min(before, len(text)); end > 0; end -= block {
		begin := max(end-block, 0)
		part := text[begin:min(end+len(q)-1, len(text))]
		if exact {
			buf = append(buf[:0], part...)
		} else {
			buf = appendLower(buf[:0], part)
		}
		if i := bytes.LastIndex(buf, q); i >= 0 {
			return begin + i
		}
	}
	return -1
}

// within returns the places of query in text between from and to.
func within(text, query string, from, to int) (out []mark) {
	if query == "" {
		return nil
	}
	begin := max(from-len(query), 0)
	part := text[begin:min(to+len(query), len(text))]
	for at := 0; ; {
		i := find(part, query, at)
		if i < 0 {
			return out
		}
		out = append(out, mark{begin + i, begin + i + len(query)})
		at = i + len(query)
	}
}

func lower(s string) string { return string(appendLower(nil, s)) }

// appendLower adds s with small ASCII letters: every byte keeps its place.
func appendLower(b []byte, s string) []byte {
	n := len(b)
	b = append(b, s...)
	for i := n; i < len(b); i++ {
		if c := b[i]; c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}
