package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tailscale/hujson"
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
	l := &Loaded{Config: Default(), Home: home, File: filepath.Join(home, "config.json"), Sources: map[string]string{}}
	if f := getenv("GOCLAW_CONFIG"); f != "" {
		if l.File, err = filepath.Abs(f); err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
	}
	data, err := os.ReadFile(l.File)
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
	for i := range l.Session.MemoryFlush.Thresholds {
		if t := &l.Session.MemoryFlush.Thresholds[i]; t.InjectAs == "" {
			t.InjectAs = "marked"
		}
	}
	if err := l.check(); err != nil {
		return nil, err
	}
	if _, problem := l.Reserve(l.ContextWindow); problem != "" {
		l.Warnings = append(l.Warnings, problem)
	}
	if err := l.paths(getenv); err != nil {
		return nil, err
	}
	return l, nil
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
	return r.value(&v, reflect.ValueOf(&l.Config).Elem(), "")
}

// reader fills a Config from a syntax tree, knowing where everything stands.
type reader struct {
	l    *Loaded
	data []byte
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

var durationType = reflect.TypeFor[Duration]()

func (r *reader) value(v *hujson.Value, to reflect.Value, path string) error {
	if alias(v, to, path) {
		r.l.Sources[join(path, "enabled")] = r.where(v.StartOffset)
		return nil
	}
	lit, _ := v.Value.(hujson.Literal)
	if to.Type() == durationType {
		if lit.Kind() != '"' {
			return r.wrong(v, path, `a time such as "12h" or "30d"`)
		}
		d, err := ParseDuration(lit.String())
		if err != nil {
			return r.wrong(v, path, `a time such as "12h" or "30d"`)
		}
		to.SetInt(int64(d))
		r.l.Sources[path] = r.where(v.StartOffset)
		return nil
	}
	switch to.Kind() {
	case reflect.Struct:
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return r.wrong(v, path, "an object")
		}
		if strings.HasSuffix(path, "]") { // what it lacks is missing here
			r.l.Sources[path] = r.where(v.StartOffset)
		}
		return r.object(obj, to, path)
	case reflect.Map:
		obj, ok := v.Value.(*hujson.Object)
		if !ok {
			return r.wrong(v, path, "an object")
		}
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
	case reflect.String:
		if lit.Kind() != '"' {
			return r.wrong(v, path, "a text")
		}
		to.SetString(lit.String())
	case reflect.Bool:
		if k := lit.Kind(); k != 't' && k != 'f' {
			return r.wrong(v, path, "true or false")
		}
		to.SetBool(lit.Bool())
	case reflect.Int:
		n, err := strconv.Atoi(string(lit))
		if lit.Kind() != '0' || err != nil {
			return r.wrong(v, path, "a whole number")
		}
		to.SetInt(int64(n))
	case reflect.Float64:
		if lit.Kind() != '0' {
			return r.wrong(v, path, "a number")
		}
		to.SetFloat(lit.Float())
	}
	r.l.Sources[path] = r.where(v.StartOffset)
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
		if path == "session" && name == "storage" {
			name = "store"
		}
		if _, many := m.Value.Value.(*hujson.Object); many && path == "session.retention" && name == "ttl" {
			name = "ttlFor"
		}
		f, ok := fieldOf(to, name)
		if !ok {
			w := fmt.Sprintf("config: %s: unknown key %q", r.where(m.Name.StartOffset), join(path, name))
			if near := Nearest(name, names(to)); near != "" {
				w += fmt.Sprintf(" (did you mean %q?)", near)
			}
			r.l.Warnings = append(r.l.Warnings, w)
			continue
		}
		if err := r.value(&m.Value, f, join(path, name)); err != nil {
			return err
		}
	}
	return nil
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

// Leaf is one value of a configuration.
type Leaf struct {
	Key   string
	Value any
	Doc   string
}

// Leaves returns every value in the order of the file. Keys are not shown.
func (c *Config) Leaves() []Leaf {
	var out []Leaf
	leaves(reflect.ValueOf(c).Elem(), "", "", &out)
	return out
}

