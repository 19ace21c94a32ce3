package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"goclaw/internal/wholefile"
)

// Edit changes the configuration file at path: the setting with the given name
// ("a.b"; names in it are separated, see Name) becomes value, or is removed if
// value is nil. Comments and everything else stay as they are. The changed file
// is checked before it is written: a wrong name or value changes nothing.
func Edit(path string, name []string, value any) error {
	return Update(path, func(old []byte) ([]byte, error) { return Changed(path, old, name, value) })
}

// Update is wholefile.Update for a configuration, which may be a link to a file
// elsewhere: the link stays.
func Update(path string, change func(old []byte) ([]byte, error)) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return wholefile.Update(path, change)
}

// Written returns the value of a setting in data, a configuration file, as it is
// written there; texts are without quotes. "" if data does not set it.
func Written(data []byte, name []string) string {
	v, err := hujson.Parse(data)
	if err != nil {
		return ""
	}
	for _, n := range [][]string{name, strings.Split(older(strings.Join(name, ".")), ".")} {
		if at := v.Find(pointer(n)); at != nil && n[0] != "" {
			if lit, ok := at.Value.(hujson.Literal); ok && lit.Kind() == '"' {
				return lit.String()
			}
			return brief(at)
		}
	}
	return ""
}

// Comment returns data with the meaning of a setting as a comment before it,
// unless there is one.
func Comment(data []byte, name []string) []byte {
	v, err := hujson.Parse(data)
	if err != nil {
		return data
	}
	at := v.Find(pointer(name[:len(name)-1]))
	if len(name) == 1 {
		at = &v
	}
	doc := meaning(name)
	if at == nil || doc == "" {
		return data
	}
	obj, ok := at.Value.(*hujson.Object)
	if !ok {
		return data
	}
	for i := range obj.Members {
		m := &obj.Members[i].Name
		if lit, ok := m.Value.(hujson.Literal); ok && lit.String() == name[len(name)-1] && !bytes.Contains(m.BeforeExtra, []byte("//")) {
			m.BeforeExtra = hujson.Extra("\n// " + doc + "\n")
		}
	}
	v.Format()
	return v.Pack()
}

// Changed returns what Edit makes of old, the content of the file at path.
func Changed(path string, old []byte, name []string, value any) ([]byte, error) {
	before, wrong := problems(path, old) // first: a patch may write into old
	v, err := hujson.Parse(old)
	if err != nil {
		// Nothing but blanks and comments is an empty configuration.
		var e error
		if v, e = hujson.Parse(append(bytes.Clone(old), "\n{}\n"...)); e != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	former := strings.Split(older(strings.Join(name, ".")), ".")
	if value == nil {
		err = remove(&v, path, name, former)
	} else {
		err = assign(&v, name, value)
		if err == nil && v.Find(pointer(former)) != nil {
			err = patch(&v, "remove", former, nil)
		}
	}
	if err != nil {
		return nil, err
	}
	out := v.Pack()
	after, err := problems(path, out)
	switch unplaced := withoutPlaces(path); {
	case err != nil && wrong != nil && unplaced(err.Error()) == unplaced(wrong.Error()):
		return nil, wrong // the file was wrong before
	case err != nil:
		return nil, WrongValue(unplaced(err.Error()))
	default:
		for _, w := range after {
			if !slices.ContainsFunc(before, func(b string) bool { return unplaced(b) == unplaced(w) }) {
				return nil, WrongValue(unplaced(w))
			}
		}
	}
	return out, nil
}

// WrongValue is the error of a change to a value that the setting does not take.
type WrongValue string

func (w WrongValue) Error() string { return string(w) }

// withoutPlaces returns a function that takes the places in the file at path out of what
// is said about it. They differ in a file that was changed, and a value that is
// refused was never in it.
func withoutPlaces(path string) func(string) string {
	at := regexp.MustCompile("config: " + regexp.QuoteMeta(path) + `(:\d+)?: `)
	return func(text string) string { return at.ReplaceAllString(text, "") }
}

// assign sets a value, and makes the objects and lists that it is in.
func assign(v *hujson.Value, name []string, value any) error {
	for i := 1; i < len(name); i++ {
		if v.Find(pointer(name[:i])) == nil {
			if err := patch(v, "add", name[:i], container(name[:i])); err != nil {
				return err
			}
		}
	}
	op := "add"
	if v.Find(pointer(name)) != nil {
		op = "replace"
	}
	return patch(v, op, name, value)
}

// remove removes a setting, by its name or the one it had before.
func remove(v *hujson.Value, path string, name, former []string) error {
	for _, n := range [][]string{name, former} {
		if v.Find(pointer(n)) != nil && n[0] != "" {
			return patch(v, "remove", n, nil)
		}
	}
	return fmt.Errorf("%s does not set %s", path, strings.Join(name, "."))
}

// problems returns what is wrong with data as the file at path: warnings, or an
// error.
func problems(path string, data []byte) (warnings []string, err error) {
	l := &Loaded{Config: Default(), File: path, Sources: map[string]string{}}
	if err := l.parse(data); err != nil {
		return nil, err
	}
	return l.Warnings, l.check()
}

// pointer returns the JSON pointer of a setting.
func pointer(name []string) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, n := range name {
		b.WriteString("/" + escape.Replace(n))
	}
	return b.String()
}

func patch(v *hujson.Value, op string, name []string, value any) error {
	step := map[string]any{"op": op, "path": pointer(name)}
	if op != "remove" {
		step["value"] = value
	}
	raw, err := json.Marshal([]any{step})
	if err != nil {
		return err
	}
	if err := v.Patch(raw); err != nil {
		return fmt.Errorf("%s cannot be set: %w", strings.Join(name, "."), err)
	}
	v.Format()
	return nil
}
