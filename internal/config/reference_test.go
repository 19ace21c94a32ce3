package config

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table in docs/guide/configuration.md")

// TestReference: the table in docs/guide/configuration.md has every setting, with its
// default, its environment variable and its meaning.
func TestReference(t *testing.T) {
	const file, begin, end = "../../docs/guide/configuration.md", "<!-- settings -->\n", "<!-- /settings -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	want := reference()
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is out of date: go test ./internal/config -run TestReference -update writes\n%s", file, want)
	}
	// The example must be a configuration without a warning.
	_, example, _ := strings.Cut(string(data), "```json\n")
	example, _, _ = strings.Cut(example, "```")
	if l, err := load(t, example, nil); err != nil || len(l.Warnings) > 0 || len(l.Sources) < 5 {
		t.Errorf("the example: %v, %+v", err, l)
	}
}

// reference returns the table of all settings in Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString("| setting | default | variable | meaning |\n|---|---|---|---|\n")
	row := func(s setting, fixed bool) {
		def, env := "", ""
		switch v := s.value.Interface().(type) {
		case Duration:
			def = fmt.Sprintf("`%q`", v.String())
		default:
			text, _ := json.Marshal(v)
			if def = fmt.Sprintf("`%s`", text); s.many() {
				def = ""
			}
			if _, ok := v.([]int); ok {
				def = fmt.Sprintf("`%s`", strings.ReplaceAll(string(text), ",", ", "))
			}
		}
		if fixed && !s.many() {
			env = "`" + EnvName(s.key) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.key, def, env, s.doc())
	}
	visitAll(func(s setting) { row(s, !strings.Contains(s.key, ".NAME") && !strings.Contains(s.key, "[]")) })
	return b.String()
}
