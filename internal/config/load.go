package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tailscale/hujson"

	"goclaw/internal/near"
	"goclaw/internal/wholefile"
)

// Loaded is a configuration and where each value came from.
type Loaded struct {
	Config
	Home     string
	File     string            // the file that was read, or would be
	Sources  map[string]string // by key: "default", "FILE:LINE" or "$NAME"
	Warnings []string
}

// Load reads home/config.json, if it is there, and the environment. A wrong
// value is an error that says file, line, key and what would be right; an
// unknown key is a warning, and so is an unknown GOCLAW_ variable in environ,
// which lists NAME=value as os.Environ does.
func Load(getenv func(string) string, environ []string) (*Loaded, error) {
	home, err := Home(getenv)
	if err != nil {
		return nil, err
	}
	l := &Loaded{Config: Default(), Home: home, Sources: map[string]string{}}
	if l.File, err = Path(getenv); err != nil {
		return nil, err
	}
	data, err := wholefile.Read(l.File, wholefile.Small)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if getenv("GOCLAW_CONFIG") != "" {
			return nil, fmt.Errorf("config: %s does not exist", l.File)
		}
	case err != nil:
		return nil, fmt.Errorf("config: %w", err)
	default:
		if err := l.parse(data); err != nil {
			return nil, err
		}
	}
	if err := l.environment(getenv); err != nil {
		return nil, err
	}
	l.strayVariables(getenv, environ)
	l.vectors(getenv)
	if err := l.check(); err != nil {
		return nil, err
	}
	if _, problem := l.Reserve(l.ContextWindow); problem != "" {
		l.Warnings = append(l.Warnings, problem)
	}
	if err := l.paths(getenv); err != nil {
		return nil, err
	}
	l.complete()
	return l, nil
}

// Path returns where the configuration file is, or would be.
func Path(getenv func(string) string) (string, error) {
	if f := getenv("GOCLAW_CONFIG"); f != "" {
		path, err := filepath.Abs(f)
		if err != nil {
			return "", fmt.Errorf("config: %w", err)
		}
		return path, nil
	}
	home, err := Home(getenv)
	return filepath.Join(home, "config.json"), err
}

func (l *Loaded) parse(data []byte) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	v, err := hujson.Parse(data)
	if err != nil {
		// Nothing but blanks and comments is an empty configuration.
		if _, e := hujson.Parse(append(bytes.Clone(data), "\n{}"...)); e == nil {
			return nil
		}
		return fmt.Errorf("config: %s: %s", l.File, strings.TrimPrefix(err.Error(), "hujson: "))
	}
	r := reader{l: l, data: data}
	if err := r.value(&v, reflect.ValueOf(&l.Config).Elem(), ""); err != nil {
		return err
	}
	for i := range l.Session.MemoryFlush.Thresholds {
		if t := &l.Session.MemoryFlush.Thresholds[i]; t.InjectAs == "" {
			t.InjectAs = "marked"
		}
	}
	if len(r.unused.keys) > 0 {
		l.Warnings = append(l.Warnings, r.unused.warning())
	}
	return nil
}

// reader fills a Config from a syntax tree, and remembers the line of each value.
type reader struct {
	l       *Loaded
	data    []byte
	unused  unused
	lenient bool // the file is another program's: a wrong value is a warning
}

func (r *reader) where(off int) string {
	return fmt.Sprintf("%s:%d", r.l.File, 1+bytes.Count(r.data[:min(off, len(r.data))], []byte("\n")))
}

func (r *reader) wrong(v *hujson.Value, path, want string) error {
	if path == "" {
		path = "the configuration"
	}
	return fmt.Errorf("config: %s: %s must be %s, not %s", r.where(v.StartOffset), path, want, strings.TrimSpace(brief(v)))
}

func brief(v *hujson.Value) string {
	c := v.Clone()
	c.Minimize()
	s := string(c.Pack())
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	return s
}