func leaves(v reflect.Value, path, doc string, out *[]Leaf) {
	switch {
	case v.Type() == durationType:
		*out = append(*out, Leaf{path, Duration(v.Int()).String(), doc})
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			leaves(v.Field(i), join(path, f.Tag.Get("json")), f.Tag.Get("doc"), out)
		}
	case v.Kind() == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			leaves(v.MapIndex(k), join(path, k.String()), doc, out)
		}
	case strings.HasSuffix(path, ".apiKey"):
		*out = append(*out, Leaf{path, Mask(v.String()), doc})
	default:
		*out = append(*out, Leaf{path, v.Interface(), doc})
	}
}

// Mask hides a secret but for its last four characters.
func Mask(s string) string {
	switch {
	case s == "":
		return ""
	case len(s) < 12:
		return "****"
	}
	return "****" + s[len(s)-4:]
}

// environment applies $ANTHROPIC_API_KEY and its like, and $GOCLAW_A_B for
// the value a.b.
func (l *Loaded) environment(getenv func(string) string) error {
	if l.Providers == nil {
		l.Providers = map[string]Provider{}
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
	return l.override(reflect.ValueOf(&l.Config).Elem(), "", getenv)
}

func (l *Loaded) override(v reflect.Value, path string, getenv func(string) string) error {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if err := l.override(v.Field(i), join(path, v.Type().Field(i).Tag.Get("json")), getenv); err != nil {
				return err
			}
		}
		return nil
	}
	env := EnvName(path)
	text := getenv(env)
	if text == "" || v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return nil
	}
	bad := func(want string) error { return fmt.Errorf("config: $%s must be %s, not %q", env, want, text) }
	switch {
	case v.Type() == durationType:
		d, err := ParseDuration(text)
		if err != nil {
			return bad(`a time such as 12h or 30d`)
		}
		v.SetInt(int64(d))
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return bad("true or false")
		}
		v.SetBool(b)
	case v.Kind() == reflect.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return bad("a whole number")
		}
		v.SetInt(int64(n))
	}
	l.Sources[path] = "$" + env
	return nil
}

const envPrefix = "GOCLAW_"

// otherVariables are read by goclaw and stand for no setting.
var otherVariables = []string{"GOCLAW_HOME", "GOCLAW_CONFIG", "GOCLAW_NO_LOCAL"}

// strayVariables warns of variables that look like ours and set nothing.
func (l *Loaded) strayVariables(getenv func(string) string, environ []string) {
	known, lists := append([]string(nil), otherVariables...), map[string]string{}
	var walk func(v reflect.Value, path string)
	walk = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i), join(path, v.Type().Field(i).Tag.Get("json")))
			}
		case reflect.Map, reflect.Slice:
			lists[EnvName(path)] = path
		default:
			known = append(known, EnvName(path))
		}
	}
	walk(reflect.ValueOf(l.Config), "")
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

