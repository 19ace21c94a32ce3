package codec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"goclaw/session"
)

// upgrader turns the lines of versions 1 and 2 into version 3, one by one, as
// pi does it when it opens such a file. The result is what pi writes back,
// down to the byte, apart from the ids that version 1 lacks: pi draws them at
// random, here they count the lines, so that reading twice gives the same.
type upgrader struct {
	index   int // of the next line, the header included
	prev    string
	headers map[int]bool
}

// line returns the line that d has just read, brought up to date.
func (u *upgrader) line(d *decoder, version int) ([]byte, error) {
	at := u.index
	u.index++
	if d.nodes[0].kind != object {
		return d.raw(0), nil
	}
	o := d.members(0)
	switch typ := d.string(d.get(0, "type")); {
	case typ == "session":
		if u.headers == nil {
			u.headers = map[int]bool{}
		}
		u.headers[at] = true
		o.set("version", strconv.Itoa(session.Version))
		return o.append(nil), nil
	case version < 2:
		id := fmt.Sprintf("%08x", at)
		o.set("id", `"`+id+`"`)
		parent := "null"
		if u.prev != "" {
			parent = `"` + u.prev + `"`
		}
		o.set("parentId", parent)
		u.prev = id
		if first := d.get(0, "firstKeptEntryIndex"); typ == "compaction" && d.kindOf(first) == number {
			// A line that is still to come has no id yet when pi looks.
			if n := d.int(first); string(d.raw(first)) == strconv.Itoa(n) && n >= 0 && n <= at && !u.headers[n] {
				o.set("firstKeptEntryId", fmt.Sprintf(`"%08x"`, n))
			}
			o.del("firstKeptEntryIndex")
		}
	}
	if m := d.get(0, "message"); d.is(d.get(0, "type"), "message") && d.kindOf(m) == object && d.is(d.get(m, "role"), "hookMessage") {
		inner := d.members(m)
		inner.set("role", `"custom"`)
		o.set("message", string(inner.append(nil)))
	}
	return o.append(nil), nil
}

// members is an object as JavaScript holds it: of a key that stands twice,
// the first place and the last value.
type members []member

type member struct {
	key  string // quoted
	name string
	val  []byte
}

func (t *tape) members(n int) *members {
	o, at := members{}, map[string]int{}
	for k, end := n+1, int(t.nodes[n].next); k < end; k = int(t.nodes[k+1].next) {
		v := t.appendJS(nil, k+1)
		name := string(t.text(k))
		if i, again := at[name]; again {
			o[i].val = v
			continue
		}
		at[name] = len(o)
		o = append(o, member{string(t.appendJS(nil, k)), name, v})
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

// appendJS appends the value n as JSON.stringify writes what JSON.parse read.
func (t *tape) appendJS(b []byte, n int) []byte {
	switch v := t.nodes[n]; v.kind {
	case object:
		return t.members(n).append(b)
	case array:
		b = append(b, '[')
		for k, end := n+1, int(v.next); k < end; k = int(t.nodes[k].next) {
			if k > n+1 {
				b = append(b, ',')
			}
			b = t.appendJS(b, k)
		}
		return append(b, ']')
	case str:
		if !v.esc {
			return append(b, t.raw(n)...)
		}
		return appendStringJS(b, t.b[v.start:v.end])
	case number:
		return appendNumberJS(b, t.raw(n))
	}
	return append(b, t.raw(n)...)
}

// appendStringJS quotes what the escaped text s stands for. Half a surrogate
// pair, which no UTF-8 can hold, stays an escape.
func appendStringJS(b, s []byte) []byte {
	b = append(b, '"')
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			b = append(b, s[i])
			i++
			continue
		}
		if s[i+1] != 'u' {
			if s[i+1] != '/' {
				b = append(b, '\\')
			}
			b = append(b, s[i+1])
			i += 2
			continue
		}
		r := rune16(s[i:])
		i += 6
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if i+6 <= len(s) && s[i] == '\\' && s[i+1] == 'u' {
				pair = utf16.DecodeRune(r, rune16(s[i:]))
			}
			if pair == utf8.RuneError {
				b = fmt.Appendf(b, `\u%04x`, r)
				continue
			}
			r, i = pair, i+6
		}
		q := appendString(nil, string(r))
		b = append(b, q[1:len(q)-1]...)
	}
	return append(b, '"')
}

func appendNumberJS(b, s []byte) []byte {
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
