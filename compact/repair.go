package compact

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// answer reads a model's answer as a summary. The form asked for is a JSON
// object; what models make of that is repaired: fences and talk around it,
// trailing commas, line breaks in strings, a missing end, one string for a
// list, other spellings of a key. strict says that an object was found.
func answer(text string) (s Summary, strict bool) {
	text = strings.TrimSpace(text)
	if i := strings.IndexByte(text, '{'); i >= 0 {
		var v map[string]any
		if j := strings.LastIndexByte(text, '}'); j < i || json.Unmarshal([]byte(text[i:j+1]), &v) != nil {
			p := loose{text: text, at: i}
			v, _ = p.value().(map[string]any)
		}
		if len(v) > 0 {
			s.take(v)
			if s.Text != "" || len(s.Decisions) > 0 {
				return s, true
			}
		}
	}
	if in, ok := between(text, "<summary>", "</summary>"); ok {
		text = in
	}
	return parse(unfence(text)), false
}

func between(text, open, shut string) (string, bool) {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return "", false
	}
	in, _, _ := strings.Cut(rest, shut)
	return strings.TrimSpace(in), true
}

func unfence(text string) string {
	if rest, ok := strings.CutPrefix(text, "```"); ok {
		_, rest, _ = strings.Cut(rest, "\n")
		return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "```"))
	}
	return text
}

// take fills s from an object.
func (s *Summary) take(v map[string]any) {
	for k, val := range v {
		if into := s.list(k); into != nil {
			*into = append(*into, items(val)...)
			continue
		}
		switch {
		case isOne(k, taskTitles):
			s.Task = strings.Join(items(val), "\n")
		case isOne(k, textTitles):
			s.Text = strings.TrimSpace(s.Text + "\n" + strings.Join(items(val), "\n"))
		}
	}
}

// items returns a value as a list of texts.
func items(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		for _, l := range strings.Split(v, "\n") {
			if l = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "- ")); l != "" {
				out = append(out, l)
			}
		}
	case []any:
		for _, e := range v {
			if t := strings.Join(items(e), ": "); t != "" {
				out = append(out, t)
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, items(v[k])...)
		}
	case nil:
	default:
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// loose reads JSON as models write it. It never fails: what is missing at the
// end is taken as closed.
type loose struct {
	text  string
	at    int
	depth int
}

// maxDepth is how deep a summary may be nested before the rest is left out.
const maxDepth = 16

func (p *loose) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,", p.text[p.at]) >= 0 {
		p.at++
	}
}

func (p *loose) value() any {
	p.space()
	if p.at >= len(p.text) || p.depth > maxDepth {
		p.at = len(p.text)
		return nil
	}
	switch c := p.text[p.at]; c {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.str()
	}
	start := p.at
	for p.at < len(p.text) && strings.IndexByte(",]}\n", p.text[p.at]) < 0 {
		p.at++
	}
	word := strings.TrimSpace(p.text[start:p.at])
	if word == "null" || word == "" {
		return nil
	}
	return word
}

func (p *loose) object() any {
	p.at++
	p.depth++
	defer func() { p.depth-- }()
	m := map[string]any{}
	for {
		p.space()
		if p.at >= len(p.text) {
			return m
		}
		if p.text[p.at] == '}' {
			p.at++
			return m
		}
		if p.text[p.at] == ']' {
			return m
		}
		key := ""
		if p.text[p.at] == '"' {
			key = p.str()
		} else {
			start := p.at
			for p.at < len(p.text) && strings.IndexByte(":,}\n", p.text[p.at]) < 0 {
				p.at++
			}
			key = strings.Trim(p.text[start:p.at], " '")
		}
		p.space()
		if p.at < len(p.text) && p.text[p.at] == ':' {
			p.at++
			m[key] = p.value()
		} else if p.at < len(p.text) && p.text[p.at] != '}' && p.text[p.at] != '"' {
			p.at++
		}
	}
}

func (p *loose) array() any {
	p.at++
	p.depth++
	defer func() { p.depth-- }()
	list := []any{}
	for {
		p.space()
		if p.at >= len(p.text) {
			return list
		}
		switch p.text[p.at] {
		case ']':
			p.at++
			return list
		case '}', ':':
			p.at++
			return list
		}
		if v := p.value(); v != nil {
			list = append(list, v)
		}
	}
}

func (p *loose) str() string {
	p.at++
	var b strings.Builder
	for p.at < len(p.text) {
		c := p.text[p.at]
		p.at++
		switch c {
		case '"':
			return b.String()
		case '\\':
			if p.at >= len(p.text) {
				return b.String()
			}
			e := p.text[p.at]
			p.at++
			switch e {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
			case 'u':
				if p.at+4 <= len(p.text) {
					if n, err := strconv.ParseUint(p.text[p.at:p.at+4], 16, 32); err == nil {
						p.at += 4
						b.WriteRune(rune(n))
					}
				}
			default:
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