// nearestVariable is Nearest without the prefix, which all of them share.
func nearestVariable(name string, known []string) string {
	var rest []string
	for _, k := range known {
		rest = append(rest, strings.TrimPrefix(k, envPrefix))
	}
	if near := Nearest(strings.TrimPrefix(name, envPrefix), rest); near != "" {
		return envPrefix + near
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

// maxBashTimeout is the longest that the tool takes.
const maxBashTimeout = 10 * time.Minute

// Formats are the values of session.inherit.format. OpenClaw's is also called
// jsonl, after the form of its transcripts.
var Formats = []string{"auto", "openclaw", "jsonl", "pi", "claw0", "claude-code", "codex", "goclaw"}

// either joins the values of a choice: "a, b or c".
func either(of []string) string {
	last := len(of) - 1
	if last < 1 {
		return strings.Join(of, "")
	}
	return strings.Join(of[:last], ", ") + " or " + of[last]
}

// check refuses values that no other value would make right.
func (l *Loaded) check() error {
	oneOf := func(key, got string, want ...string) error {
		for _, w := range want {
			if got == w {
				return nil
			}
		}
		hint := ""
		if n := Nearest(got, want); n != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", n)
		}
		named := want
		if named[0] == "" { // nothing said is fine, too
			named = named[1:]
		}
		return fmt.Errorf("config: %s: %s must be %s, not %q%s", l.Source(key), key, either(named), got, hint)
	}
	atLeast := func(key string, got, least int) error {
		if got >= least {
			return nil
		}
		return fmt.Errorf("config: %s: %s must be at least %d, not %d", l.Source(key), key, least, got)
	}
	required := func(key, got, why string) error {
		if strings.TrimSpace(got) != "" {
			return nil
		}
		return fmt.Errorf("config: %s: %s must not be empty%s", l.Source(key), key, why)
	}
	endpoint := func(key, got string) error {
		if l.Search.Embeddings != "endpoint" || strings.TrimSpace(got) != "" {
			return nil
		}
		return fmt.Errorf(`config: %s: search.embeddings is "endpoint", which needs %s`, l.Source("search.embeddings"), key)
	}
	address := func(key, got string) error {
		if u, err := url.Parse(got); got != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return fmt.Errorf("config: %s: %s must be an address such as http://127.0.0.1:8000/v1, not %q", l.Source(key), key, got)
		}
		return nil
	}
	s := l.Session
	errs := []error{
		oneOf("session.store", s.Store, "sqlite", "jsonl"),
		oneOf("session.layout", s.Layout, "openclaw", "claw0", "claw0-old"),
		oneOf("session.retention.expired", s.Retention.Expired, "keep", "trash"),
		oneOf("tools.bash", l.Tools.Bash, "ask", "on", "off"),
		oneOf("search.embeddings", l.Search.Embeddings, "builtin", "off", "endpoint"),
		oneOf("thinking", l.Thinking, "", "off", "minimal", "low", "medium", "high", "xhigh"),
		atLeast("contextWindow", l.ContextWindow, 0),
		atLeast("maxTokens", l.MaxTokens, 0),
		atLeast("session.compaction.reserveTokens", s.Compaction.ReserveTokens, 0),
		atLeast("session.checkpoint.turnThreshold", s.Checkpoint.TurnThreshold, 0),
		atLeast("session.checkpoint.minTokensForGen", s.Checkpoint.MinTokens, 0),
		oneOf("session.inherit.format", s.Inherit.Format, Formats...),
		required("session.defaultKey", s.DefaultKey, ""),
		address("search.baseUrl", l.Search.BaseURL),
		endpoint("search.baseUrl", l.Search.BaseURL),
		endpoint("search.model", l.Search.Model),
	}
	if s.Shared && s.Store != "jsonl" {
		errs = append(errs, fmt.Errorf(`config: %s: session.shared is for the jsonl store, and session.store is %q`, l.Source("session.shared"), s.Store))
	}
	if t := time.Duration(l.Tools.BashTimeout); t > maxBashTimeout {
		errs = append(errs, fmt.Errorf("config: %s: tools.bashTimeout must be at most %s, not %s", l.Source("tools.bashTimeout"), Duration(maxBashTimeout), Duration(t)))
	}
	for i, t := range s.MemoryFlush.Thresholds {
		key := fmt.Sprintf("session.memoryFlush.thresholds[%d]", i)
		if t.Percent < 1 || t.Percent > 99 {
			errs = append(errs, fmt.Errorf("config: %s: %s.percent must be from 1 to 99, not %d", l.Source(key+".percent"), key, t.Percent))
		}
		errs = append(errs, required(key+".prompt", t.Prompt, ": it is what the model is told"), oneOf(key+".injectAs", t.InjectAs, "system", "user", "marked"))
	}
	for i, n := range s.Checkpoint.TokenPercents {
		if n < 1 || n > 99 {
			key := fmt.Sprintf("session.checkpoint.tokenThresholdPercents[%d]", i)
			errs = append(errs, fmt.Errorf("config: %s: %s must be from 1 to 99, not %d", l.Source(key), key, n))
		}
	}
	for name, m := range l.Models {
		key := "models." + name
		errs = append(errs, atLeast(key+".contextWindow", m.ContextWindow, 0), atLeast(key+".maxTokens", m.MaxTokens, 0))
		for field, price := range map[string]float64{".inputPrice": m.InputPrice, ".outputPrice": m.OutputPrice} {
			if price < 0 {
				errs = append(errs, fmt.Errorf("config: %s: %s must be at least 0, not %v", l.Source(key+field), key+field, price))
			}
		}
	}
	for name, p := range l.Providers {
		errs = append(errs, address("providers."+name+".baseUrl", p.BaseURL))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Source says where the value of key came from. What is missing in an object
// that was given comes from where that object stands.
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
