package instructions

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Template is a Markdown file with a prompt that the user calls as /name, in the
// form of Claude Code, pi and Codex.
type Template struct {
	Name        string
	Group       string // the folders that it is in, below the place, with : between them
	Description string
	Hint        string // what its arguments are
	Path        string
}

// FindTemplates reads the templates in places, the nearest first. Of several with
// the same name and group the first counts. What cannot be used is in problems.
func FindTemplates(places []Place) (list []Template, problems []string) {
	for _, p := range places {
		err := walk(p.Dir, func(path string, isDir bool) bool {
			name, ok := strings.CutSuffix(filepath.Base(path), ".md")
			if isDir || !ok || !usable.MatchString(name) {
				return isDir
			}
			rel, _ := filepath.Rel(p.Dir, filepath.Dir(path))
			t := Template{Name: name, Path: path}
			if rel != "." {
				t.Group = strings.ReplaceAll(filepath.ToSlash(rel), "/", ":")
			}
			if slices.ContainsFunc(list, func(o Template) bool { return o.Name == t.Name && o.Group == t.Group }) {
				return false
			}
			err := p.allows(path)
			if err == nil {
				err = t.describe()
			}
			if err != nil {
				problems = append(problems, path+": "+err.Error())
				return false
			}
			list = append(list, t)
			return false
		})
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			problems = append(problems, p.Dir+": "+err.Error())
		}
	}
	return list, problems
}

// describe fills in what the file says about itself: a description, or else its
// first line.
func (t *Template) describe() error {
	fields, body, err := t.read()
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(body), "\n")
	t.Description = oneLine(cmp.Or(fields["description"], strings.TrimLeft(first, "#- ")))
	t.Hint = oneLine(fields["argument-hint"])
	return nil
}

// read returns the fields and the text of the template. Fields that make no sense
// are none: the whole file is then the text.
func (t *Template) read() (map[string]string, string, error) {
	if info, err := os.Stat(t.Path); err == nil && info.Size() > maxBody {
		return nil, "", errors.New("not used: it is larger than 64 KiB")
	}
	f, err := read(t.Path)
	if err != nil {
		return nil, "", err
	}
	fields, body, err := frontmatter(f.Text)
	if err != nil {
		return nil, f.Text, nil
	}
	return fields, body, nil
}

// FindTemplate returns the template that the user means with name: its own name,
// that with its group (group:name), or prompts:name, as Codex has it.
func FindTemplate(list []Template, name string) (Template, bool) {
	name = strings.TrimPrefix(name, "prompts:")
	for _, t := range list {
		if strings.EqualFold(t.Name, name) || t.Group != "" && strings.EqualFold(t.Group+":"+t.Name, name) {
			return t, true
		}
	}
	return Template{}, false
}

// Expand returns the prompt with the arguments filled in, or with them at its end
// if it has no place for them.
func (t Template) Expand(args string) (string, error) {
	_, body, err := t.read()
	if err != nil {
		return "", err
	}
	text, used := fill(strings.TrimSpace(body), args, anyArgument)
	if args = strings.TrimSpace(args); args != "" && !used {
		text = strings.TrimSpace(text + "\n\nARGUMENTS: " + args)
	}
	return text, nil
}

// Where arguments go. $1 is the first, ${@:2} those from the second on, ${1:-text}
// the first or text; $NAME is the value of an argument NAME=value. Only one digit:
// $100 is a price.
var (
	allArguments = regexp.MustCompile(`\$ARGUMENTS(?:\[(\d+)\])?`)
	anyArgument  = regexp.MustCompile(`\$\$|\$ARGUMENTS(?:\[(\d+)\])?|\$@|\$\{@:(\d+)(?::(\d+))?\}|\$\{(\d+)(?::-([^}]*))?\}|\$(\d+)|\$([A-Z][A-Z0-9_]*)`)
)

// fill puts arguments into body where it names them, and reports whether it does.
// What they contain is not looked at again.
func fill(body, args string, where *regexp.Regexp) (out string, used bool) {
	args = strings.TrimSpace(args)
	list := words(args)
	nth := func(i int) string {
		if used = true; i < 0 || i >= len(list) {
			return ""
		}
		return list[i]
	}
	out = where.ReplaceAllStringFunc(body, func(found string) string {
		m := append(where.FindStringSubmatch(found), make([]string, 8)...)
		number := func(i int) int { n, _ := strconv.Atoi(m[i]); return n }
		switch {
		case found == "$ARGUMENTS", found == "$@":
			used = true
			return args
		case m[1] != "":
			return nth(number(1)) // $ARGUMENTS[0] is the first
		case m[2] != "":
			used = true
			from := min(max(number(2)-1, 0), len(list))
			to := len(list)
			if m[3] != "" {
				to = min(from+number(3), to)
			}
			return strings.Join(list[from:to], " ")
		case m[4] != "":
			return cmp.Or(nth(number(4)-1), m[5])
		case len(m[6]) == 1 && m[6] != "0":
			return nth(number(6) - 1)
		case m[7] != "":
			for _, w := range list {
				if value, ok := strings.CutPrefix(w, m[7]+"="); ok {
					used = true
					return value
				}
			}
		}
		return found
	})
	return out, used
}

// words splits arguments at white space that is not in quotes. A quote inside a
// word is an apostrophe.
func words(args string) (out []string) {
	var word strings.Builder
	quote, in := rune(0), false
	for _, c := range args {
		switch {
		case c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case (c == '"' || c == '\'') && (!in || strings.HasSuffix(word.String(), "=")):
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if in {
				out = append(out, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteRune(c)
			in = true
		}
	}
	if in {
		out = append(out, word.String())
	}
	return out
}
