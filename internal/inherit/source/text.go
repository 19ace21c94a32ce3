package source

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"goclaw/session"
)

// Text returns the name of a file as text that every log can hold: bytes that
// are no UTF-8 become %XX. A name that is text stays what it is.
func Text(name string) string {
	if utf8.ValidString(name) && strings.IndexByte(name, 0) < 0 {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 || r == 0 {
			fmt.Fprintf(&b, "%%%02X", name[0])
		} else {
			b.WriteString(name[:n])
		}
		name = name[n:]
	}
	return b.String()
}

// FromText returns the name that Text made text of, if it was this.
func FromText(s string) (string, bool) {
	name, err := url.PathUnescape(s)
	return name, err == nil && name != s && Text(name) == s
}

// GoodID reports whether a log can have this id.
func GoodID(id session.ID) bool {
	return id != "" && utf8.ValidString(string(id)) && strings.IndexByte(string(id), 0) < 0
}
