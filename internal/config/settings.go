package config

import (
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"goclaw/internal/near"
	"goclaw/internal/secrets"
)

// setting is one value of a configuration, with the tags of its field.
type setting struct {
	key   string
	value reflect.Value
	tag   reflect.StructTag
}

var durationType = reflect.TypeFor[Duration]()

// many reports whether s is a list or an object with keys of the user's.
func (s setting) many() bool { return s.value.Kind() == reflect.Map || s.value.Kind() == reflect.Slice }

// walk calls visit for every setting below s, in the order of the file. If visit
// returns true for a list or an object, its elements follow.
func walk(s setting, visit func(setting) (inside bool)) {
	v := s.value
	switch {
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			walk(setting{join(s.key, f.Tag.Get("json")), v.Field(i), f.Tag}, visit)
		}
	case !visit(s):
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
		for _, k := range keys {
			walk(setting{join(s.key, k.String()), v.MapIndex(k), s.tag}, visit)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			walk(setting{fmt.Sprintf("%s[%d]", s.key, i), v.Index(i), s.tag}, visit)
		}
	}
}

// set gives to the value that text stands for, if it stands for one.
func set(to reflect.Value, text string) bool {
	var v any
	var err error
	switch to.Interface().(type) {
	case Duration:
		v, err = ParseDuration(text)
	case string:
		v = text
	case bool:
		v, err = strconv.ParseBool(text)
	case int:
		v, err = strconv.Atoi(text)
	case float64:
		f, e := strconv.ParseFloat(text, 64)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
		v, err = f, e
	}
	if err == nil {
		to.Set(reflect.ValueOf(v))
	}
	return err == nil
}

// wanted says what set accepts.
func wanted(to reflect.Value) string {
	switch to.Interface().(type) {
	case Duration:
		return `a time such as "12h" or "30d"`
	case bool:
		return "true or false"
	case int:
		return "a whole number"
	case float64:
		return "a number"
	}
	return "a text"
}

// Leaf is one value of a configuration.
type Leaf struct {
	Key   string
	Value any
}

// Leaves returns every value in the order of the file. API keys are masked, and
// passwords and keys in addresses are taken out.
func (c *Config) Leaves() []Leaf {
	var out []Leaf
	walk(setting{value: reflect.ValueOf(c).Elem()}, func(s setting) bool {
		switch v := s.value.Interface().(type) {
		case Duration:
			out = append(out, Leaf{s.key, v.String()})
		case string:
			if strings.HasSuffix(s.key, ".apiKey") || strings.HasPrefix(s.key, "mcpServers.") && (strings.Contains(s.key, ".env.") || strings.Contains(s.key, ".headers.")) {
				v = secrets.Mask(v)
			} else if s.key == "session.path" {
				v = c.Session.Place()
			} else {
				v, _ = secrets.Redact(v)
			}
			out = append(out, Leaf{s.key, v})
		default:
			if s.value.Kind() == reflect.Map || s.key == "agents.list" { // it may have keys
				return true
			}
			out = append(out, Leaf{s.key, v})
		}
		return false
	})
	return out
}

// maxBashTimeout is the longest that the tool accepts.
const maxBashTimeout = 10 * time.Minute

// check refuses values that break their rule, or do not go with others.
func (l *Loaded) check() (err error) {
	wrong := func(key, format string, args ...any) {
		if err == nil {
			err = fmt.Errorf("config: %s: %s", l.Source(key), fmt.Sprintf(format, args...))
		}
	}
	walk(setting{value: reflect.ValueOf(l.Config)}, func(s setting) bool {
		if problem := s.breaks(); problem != "" {
			wrong(s.key, "%s must %s", s.key, problem)
		}
		return true
	})
	if s := l.Search; s.Embeddings == "endpoint" && (s.BaseURL == "" || strings.TrimSpace(s.Model) == "") {
		missing := "search.baseUrl"
		if s.BaseURL != "" {
			missing = "search.model"
		}
		wrong("search.embeddings", `search.embeddings is "endpoint", which needs %s`, missing)
	}
	switch s := &l.Session; {
	case IsDSN(s.Path) && l.Source("session.store") == "default":
		s.Store = "postgres"
		l.Sources["session.store"] = l.Source("session.path")
	case IsDSN(s.Path) && s.Store != "postgres":
		wrong("session.path", "session.path is the address of a PostgreSQL database, and session.store is %q", s.Store)
	case s.Store == "postgres" && s.Path == "":
		wrong("session.store", `session.store is "postgres", which needs session.path (postgres://user@host/name)`)
	}
	if s := l.Session; s.Shared && s.Store != "jsonl" {
		wrong("session.shared", "session.shared is for the jsonl store, and session.store is %q", s.Store)
	}
	if t := l.Tools.BashTimeout; t > Duration(maxBashTimeout) {
		wrong("tools.bashTimeout", "tools.bashTimeout must be at most %s, not %s", Duration(maxBashTimeout), t)
	}
	return err
}

// breaks says how the value of s breaks its rule: "be at least 0, not -1".
func (s setting) breaks() string {
	if s.many() {
		return ""
	}
	rule, got := s.tag.Get("rule"), fmt.Sprint(s.value.Interface())
	optional := false
	if rest, ok := strings.CutPrefix(rule, "empty or "); ok {
		rule, optional = rest, true
	}
	choices, isChoice := strings.CutPrefix(rule, "one of ")
	switch {
	case optional && got == "":
	case isChoice:
		if names := strings.Fields(choices); !slices.Contains(names, got) {
			hint := ""
			if n := near.Nearest(got, names); n != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", n)
			}
			return fmt.Sprintf("be %s, not %q%s", either(names), got, hint)
		}
	case rule == "not empty" && strings.TrimSpace(got) == "":
		return "not be empty"
	case rule == "an address" && got != "":
		if u, err := url.Parse(got); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Sprintf("be an address such as http://127.0.0.1:8000/v1, not %q", got)
		}
	case rule == "at least 0" && strings.HasPrefix(got, "-"):
		return "be at least 0, not " + got
	case rule == "0 to 1":
		if f := s.value.Float(); f < 0 || f > 1 {
			return "be from 0 to 1, not " + got
		}
	case rule == "1 to 99":
		if n := s.value.Int(); n < 1 || n > 99 {
			return "be from 1 to 99, not " + got
		}
	}
	return ""
}

// either joins choices: "a, b or c".
func either(of []string) string {
	last := len(of) - 1
	return strings.Join(of[:last], ", ") + " or " + of[last]
}

// doc says what a setting means, and what it can be.
func (s setting) doc() string {
	doc, rule := s.tag.Get("doc"), strings.TrimPrefix(s.tag.Get("rule"), "empty or ")
	if choices, ok := strings.CutPrefix(rule, "one of "); ok {
		doc += " (" + either(strings.Fields(choices)) + ")"
	}
	return doc
}
