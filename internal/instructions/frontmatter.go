package instructions

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// field matches a line of frontmatter that begins a field.
var field = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?$`)

// nested matches the first line of a value that is a list or an object.
var nested = regexp.MustCompile(`^(- |-$|[A-Za-z0-9_"'-]+:( |$))`)

// frontmatter splits a text into the fields at its beginning, between two lines
// of three dashes, and the rest. Without them, fields is nil. It reads what people
// write there: texts on one line or several, quoted or not. Lists and objects
// inside are left out. Unlike YAML, a text without quotes may contain ": ", which
// many have.
func frontmatter(text string) (fields map[string]string, body string, err error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	head, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(head, " \t") != "---" {
		return nil, text, nil
	}
	var lines []string
	for closed := false; !closed; {
		head, rest, ok = strings.Cut(rest, "\n")
		if closed = strings.TrimRight(head, " \t") == "---"; !closed {
			if !ok {
				return nil, text, fmt.Errorf("its frontmatter has no end: a line of three dashes is missing")
			}
			lines = append(lines, head)
		}
	}
	fields = map[string]string{}
	for i := 0; i < len(lines); {
		line := lines[i]
		if t := strings.TrimSpace(line); t == "" || t[0] == '#' {
			i++
			continue
		}
		m := field.FindStringSubmatch(strings.TrimRight(line, " \t"))
		if m == nil {
			return nil, rest, fmt.Errorf("line %d of it is not a field", i+2)
		}
		from := i + 1
		for i++; i < len(lines) && (strings.TrimSpace(lines[i]) == "" || strings.ContainsAny(lines[i][:1], " \t-")); i++ {
		}
		if fields[m[1]], err = scalar(strings.TrimSpace(m[2]), lines[from:i]); err != nil {
			return nil, rest, fmt.Errorf("its field %s %w", m[1], err)
		}
	}
	return fields, rest, nil
}

// scalar returns the text of a field from the line that it begins on and those
// that follow it.
func scalar(first string, more []string) (string, error) {
	lines := make([]string, len(more))
	for i, l := range more {
		lines[i] = strings.TrimSpace(l)
	}
	switch {
	case strings.HasPrefix(first, "|"):
		return strings.TrimSpace(strings.Join(lines, "\n")), nil
	case strings.HasPrefix(first, ">"):
		return folded(lines), nil
	case strings.HasPrefix(first, `"`), strings.HasPrefix(first, "'"):
		return quoted(folded(append([]string{first}, lines...)))
	case first == "" && len(lines) > 0 && nested.MatchString(lines[0]):
		return "", nil
	}
	all := folded(append([]string{first}, lines...))
	if at := strings.Index(all, " #"); at >= 0 {
		all = all[:at]
	}
	return strings.TrimSpace(all), nil
}

// folded joins lines with spaces; an empty one stands for a new line.
func folded(lines []string) string {
	var b strings.Builder
	for i, l := range lines {
		switch {
		case l == "":
			b.WriteByte('\n')
		case i > 0 && lines[i-1] != "":
			b.WriteString(" " + l)
		default:
			b.WriteString(l)
		}
	}
	return strings.TrimSpace(b.String())
}

func quoted(text string) (string, error) {
	quote := text[:1]
	for i := 1; i < len(text); i++ {
		switch {
		case quote == `"` && text[i] == '\\':
			i++
		case text[i:i+1] != quote:
		case quote == "'" && strings.HasPrefix(text[i+1:], "'"):
			i++
		case quote == "'":
			return strings.ReplaceAll(text[1:i], "''", "'"), nil
		default:
			var out string
			if json.Unmarshal([]byte(strings.ReplaceAll(text[:i+1], "\n", `\n`)), &out) != nil {
				return "", fmt.Errorf("has an escape that is not known")
			}
			return out, nil
		}
	}
	return "", fmt.Errorf("has a quote that is not closed")
}
