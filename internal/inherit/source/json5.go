package source

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Unmarshal reads JSON, or JSON5 where it is no JSON: an index may have been
// edited by hand.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if err == nil {
		return nil
	}
	plain, err5 := fromJSON5(data)
	if err5 != nil {
		return err5
	}
	return json.Unmarshal(plain, v)
}

// fromJSON5 turns JSON5 into JSON: comments and trailing commas go, names and
// strings are quoted, numbers written as JSON writes them.
func fromJSON5(data []byte) ([]byte, error) {
	p := &json5{s: strings.TrimPrefix(string(data), "\ufeff"), out: make([]byte, 0, len(data))}
	if err := p.value(0); err != nil {
		return nil, err
	}
	if p.space(); p.i < len(p.s) {
		return nil, p.fail("something after the value")
	}
	return p.out, nil
}

type json5 struct {
	s   string
	i   int
	out []byte
}

func (p *json5) fail(what string) error {
	return fmt.Errorf("line %d: %s", 1+strings.Count(p.s[:min(p.i, len(p.s))], "\n"), what)
}

func (p *json5) space() {
	for p.i < len(p.s) {
		rest := p.s[p.i:]
		switch r, n := utf8.DecodeRuneInString(rest); {
		case unicode.IsSpace(r) || r == '\ufeff':
			p.i += n
		case strings.HasPrefix(rest, "//"):
			if n = strings.IndexByte(rest, '\n'); n < 0 {
				n = len(rest)
			}
			p.i += n
		case strings.HasPrefix(rest, "/*"):
			if n = strings.Index(rest, "*/"); n < 0 {
				p.i = len(p.s)
				return
			}
			p.i += n + 2
		default:
			return
		}
	}
}

func (p *json5) value(depth int) error {
	p.space()
	if p.i >= len(p.s) {
		return p.fail("the end of the file where a value is due")
	}
	if depth > 1000 {
		return p.fail("nested too deep")
	}
	switch c := p.s[p.i]; c {
	case '{', '[':
		return p.list(c, depth)
	case '"', '\'':
		return p.text(c)
	}
	return p.word()
}

func (p *json5) list(open byte, depth int) error {
	end := byte('}')
	if open == '[' {
		end = ']'
	}
	p.out = append(p.out, open)
	p.i++
	for n := 0; ; n++ {
		p.space()
		if p.i >= len(p.s) {
			return p.fail("the end of the file in the middle of a list")
		}
		if p.s[p.i] == end {
			p.i++
			p.out = append(p.out, end)
			return nil
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if open == '{' {
			if err := p.name(); err != nil {
				return err
			}
			if p.space(); p.i >= len(p.s) || p.s[p.i] != ':' {
				return p.fail("no colon after a name")
			}
			p.i++
			p.out = append(p.out, ':')
		}
		if err := p.value(depth + 1); err != nil {
			return err
		}
		p.space()
		switch {
		case p.i < len(p.s) && p.s[p.i] == ',':
			p.i++
		case p.i < len(p.s) && p.s[p.i] == end:
		default:
			return p.fail("no comma between two values")
		}
	}
}

func (p *json5) name() error {
	if c := p.s[p.i]; c == '"' || c == '\'' {
		return p.text(c)
	}
	n := strings.IndexFunc(p.s[p.i:], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '$'
	})
	if n <= 0 {
		return p.fail("no name where one is due")
	}
	p.quote(p.s[p.i : p.i+n])
	p.i += n
	return nil
}

func (p *json5) quote(s string) {
	b, _ := json.Marshal(s)
	p.out = append(p.out, b...)
}

func (p *json5) text(q byte) error {
	var b strings.Builder
	for p.i++; p.i < len(p.s); p.i++ {
		c := p.s[p.i]
		switch {
		case c == q:
			p.i++
			p.quote(b.String())
			return nil
		case c != '\\':
			b.WriteByte(c)
			continue
		}
		if p.i++; p.i >= len(p.s) {
			break
		}
		switch c = p.s[p.i]; c {
		case '\n':
		case '\r':
			if strings.HasPrefix(p.s[p.i:], "\r\n") {
				p.i++
			}
		case 'u', 'x':
			n := 4
			if c == 'x' {
				n = 2
			}
			if p.i+n >= len(p.s) {
				return p.fail("half an escape")
			}
			v, err := strconv.ParseUint(p.s[p.i+1:p.i+1+n], 16, 32)
			if err != nil {
				return p.fail("an escape that is no number")
			}
			b.WriteRune(rune(v))
			p.i += n
		default:
			if k := strings.IndexByte("bfnrtv0", c); k >= 0 {
				c = "\b\f\n\r\t\v\x00"[k]
			}
			b.WriteByte(c)
		}
	}
	return p.fail("a text without an end")
}

// word is a number, true, false or null.
func (p *json5) word() error {
	n := strings.IndexFunc(p.s[p.i:], func(r rune) bool { return strings.ContainsRune(",]}:/ \t\r\n", r) })
	if n < 0 {
		n = len(p.s) - p.i
	}
	w := p.s[p.i : p.i+n]
	switch strings.TrimLeft(w, "+-") {
	case "Infinity", "NaN":
		p.out = append(p.out, "null"...)
		p.i += n
		return nil
	}
	switch w {
	case "true", "false", "null":
		p.out = append(p.out, w...)
	default:
		if v, err := strconv.ParseInt(strings.TrimPrefix(w, "+"), 0, 64); err == nil {
			p.out = strconv.AppendInt(p.out, v, 10)
		} else if f, err := strconv.ParseFloat(w, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			p.out = strconv.AppendFloat(p.out, f, 'g', -1, 64)
		} else {
			return p.fail(fmt.Sprintf("%.20q is no value", w))
		}
	}
	p.i += n
	return nil
}
