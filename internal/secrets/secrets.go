// Package secrets knows what a secret looks like: the keys and tokens of
// well-known services, private keys, passwords in addresses, and values that
// follow a telling name. Everything that hides secrets asks it, so that there
// is one definition.
package secrets

import (
	"sort"
	"strings"
)

// Mark replaces a secret.
const Mark = "[redacted]"

// Match is a secret in a text, and the rule that found it.
type Match struct {
	Rule       string
	Start, End int
}

// Find returns the secrets in text, in order. They do not overlap. The time it
// takes grows with the length of the text, whatever the text is.
func Find(text string) []Match {
	var found []Match
	for _, r := range rules {
		found = r.find(found, text)
	}
	found = named(found, text)
	if len(found) < 2 {
		return found
	}
	// Of two that overlap the earlier keeps its name and covers both.
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		return a.Start < b.Start || a.Start == b.Start && a.End > b.End
	})
	out := found[:1]
	for _, m := range found[1:] {
		if last := &out[len(out)-1]; m.Start < last.End {
			last.End = max(last.End, m.End)
		} else {
			out = append(out, m)
		}
	}
	return out
}

// Redact returns text without its secrets, and how many there were.
func Redact(text string) (string, int) {
	found := Find(text)
	return Replace(text, found), len(found)
}

// Replace returns text with Mark in place of each match. They must be in order
// and must not overlap.
func Replace(text string, found []Match) string {
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		b.WriteString(text[at:m.Start])
		b.WriteString(Mark)
		at = m.End
	}
	b.WriteString(text[at:])
	return b.String()
}

// shortest is the length from which a value is taken out wherever it occurs. A
// shorter one would be cut out of ordinary words.
const shortest = 8

// Without returns text without the values given and without what looks like a
// secret.
func Without(text string, values ...string) string {
	for _, v := range values {
		if len(v) >= shortest {
			text = strings.ReplaceAll(text, v, Mark)
		}
	}
	text, _ = Redact(text)
	return text
}

// Mask hides a secret except for its last four characters, or all of it if it is
// short.
func Mask(s string) string {
	switch {
	case s == "":
		return ""
	case len(s) < 12:
		return "****"
	}
	tail := s[len(s)-4:]
	for _, c := range []byte(tail) {
		if c <= ' ' || c > '~' {
			return "****"
		}
	}
	return "****" + tail
}
