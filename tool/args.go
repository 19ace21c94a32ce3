package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"goclaw/llm"
)

// schema is a tool's schema, ready to judge arguments and to say in words
// what is wrong with them.
type schema struct {
	name  string
	raw   *jsonschema.Schema
	whole *jsonschema.Resolved
	props map[string]*jsonschema.Resolved // those that stand on their own
}

// compiled are the schemas that were used already. A server has a Set for each
// session, most with the same tools, and a schema takes longer than all else in
// making one. Nothing changes a schema.
var compiled struct {
	sync.Mutex
	of map[string]*schema
}

// maxCompiled is how many schemas are kept: servers' tools may come and go.
const maxCompiled = 500

// compile returns the schema of a tool.
func compile(spec llm.ToolSpec) (*schema, error) {
	key := spec.Name + "\x00" + string(spec.Schema)
	compiled.Lock()
	s := compiled.of[key]
	compiled.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := parse(spec)
	if err != nil {
		return nil, err
	}
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.of == nil || len(compiled.of) >= maxCompiled {
		compiled.of = map[string]*schema{}
	}
	compiled.of[key] = s
	return s, nil
}

func parse(spec llm.ToolSpec) (*schema, error) {
	raw := new(jsonschema.Schema)
	if err := json.Unmarshal(spec.Schema, raw); err != nil {
		return nil, fmt.Errorf("tool: schema of %s: %w", spec.Name, err)
	}
	if raw.Type != "object" {
		return nil, fmt.Errorf("tool: schema of %s: type is %q, want object", spec.Name, raw.Type)
	}
	whole, err := raw.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("tool: schema of %s: %w", spec.Name, err)
	}
	s := &schema{name: spec.Name, raw: raw, whole: whole, props: map[string]*jsonschema.Resolved{}}
	for name, p := range raw.Properties {
		// A property that refers elsewhere in the schema does not resolve
		// alone; the message about it is then the validator's own.
		if r, err := p.CloneSchemas().Resolve(nil); err == nil {
			s.props[name] = r
		}
	}
	return s, nil
}

// check returns what is wrong with args, for the model to read, or "".
func (s *schema) check(args json.RawMessage) string {
	var v map[string]any
	if err := json.Unmarshal(args, &v); err != nil || v == nil {
		return s.notJSON(string(args), err)
	}
	if text, ok := v["_raw"].(string); ok && len(v) == 1 && s.raw.Properties["_raw"] == nil {
		var any map[string]any
		return s.notJSON(text, json.Unmarshal([]byte(text), &any))
	}
	for name, value := range v {
		// Several models write null for "not given".
		if value == nil && s.raw.Properties[name] != nil && !slices.Contains(s.raw.Required, name) {
			delete(v, name)
		}
	}
	err := s.whole.Validate(v)
	if err == nil {
		return ""
	}
	problems := s.problems(v)
	if len(problems) == 0 {
		problems = []string{strings.TrimPrefix(err.Error(), "validating root: ")}
	}
	return fmt.Sprintf("wrong arguments for %s:\n- %s\n%s", s.name, strings.Join(problems, "\n- "), s.usage())
}

func (s *schema) notJSON(text string, err error) string {
	why := "not an object"
	if err != nil {
		why = err.Error()
	}
	return fmt.Sprintf("arguments were not valid JSON: %s\ngot: %s\n%s", why, excerpt(text, 400), s.usage())
}

// problems names each property that is missing, unknown or of the wrong kind.
func (s *schema) problems(v map[string]any) []string {
	var out []string
	for _, name := range s.raw.Required {
		if _, ok := v[name]; !ok {
			out = append(out, fmt.Sprintf("%s: missing, want %s", name, expected(s.raw.Properties[name])))
		}
	}
	known := slices.Sorted(maps.Keys(s.raw.Properties))
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if p := s.props[name]; p != nil {
			if p.Validate(v[name]) != nil {
				got, _ := json.Marshal(v[name])
				out = append(out, fmt.Sprintf("%s: want %s, got %s", name, expected(s.raw.Properties[name]), excerpt(string(got), 100)))
			}
			continue
		}
		if s.raw.Properties[name] == nil && closedTo(s.raw.AdditionalProperties) {
			line := fmt.Sprintf("%s: no such property", excerpt(name, 100))
			if near := nearest(name, known); near != "" {
				line += fmt.Sprintf(", did you mean %s?", near)
			}
			out = append(out, line)
		}
	}
	return out
}

// closedTo reports whether additional is `false`, which the library reads as
// {"not": {}}.
func closedTo(additional *jsonschema.Schema) bool {
	if additional == nil || additional.Not == nil {
		return false
	}
	b, err := json.Marshal(additional)
	return err == nil && string(b) == "false"
}

func (s *schema) usage() string {
	required := "none"
	if len(s.raw.Required) > 0 {
		required = strings.Join(s.raw.Required, ", ")
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.raw.Properties)) {
		all = append(all, fmt.Sprintf("%s (%s)", name, expected(s.raw.Properties[name])))
	}
	text := "Required: " + required + "."
	if len(all) > 0 {
		text += " Properties: " + strings.Join(all, ", ") + "."
	}
	return text
}

// expected says in a few words what a property holds.
func expected(p *jsonschema.Schema) string {
	if p == nil {
		return "a value"
	}
	what := p.Type
	if what == "" {
		what = strings.Join(p.Types, " or ")
	}
	if what == "" {
		what = "a value"
	}
	if len(p.Enum) > 0 {
		b, _ := json.Marshal(p.Enum)
		what += " out of " + string(b)
	}
	if p.MinLength != nil && *p.MinLength == 1 {
		what = "non-empty " + what
	}
	num := func(f *float64) string { return strconv.FormatFloat(*f, 'g', -1, 64) }
	switch {
	case p.Minimum != nil && p.Maximum != nil:
		what += " from " + num(p.Minimum) + " to " + num(p.Maximum)
	case p.Minimum != nil:
		what += " from " + num(p.Minimum)
	case p.Maximum != nil:
		what += " up to " + num(p.Maximum)
	}
	return what
}

// args decodes arguments that were checked. What can still fail is this
// package's own promise that schema and struct agree.
func args[T any](call llm.ToolCall) (T, error) {
	var v T
	if err := json.Unmarshal(call.Args, &v); err != nil {
		return v, fmt.Errorf("arguments fit the schema but not the tool: %w", err)
	}
	return v, nil
}

// count is an integer as JSON Schema knows it, where 3.0 and 3e2 are integers
// too. What exceeds an int counts as the largest.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*c = count(min(f, math.MaxInt32))
	return nil
}
