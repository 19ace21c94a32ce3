package tool

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"goclaw/internal/near"
	"goclaw/internal/text"
)

// clean makes text fit to be sent and stored: valid UTF-8 without NUL, which
// some databases do not take.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return strings.ReplaceAll(text, "\x00", "\u2400")
}

// excerpt returns at most max bytes of s, marked if there was more.
func excerpt(s string, max int) string {
	if len(s) <= max {
		return s
	}
	return text.Head(s, max) + "…"
}

// wholeRunes drops the beginning of a rune at the end of b.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// tailRunes drops the rest of a rune at the start of b.
func tailRunes(b []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(b); i++ {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// capture is a writer that keeps the first and the last bytes of what is
// written to it, however much that is. It is safe for concurrent use.
type capture struct {
	mu         sync.Mutex
	half       int
	head, tail []byte
	total      int64
}

func newCapture(max int) *capture { return &capture{half: max / 2} }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if room := c.half - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if len(c.tail)+len(p) > 2*c.half {
		keep := c.half - len(p)
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-keep:]...)
	}
	c.tail = append(c.tail, p...)
	return n, nil
}

// String returns what was kept, with a note in place of the rest.
func (c *capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tail := c.tail
	if len(tail) > c.half {
		tail = tail[len(tail)-c.half:]
	}
	if int64(len(c.head)+len(tail)) == c.total {
		return clean(string(c.head) + string(tail))
	}
	head, tail := wholeRunes(c.head), tailRunes(tail)
	cut := c.total - int64(len(head)+len(tail))
	return clean(fmt.Sprintf("%s\n[... %d of %d bytes cut ...]\n%s", head, cut, c.total, tail))
}

// end returns the last bytes of what was written, at most n of them and no more
// than are kept, and how many bytes were written.
func (c *capture) end(n int) ([]byte, int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b []byte
	if int64(len(c.head)+len(c.tail)) == c.total {
		b = append(b, c.head...)
	}
	b = append(b, c.tail...)
	return b[max(0, len(b)-n):], c.total
}

// withNote adds a note on a separate line after text.
func withNote(text, note string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + note
}

// quoted returns a file name so that it cannot be mistaken for anything else:
// as it is, or as a quoted string if it holds control characters, is not valid
// UTF-8, or begins or ends with a space.
func quoted(name string) string {
	odd := !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
	if odd {
		return strconv.Quote(name)
	}
	return name
}

// nearest returns the candidate that name was probably meant to be, or "".
func nearest(name string, candidates []string) string {
	if n := near.Nearest(name, candidates); n != "" || len(name) < 4 || len(name) > 256 {
		return n
	}
	name = strings.ToLower(name)
	for _, c := range candidates {
		if l := strings.ToLower(c); strings.Contains(l, name) || strings.Contains(name, l) {
			return c
		}
	}
	return ""
}
