// Package piv1 brings lines of pi's session versions 1 and 2 up to version 3.
package piv1

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"

	"goclaw/internal/rawjson"
	"goclaw/session"
)

// Upgrader turns the lines of a file into version 3, one by one, as pi does
// when it opens such a file. The result is what pi writes back, down to the
// byte, apart from the ids that version 1 lacks: pi draws them at random, here
// they count the lines, so that reading twice gives the same.
type Upgrader struct {
	index   int // of the next line, the header included
	prev    string
	headers map[int]bool
}

// Skip counts a line that needs no upgrade.
func (u *Upgrader) Skip() { u.index++ }

// Line returns the line that t has parsed, brought up to date.
func (u *Upgrader) Line(t *rawjson.Tape, version int) []byte {
	at := u.index
	u.index++
	if t.Kind(0) != rawjson.Object {
		return t.Raw(0)
	}
	o := membersOf(t, 0)
	switch typ := t.String(t.Get(0, "type")); {
	case typ == "session":
		if u.headers == nil {
			u.headers = map[int]bool{}
		}
		u.headers[at] = true
		o.set("version", strconv.Itoa(session.Version))
		return o.append(nil)
	case version < 2:
		id := fmt.Sprintf("%08x", at)
		o.set("id", `"`+id+`"`)
		parent := "null"
		if u.prev != "" {
			parent = `"` + u.prev + `"`
		}
		o.set("parentId", parent)
		u.prev = id
		if first := t.Get(0, "firstKeptEntryIndex"); typ == "compaction" && t.Kind(first) == rawjson.Number {
			// A line that is still to come has no id yet when pi looks.
			if n := t.Int(first); string(t.Raw(first)) == strconv.Itoa(n) && n >= 0 && n <= at && !u.headers[n] {
				o.set("firstKeptEntryId", fmt.Sprintf(`"%08x"`, n))
			}
			o.del("firstKeptEntryIndex")
		}
	}
	if m := t.Get(0, "message"); t.Is(t.Get(0, "type"), "message") && t.Is(t.Get(m, "role"), "hookMessage") {
		inner := membersOf(t, m)
		inner.set("role", `"custom"`)
		o.set("message", string(inner.append(nil)))
	}
	return o.append(nil)
}

// members is an object as JavaScript holds it: a key that occurs twice has its
// first place and its last value.
type members []member

type member struct {
	key  string // quoted
	name string
	val  []byte
}

func membersOf(t *rawjson.Tape, n int) *members {
	o, at := members{}, map[string]int{}
	for k, v := range t.Members(n) {
		val := appendValue(nil, t, v)
		name := string(t.Text(k))
		if i, again := at[name]; again {
			o[i].val = val
			continue
		}
		at[name] = len(o)
		o = append(o, member{string(appendValue(nil, t, k)), name, val})
	}
	// Keys that are array indices come first, by number.
	slices.SortStableFunc(o, func(a, b member) int {
		i, isA := arrayIndex(a.name)
		j, isB := arrayIndex(b.name)
		switch {
		case isA && isB:
			return int(i - j)
		case isA:
			return -1
		case isB:
			return 1
		}
		return 0
	})
	return &o
}

func arrayIndex(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return int64(n), err == nil && n < math.MaxUint32 && strconv.FormatUint(n, 10) == s
}

func (o *members) set(name, val string) {
	if i := slices.IndexFunc(*o, func(m member) bool { return m.name == name }); i >= 0 {
		(*o)[i].val = []byte(val)
		return
	}
	*o = append(*o, member{`"` + name + `"`, name, []byte(val)})
}

func (o *members) del(name string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.name == name })
}

func (o *members) append(b []byte) []byte {
	b = append(b, '{')
	for i, m := range *o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, m.key...), ':'), m.val...)
	}
	return append(b, '}')
}

// appendValue appends the value n as JSON.stringify writes what JSON.parse read.
func appendValue(b []byte, t *rawjson.Tape, n int) []byte {
	switch t.Kind(n) {
	case rawjson.Object:
		return membersOf(t, n).append(b)
	case rawjson.Array:
		b = append(b, '[')
		for v := range t.Values(n) {
			if v > n+1 {
				b = append(b, ',')
			}
			b = appendValue(b, t, v)
		}
		return append(b, ']')
	case rawjson.String:
		return appendString(b, t.Raw(n))
	case rawjson.Number:
		return appendNumber(b, t.Raw(n))
	}
	return append(b, t.Raw(n)...)
}

// appendString appends the quoted text s with only those escapes that must be.
// Half a surrogate pair, which UTF-8 cannot hold, stays an escape.
func appendString(b, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(b, s...)
		}
		r, n := rawjson.Escape(s[i:])
		b = append(b, s[:i]...)
		s = s[i+n:]
		if utf16.IsSurrogate(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
			continue
		}
		q := rawjson.AppendString(nil, string(r))
		b = append(b, q[1:len(q)-1]...)
	}
}

func appendNumber(b, s []byte) []byte {
	if len(s) < 16 && (s[0] != '0' || len(s) == 1) && !slices.ContainsFunc(s, func(c byte) bool { return c < '0' || c > '9' }) {
		return append(b, s...)
	}
	f, err := strconv.ParseFloat(string(s), 64)
	switch abs := math.Abs(f); {
	case err != nil: // infinite
		return append(b, "null"...)
	case f == 0: // also -0
		return append(b, '0')
	case abs < 1e-6 || abs >= 1e21:
		b = strconv.AppendFloat(b, f, 'e', -1, 64)
		if n := len(b); n >= 4 && b[n-4] == 'e' && b[n-2] == '0' { // e-09 is written e-9
			b[n-2] = b[n-1]
			b = b[:n-1]
		}
		return b
	default:
		return strconv.AppendFloat(b, f, 'f', -1, 64)
	}
}
