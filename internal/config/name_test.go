package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEverySetting: each setting of the reference can be set by its name, is in
// effect, refuses a value of another kind, and can be removed again.
func TestEverySetting(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "config.json")
	getenv := func(name string) string { return map[string]string{"GOCLAW_CONFIG": path, "HOME": home}[name] }
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	try := func(s setting) {
		seen++
		key := strings.NewReplacer(".NAME", ".my/model-4.1", "[]", "[0]").Replace(s.key)
		name, err := Name(key)
		if err != nil {
			t.Errorf("%s: %v", key, err)
			return
		}
		value, wrong := samples(s)
		write("// mine\n{}\n")
		switch { // what does not stand alone
		case strings.HasPrefix(key, "agents.list["):
			write(`{"agents": {"list": [{"id": "a"}]}, /* mine */}`)
		case strings.HasPrefix(key, "session.memoryFlush.thresholds["):
			write(`{"session": {"memoryFlush": {"thresholds": [{"percent": 50, "prompt": "p", "injectAs": "user"}]}}, /* mine */}`)
		case key == "search.embeddings", key == "session.shared":
			write(`{"session": {"store": "jsonl"}, /* mine */}`)
		}
		if err := Edit(path, name, wrong); err == nil || !strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v was accepted, or refused with %v", key, wrong, err)
		}
		if err := Edit(path, name, value); err != nil {
			t.Errorf("%s: %v is refused: %v", key, value, err)
			return
		}
		l, err := Load(getenv, nil)
		if err != nil || len(l.Warnings) > 0 {
			t.Errorf("%s: %v, %v", key, err, l)
			return
		}
		if from := l.Source(key); s.value.Kind() != reflect.Map && !strings.HasPrefix(from, path) {
			t.Errorf("%s comes from %s", key, from)
		}
		data, _ := os.ReadFile(path)
		if want, _ := json.Marshal(value); !strings.Contains(strings.Join(strings.Fields(string(data)), ""), string(want)) || !strings.Contains(string(data), "mine") {
			t.Errorf("%s is %s:\n%s", key, want, data)
		}
		required := key == "agents.list[0].id" || strings.HasPrefix(key, "session.memoryFlush.thresholds[0].p")
		if err := Edit(path, name, nil); required != (err != nil) {
			t.Errorf("%s: removing it gives %v", key, err)
		}
	}
	visitAll(try)
	if seen < 80 {
		t.Errorf("only %d settings were tried", seen)
	}
}

// samples returns a value that s can have, and one that it cannot.
func samples(s setting) (right, wrong any) {
	rule := strings.TrimPrefix(s.tag.Get("rule"), "empty or ")
	choices, isChoice := strings.CutPrefix(rule, "one of ")
	switch v := s.value.Interface().(type) {
	case Duration:
		return "7m", "soon"
	case bool:
		return !v, "perhaps"
	case int:
		return 7, "many"
	case float64:
		return 0.5, "much"
	case []int:
		return []int{10}, "ten"
	case []string:
		return []string{"a"}, "a"
	case map[string]string:
		return map[string]string{"A": "b"}, "a"
	case map[string]Duration:
		return map[string]string{"cli": "7m"}, "a"
	case string:
		switch {
		case s.key == "agents.defaults.memorySearch.provider":
			return "local", 7
		case s.key == "search.embeddings":
			return "off", 7
		case s.key == "session.store":
			return "jsonl", "jsonn"
		case isChoice:
			return strings.Fields(choices)[0], "nonsense"
		case rule == "an address":
			return "http://127.0.0.1:8000/v1", "here"
		}
		return "text", 7
	}
	if s.value.Kind() == reflect.Map {
		return map[string]any{}, "a"
	}
	return []any{}, "a"
}