// value sets to from v.
func (r *reader) value(v *hujson.Value, to reflect.Value, path string) error {
	if alias(v, to, path) {
		r.l.Sources[join(path, "enabled")] = r.where(v.StartOffset)
		return nil
	}
	switch to.Kind() {
	case reflect.Struct, reflect.Map:
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return r.wrong(v, path, "an object")
		}
		if strings.HasSuffix(path, "]") { // the place of what it lacks
			r.l.Sources[path] = r.where(v.StartOffset)
		}
		if to.Kind() == reflect.Map {
			return r.entries(obj, to, path)
		}
		return r.object(obj, to, path)
	case reflect.Slice:
		arr, ok := v.Value.(*hujson.Array)
		if !ok {
			return r.wrong(v, path, "a list")
		}
		out := reflect.MakeSlice(to.Type(), len(arr.Elements), len(arr.Elements))
		for i := range arr.Elements {
			if err := r.value(&arr.Elements[i], out.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		to.Set(out)
	default:
		lit, _ := v.Value.(hujson.Literal)
		text, kind := string(lit), lit.Kind()
		if kind == '"' {
			text = lit.String()
		}
		quoted := to.Kind() == reflect.String || to.Type() == durationType
		if quoted != (kind == '"') || !set(to, text) {
			return r.wrong(v, path, wanted(to))
		}
	}
	r.l.Sources[path] = r.where(v.StartOffset)
	return nil
}

// renamed are older names of settings. A file and the environment may have them.
var renamed = map[string]string{"session.storage": "session.store", "limits.costPerTurn": "limits.perTurn", "limits.costPerDay": "limits.perDay"}

// older returns the older name of key, "" if it has none.
func older(key string) string {
	for old, now := range renamed {
		if now == key {
			return old
		}
	}
	return ""
}

// entries adds the members of obj to a map.
func (r *reader) entries(obj *hujson.Object, to reflect.Value, path string) error {
	if to.IsNil() {
		to.Set(reflect.MakeMap(to.Type()))
	}
	for i := range obj.Members {
		name := obj.Members[i].Name.Value.(hujson.Literal).String()
		elem := reflect.New(to.Type().Elem()).Elem()
		if err := r.value(&obj.Members[i].Value, elem, join(path, name)); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(name), elem)
	}
	return nil
}

// alias takes the older spelling "inherit": true.
func alias(v *hujson.Value, to reflect.Value, path string) bool {
	lit, ok := v.Value.(hujson.Literal)
	if path != "session.inherit" || !ok || lit.Kind() != 't' && lit.Kind() != 'f' {
		return false
	}
	to.FieldByName("Enabled").SetBool(lit.Bool())
	return true
}

func (r *reader) object(obj *hujson.Object, to reflect.Value, path string) error {
	for i := range obj.Members {
		m := &obj.Members[i]
		name := m.Name.Value.(hujson.Literal).String()
		if now := renamed[join(path, name)]; now != "" {
			name = now[strings.LastIndexByte(now, '.')+1:]
		}
		if _, many := m.Value.Value.(*hujson.Object); many && path == "session.retention" && name == "ttl" {
			name = "ttlFor"
		}
		f, ok := fieldOf(to, name)
		if !ok {
			r.unknown(m, join(path, name), near.Nearest(name, names(to)))
			continue
		}
		switch err := r.value(&m.Value, f, join(path, name)); {
		case err == nil:
		case !r.lenient:
			return err
		default:
			r.l.Warnings = append(r.l.Warnings, err.Error())
		}
	}
	return nil
}

