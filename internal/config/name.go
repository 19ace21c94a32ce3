package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"goclaw/internal/near"
)

// Name splits a key such as models.openai/gpt-4.1.contextWindow or
// agents.list[0].id into the names that lead to the setting, or to the object or
// list, that it stands for. The name of an entry may have dots; one that would be
// misread is put in quotes: models."a.maxTokens". An older name is replaced with
// the one of today.
func Name(key string) ([]string, error) {
	if now := renamed[key]; now != "" {
		key = now
	}
	if key == "" {
		return nil, fmt.Errorf("config: there is no setting without a name")
	}
	return resolve(reflect.TypeFor[Config](), key, "")
}

// Keys returns the names of all settings, in the order of the file.
func Keys() []string {
	var out []string
	visitAll(func(s setting) { out = append(out, s.key) })
	return out
}

// visitAll calls visit for every setting. NAME and [] stand for the name or the
// number of an entry.
func visitAll(visit func(setting)) {
	walk(setting{value: reflect.ValueOf(Default())}, func(s setting) bool {
		if visit(s); !s.many() || s.value.Type().Elem().Kind() != reflect.Struct {
			return false
		}
		name := s.key + ".NAME"
		if s.value.Kind() == reflect.Slice {
			name = s.key + "[]"
		}
		walk(setting{key: name, value: reflect.New(s.value.Type().Elem()).Elem()}, func(s setting) bool {
			visit(s)
			return false
		})
		return false
	})
}

// Choices returns what the setting key can be; nil: anything of its kind.
func Choices(key string) []string {
	var out []string
	walk(setting{value: reflect.ValueOf(Default())}, func(s setting) bool {
		rule := strings.TrimPrefix(s.tag.Get("rule"), "empty or ")
		switch choices, ok := strings.CutPrefix(rule, "one of "); {
		case s.key != key:
		case ok:
			out = strings.Fields(choices)
		case s.value.Kind() == reflect.Bool:
			out = []string{"true", "false"}
		}
		return false
	})
	return out
}

// resolve splits key, which is below path, by the type of what is there.
func resolve(t reflect.Type, key, path string) ([]string, error) {
	switch {
	case key == "":
		return nil, nil
	case t.Kind() == reflect.Struct:
		return field(t, key, path)
	case t.Kind() == reflect.Map:
		return entry(t.Elem(), key, path)
	case t.Kind() == reflect.Slice:
		number, rest, ok := strings.Cut(strings.TrimPrefix(key, "["), "]")
		if n, err := strconv.Atoi(number); !ok || err != nil || n < 0 || key[0] != '[' {
			return nil, fmt.Errorf("config: %s is a list: %s[0] is its first element", path, path)
		}
		names, err := resolve(t.Elem(), strings.TrimPrefix(rest, "."), path+"["+number+"]")
		return append([]string{number}, names...), err
	}
	return nil, fmt.Errorf("config: %s has no settings in it: there is no %s", path, join(path, key))
}

// field resolves a key that begins with the name of a field of t.
func field(t reflect.Type, key, path string) ([]string, error) {
	name, rest := key, ""
	if i := strings.IndexAny(key, ".["); i >= 0 {
		name, rest = key[:i], strings.TrimPrefix(key[i:], ".")
	}
	zero := reflect.New(t).Elem()
	f, ok := fieldOf(zero, name)
	if !ok {
		return nil, unknownKey(join(path, name), near.Nearest(name, names(zero)), path)
	}
	below, err := resolve(f.Type(), rest, join(path, name))
	return append([]string{name}, below...), err
}

// entry resolves a key that begins with the name of an entry, whose type is t.
func entry(t reflect.Type, key, path string) ([]string, error) {
	if rest, ok := strings.CutPrefix(key, `"`); ok {
		name, rest, ok := strings.Cut(rest, `"`)
		if !ok {
			return nil, fmt.Errorf("config: a quote is missing in %s.%s", path, key)
		}
		below, err := resolve(t, strings.TrimPrefix(rest, "."), join(path, name))
		return append([]string{name}, below...), err
	}
	if t.Kind() != reflect.Struct {
		return []string{key}, nil
	}
	for i := len(key) - 1; i > 0; i-- {
		if key[i] != '.' {
			continue
		}
		if below, err := resolve(t, key[i+1:], join(path, key[:i])); err == nil {
			return append([]string{key[:i]}, below...), nil
		}
	}
	if i := strings.LastIndexByte(key, '.'); i > 0 {
		if meant := near.Nearest(key[i+1:], names(reflect.New(t).Elem())); meant != "" {
			return nil, unknownKey(join(path, key), meant, join(path, key[:i]))
		}
	}
	return []string{key}, nil
}

// unknownKey is the error for a key that sets nothing. meant is the name below
// path that it may be a misspelling of; else any setting with such a name is
// looked for.
func unknownKey(key, meant, path string) error {
	if meant != "" {
		meant = join(path, meant)
	} else {
		last := key[strings.LastIndexByte(key, '.')+1:]
		at := slices.IndexFunc(Keys(), func(k string) bool { return strings.HasSuffix(strings.ToLower(k), "."+strings.ToLower(last)) })
		if at >= 0 {
			meant = Keys()[at]
		} else {
			meant = near.Nearest(key, Keys())
		}
	}
	if meant == "" {
		return fmt.Errorf("config: there is no setting %q: goclaw config lists them", key)
	}
	return fmt.Errorf("config: there is no setting %q: did you mean %s?", key, meant)
}

// meaning is what a setting means.
func meaning(name []string) (doc string) {
	for i := range name { // models.NAME.maxTokens
		for _, key := range []string{strings.Join(name, "."), strings.Join(slices.Concat(name[:i], []string{"NAME"}, name[i+1:]), ".")} {
			visitAll(func(s setting) {
				if s.key == key {
					doc = s.doc()
				}
			})
		}
	}
	return doc
}

// Meaning says what a setting of Keys means.
func Meaning(key string) string { return meaning(strings.Split(key, ".")) }

// Variable returns the environment variable of a setting of Keys; "" if it has
// none.
func Variable(key string) (name string) {
	walk(setting{value: reflect.ValueOf(Default())}, func(s setting) bool {
		if s.key == key && !s.many() {
			name = EnvName(key)
		}
		return false
	})
	return name
}

// Entries returns the names of the entries of an object such as models or
// mcpServers, sorted.
func (l *Loaded) Entries(key string) []string {
	f, ok := fieldOf(reflect.ValueOf(l.Config), key)
	if !ok || f.Kind() != reflect.Map {
		return nil
	}
	var out []string
	for _, k := range f.MapKeys() {
		out = append(out, k.String())
	}
	slices.Sort(out)
	return out
}

// container returns what a setting below name is put into: an empty list or
// object.
func container(name []string) any {
	t := reflect.TypeFor[Config]()
	for _, n := range name {
		switch t.Kind() {
		case reflect.Struct:
			f, ok := fieldOf(reflect.New(t).Elem(), n)
			if !ok {
				return map[string]any{}
			}
			t = f.Type()
		case reflect.Map, reflect.Slice:
			t = t.Elem()
		}
	}
	if t.Kind() == reflect.Slice {
		return []any{}
	}
	return map[string]any{}
}