func TestName(t *testing.T) {
	for key, want := range map[string][]string{
		"model":                                 {"model"},
		"models.openai/gpt-4.1.contextWindow":   {"models", "openai/gpt-4.1", "contextWindow"},
		`models."a.maxTokens".maxTokens`:        {"models", "a.maxTokens", "maxTokens"},
		"models.openai/gpt-4.1":                 {"models", "openai/gpt-4.1"},
		"providers.my.host.baseUrl":             {"providers", "my.host", "baseUrl"},
		"mcpServers.a.env.B.C":                  {"mcpServers", "a", "env", "B.C"},
		"session.retention.ttlFor.main:cli:*.x": {"session", "retention", "ttlFor", "main:cli:*.x"},
		"agents.list[1].memorySearch.enabled":   {"agents", "list", "1", "memorySearch", "enabled"},
		"limits.costPerDay":                     {"limits", "perDay"},
	} {
		if got, err := Name(key); err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s is %q, %v, want %q", key, got, err, want)
		}
	}
	for key, want := range map[string]string{
		"":                           "without a name",
		"modle":                      `there is no setting "modle": did you mean model?`,
		"tools.mood":                 `there is no setting "tools.mood": did you mean tools.mode?`,
		"perDay":                     `there is no setting "perDay": did you mean limits.perDay?`,
		"session.retention.tll":      "did you mean session.retention.ttl?",
		"models.a/b.contextWindw":    `there is no setting "models.a/b.contextWindw": did you mean models.a/b.contextWindow?`,
		"zzz":                        `there is no setting "zzz": goclaw config lists them`,
		"model.name":                 "model has no settings in it",
		"agents.list.id":             "agents.list is a list: agents.list[0] is its first element",
		`models."a`:                  "a quote is missing",
		"session.inherit.folow.more": `did you mean session.inherit.follow?`,
	} {
		if _, err := Name(key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", key, err, want)
		}
	}
}

// TestOlderNames: a file and variables of older versions count, and setting
// replaces the old name.
func TestOlderNames(t *testing.T) {
	l, err := load(t, `{"limits": {"costPerTurn": 2, "costPerDay": 3}}`, map[string]string{"GOCLAW_LIMITS_COST_PER_DAY": "4"})
	if err != nil || len(l.Warnings) > 0 || l.Limits.PerTurn != 2 || l.Limits.PerDay != 4 || l.Source("limits.perDay") != "$GOCLAW_LIMITS_COST_PER_DAY" {
		t.Errorf("got %+v, %v, %q", l.Limits, err, l.Warnings)
	}
	out, err := Changed("f", []byte(`{"limits": {"costPerTurn": 2}}`), []string{"limits", "perTurn"}, 5)
	if err != nil || strings.Contains(string(out), "costPerTurn") || !strings.Contains(string(out), `"perTurn": 5`) {
		t.Errorf("got %s, %v", out, err)
	}
}

// TestKeyFromAVariable: a key can be the value of any variable.
func TestKeyFromAVariable(t *testing.T) {
	l, err := load(t, `{"providers": {"anthropic": {"apiKey": "${WORK_KEY}"}, "house": {"apiKey": "${NONE}"}}}`, map[string]string{"WORK_KEY": "k1", "ANTHROPIC_API_KEY": "k2"})
	if err != nil || l.Providers["anthropic"].APIKey != "k1" || l.Providers["house"].APIKey != "" {
		t.Errorf("got %+v, %v", l.Providers, err)
	}
}

// TestComment: what a setting means is written before it, once.
func TestComment(t *testing.T) {
	data := []byte("// mine\n{\n}\n")
	for range 2 {
		for _, c := range []struct {
			name  []string
			value any
		}{{[]string{"tools", "mode"}, "plan"}, {[]string{"providers", "house", "apiKey"}, "k"}, {[]string{"thinking"}, "low"}} {
			var err error
			if data, err = Changed("f", data, c.name, c.value); err != nil {
				t.Fatal(err)
			}
			data = Comment(data, c.name)
		}
	}
	text := string(data)
	for _, want := range []string{"// mine\n", "\t\t// what is done without asking", "// its key", "\t// how much the model thinks"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q is there %d times:\n%s", want, strings.Count(text, want), text)
		}
	}
	if got := Written(data, []string{"tools", "mode"}); got != "plan" {
		t.Errorf("tools.mode is written as %q", got)
	}
}