// unknown warns of a key that sets nothing, and names the one it may have been
// meant to be.
func (r *reader) unknown(m *hujson.ObjectMember, key, meant string) {
	switch {
	case r.lenient:
	case strings.HasPrefix(key, agentsKey+".") && meant == "":
		r.unused.add(r.where(m.Name.StartOffset), key)
	default:
		w := fmt.Sprintf("config: %s: unknown key %q", r.where(m.Name.StartOffset), key)
		if meant != "" {
			w += fmt.Sprintf(" (did you mean %q?)", meant)
		}
		r.l.Warnings = append(r.l.Warnings, w)
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fieldOf(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func names(v reflect.Value) []string {
	var out []string
	for i := range v.NumField() {
		out = append(out, v.Type().Field(i).Tag.Get("json"))
	}
	return out
}

// environment applies $ANTHROPIC_API_KEY and its like, and then $GOCLAW_....
func (l *Loaded) environment(getenv func(string) string) error {
	if l.Providers == nil {
		l.Providers = map[string]Provider{}
	}
	for name, p := range l.Providers {
		if ref, ok := strings.CutPrefix(p.APIKey, "${"); ok {
			p.APIKey = getenv(strings.TrimSuffix(ref, "}"))
			l.Providers[name] = p
		}
	}
	for _, name := range []string{"anthropic", "openai"} {
		p := l.Providers[name]
		up := strings.ToUpper(name)
		for _, e := range []struct {
			env, key string
			to       *string
		}{{up + "_API_KEY", "apiKey", &p.APIKey}, {up + "_BASE_URL", "baseUrl", &p.BaseURL}} {
			if v := getenv(e.env); v != "" && *e.to == "" {
				*e.to = v
				l.Sources["providers."+name+"."+e.key] = "$" + e.env
			}
		}
		l.Providers[name] = p
	}
	return l.override(getenv)
}

// override applies $GOCLAW_A_B to the setting a.b. Lists and objects have no
// variable.
func (l *Loaded) override(getenv func(string) string) (err error) {
	walk(setting{value: reflect.ValueOf(&l.Config).Elem()}, func(s setting) bool {
		env := EnvName(s.key)
		if old := older(s.key); old != "" && getenv(env) == "" {
			env = EnvName(old)
		}
		if text := getenv(env); text != "" && !s.many() && err == nil {
			if set(s.value, text) {
				l.Sources[s.key] = "$" + env
			} else {
				err = fmt.Errorf("config: $%s must be %s, not %q", env, wanted(s.value), text)
			}
		}
		return false
	})
	return err
}

const envPrefix = "GOCLAW_"

// otherVariables are read by goclaw and are no settings.
var otherVariables = []string{"GOCLAW_HOME", "GOCLAW_CONFIG", "GOCLAW_NO_LOCAL"}

// strayVariables warns of variables that look like goclaw's and set nothing.
func (l *Loaded) strayVariables(getenv func(string) string, environ []string) {
	known, lists := append([]string(nil), otherVariables...), map[string]string{}
	walk(setting{value: reflect.ValueOf(l.Config)}, func(s setting) bool {
		if s.many() {
			lists[EnvName(s.key)] = s.key
		} else {
			known = append(known, EnvName(s.key))
			if old := older(s.key); old != "" {
				known = append(known, EnvName(old))
			}
		}
		return false
	})
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) || getenv(name) == "" || slices.Contains(known, name) {
			continue
		}
		if key := lists[name]; key != "" {
			l.Warnings = append(l.Warnings, fmt.Sprintf("config: $%s is not read: %s has more than one value, set it in %s", name, key, l.File))
			continue
		}
		w := fmt.Sprintf("config: there is no setting for $%s", name)
		if near := nearestVariable(name, known); near != "" {
			w += fmt.Sprintf(" (did you mean $%s?)", near)
		}
		l.Warnings = append(l.Warnings, w)
	}
}

// nearestVariable is near.Nearest without the prefix, which all of them share.
func nearestVariable(name string, known []string) string {
	var rest []string
	for _, k := range known {
		rest = append(rest, strings.TrimPrefix(k, envPrefix))
	}
	if n := near.Nearest(strings.TrimPrefix(name, envPrefix), rest); n != "" {
		return envPrefix + n
	}
	return ""
}

// EnvName returns the environment variable of a key: session.defaultKey is
// GOCLAW_SESSION_DEFAULT_KEY.
func EnvName(path string) string {
	var b strings.Builder
	b.WriteString(envPrefix)
	for i, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(path[i-1])):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// Source says where the value of key came from. What an object in the file lacks
// has the source of that object.
func (l *Loaded) Source(key string) string {
	for {
		if s, ok := l.Sources[key]; ok {
			return s
		}
		if cut, ok := strings.CutSuffix(key, "]"); ok {
			key = cut[:strings.LastIndexByte(cut, '[')]
			continue
		}
		i := strings.LastIndexByte(key, '.')
		if i < 0 || !strings.Contains(key[:i], "[") {
			return "default"
		}
		key = key[:i]
	}
}

var durationForm = regexp.MustCompile(`^(?:([\d.]+)w)?(?:([\d.]+)d)?([\d.].*)?$`)

// ParseDuration reads 30s, 90m, 12h, 30d, 2w, and several of them together, the
// largest first: 3d12h. "" is none.
func ParseDuration(s string) (Duration, error) {
	wrong := fmt.Errorf("%q is not a time such as 12h, 30d or 3d12h", s)
	m := durationForm.FindStringSubmatch(s)
	if m == nil {
		return 0, wrong
	}
	var sum time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.ParseFloat(m[i+1], 64)
		if err != nil || n > 100_000/float64(7-6*i) {
			return 0, wrong
		}
		sum += time.Duration(n * float64(unit))
	}
	if m[3] != "" {
		d, err := time.ParseDuration(m[3])
		if err != nil {
			return 0, wrong
		}
		sum += d
	}
	return Duration(sum), nil
}

func (d Duration) String() string {
	t, day := time.Duration(d), 24*time.Hour
	switch {
	case t == 0:
		return ""
	case t >= day:
		return fmt.Sprintf("%dd", t/day) + Duration(t%day).String()
	}
	s := t.String()
	if cut, ok := strings.CutSuffix(s, "m0s"); ok {
		s = cut + "m"
	}
	if cut, ok := strings.CutSuffix(s, "h0m"); ok {
		s = cut + "h"
	}
	return s
}
