package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"goclaw/session"
)

// load reads text as the configuration file of a fresh home.
func load(t *testing.T, text string, env map[string]string) (*Loaded, error) {
	t.Helper()
	home := t.TempDir()
	if text != "" {
		if err := os.WriteFile(filepath.Join(home, "config.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var environ []string
	for name, value := range env {
		environ = append(environ, name+"="+value)
	}
	return Load(func(name string) string {
		switch name {
		case "GOCLAW_HOME":
			return home
		case "HOME":
			return "/h"
		}
		return env[name]
	}, environ)
}

func TestNothingSaid(t *testing.T) {
	l, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for key, s := range l.Sources {
		t.Errorf("%s comes from %s, want the default", key, s)
	}
	if l.Workspace != filepath.Join(l.Home, "workspace") || l.Session.Path != filepath.Join(l.Home, "sessions.db") {
		t.Errorf("workspace %s, path %s", l.Workspace, l.Session.Path)
	}
	if l.Session.Inherit.Source != "/h/.openclaw/agents/main/sessions" {
		t.Errorf("inherit.source %s", l.Session.Inherit.Source)
	}
}

// TestDesign reads the file that the design shows, word for word.
func TestDesign(t *testing.T) {
	l, err := load(t, `{
  "model": "anthropic/claude-sonnet-4-5",     // provider/model; "offline" is the built-in one
  "contextWindow": 0, "maxTokens": 0,         // 0: from the catalogue
  "models": {"openai/gpt-5": {"contextWindow": 1000}},
  "workspace": "~/.openclaw/goclaw/workspace",
  "providers": { "anthropic": { "baseUrl": "", "apiKey": "" }, "openai": { "baseUrl": "", "apiKey": "" } },
  "session": {
    "store": "sqlite",
    "path": "~/.openclaw/goclaw/sessions.db",
    "defaultKey": "main:cli:user",
    "inherit": { "enabled": true, "source": "~/.openclaw/agents/main/sessions", "format": "auto" },
    "checkpoint": { "enabled": true, "model": "", "fallbackToMain": true, "tokenThresholdPercents": [25, 50, 75],
                    "turnThreshold": 15, "minTokensForGen": 10000 },
    "memoryFlush": { "enabled": true, "showInSystemPrompt": true, "thresholds": [
      { "percent": 50, "prompt": "Context at 50%.", "injectAs": "system" },
      { "percent": 90, "prompt": "...", "injectAs": "marked" } ] },
    "compaction": { "reserveTokens": 4000, "preferCheckpoint": true },
    "retention": { "ttl": "", "trash": "30d" }
  }
}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Warnings) > 0 {
		t.Errorf("warnings: %q", l.Warnings)
	}
	if l.Models["openai/gpt-5"].ContextWindow != 1000 || len(l.Session.MemoryFlush.Thresholds) != 2 || l.Session.Path != "/h/.openclaw/goclaw/sessions.db" {
		t.Errorf("got %+v", l.Config)
	}
	if got := l.Source("session.store"); !strings.HasSuffix(got, "config.json:8") {
		t.Errorf("session.store comes from %s, want line 8", got)
	}
}

func TestWrong(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"model": 3}`, "config.json:1: model must be a text, not 3"},
		{"{\n\"session\": []}", "config.json:2: session must be an object, not []"},
		{`{"session": {"checkpoint": {"enabled": "yes"}}}`, `session.checkpoint.enabled must be true or false, not "yes"`},
		{`{"session": {"checkpoint": {"tokenThresholdPercents": 25}}}`, "tokenThresholdPercents must be a list"},
		{`{"session": {"checkpoint": {"tokenThresholdPercents": [25, "x"]}}}`, `tokenThresholdPercents[1] must be a whole number, not "x"`},
		{`{"session": {"retention": {"ttl": "soon"}}}`, `session.retention.ttl must be a time such as "12h" or "30d", not "soon"`},
		{`{"session": {"memoryFlush": {"thresholds": [{"percent": 120, "injectAs": "user"}]}}}`, "thresholds[0].percent must be from 1 to 99, not 120"},
		{`{"session": {"memoryFlush": {"thresholds": [{"percent": 50, "prompt": "x", "injectAs": "sistem"}]}}}`, `must be system, user or marked, not "sistem" (did you mean "system"?)`},
		{`{"session": {"defaultKey": ""}}`, "session.defaultKey must not be empty"},
		{`{"maxTokens": -1}`, "maxTokens must be at least 0, not -1"},
		{`{"maxTokens": 1.5}`, "maxTokens must be a whole number, not 1.5"},
		{"{\"session\": {\"memoryFlush\": {\"thresholds\": [\n{\"percent\": 50}]}}}", `config.json:2: session.memoryFlush.thresholds[0].prompt must not be empty`},
		{"{\"session\": {\"memoryFlush\": {\"thresholds\": [\n{\"percent\": 50,\n\"prompt\": \" \"}]}}}", `config.json:3: session.memoryFlush.thresholds[0].prompt must not be empty`},
		{"{\"session\":\n{\"inherit\": {\"format\": \"xml\"}}}", `config.json:2: session.inherit.format must be auto, openclaw, jsonl, pi, claw0, claude-code, codex or goclaw, not "xml"`},
		{`{"session": {"inherit": {"format": ""}}}`, `session.inherit.format must be auto`},
		{`{"session": {"checkpoint": {"minTokensForGen": -1}}}`, "session.checkpoint.minTokensForGen must be at least 0, not -1"},
		{`{"search": {"embeddings": "endpoint", "model": "m"}}`, `config.json:1: search.embeddings is "endpoint", which needs search.baseUrl`},
		{`{"search": {"embeddings": "endpoint", "baseUrl": "http://localhost:11434/v1"}}`, `config.json:1: search.embeddings is "endpoint", which needs search.model`},
		{`{"search": {"baseUrl": "localhost"}}`, "search.baseUrl must be an address such as"},
		{`{"models": {"a/b": {"outputPrice": -1}}}`, "models.a/b.outputPrice must be at least 0, not -1"},
		{`{"session": {"shared": true}}`, `config.json:1: session.shared is for the jsonl store, and session.store is "sqlite"`},
		{`{"tools": {"bashTimeout": "1h"}}`, "config.json:1: tools.bashTimeout must be at most 10m, not 1h"},
		{`// a comment` + "\n" + `{"model": 3} {}`, "config.json: line 2"},
		{`{"thinking": "lots"}`, `thinking must be off, minimal, low, medium, high or xhigh, not "lots"`},
		{`{"session": {"checkpoint": {"tokenThresholdPercents": [25, 500]}}}`, "tokenThresholdPercents[1] must be from 1 to 99, not 500"},
		{`{"models": {"a/b": {"contextWindow": -5}}}`, "models.a/b.contextWindow must be at least 0, not -5"},
		{`{"providers": {"x": {"baseUrl": "not a url"}}}`, `providers.x.baseUrl must be an address such as`},
		{`[]`, "the configuration must be an object"},
		{`{"model": "x"`, "unexpected EOF"},
	} {
		_, err := load(t, c.text, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What is kept free for the answer is never most of a window, and a number
// that no window could give is told where it stands.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		text    string
		window  int
		want    int
		problem string
	}{
		{``, 200_000, 4000, ""},
		{``, 3000, 750, ""}, // the default fits any window
		{``, 0, 0, ""},
		{`{"session": {"compaction": {"reserveTokens": 20000}}}`, 200_000, 20_000, ""},
		{`{"session": {"compaction": {"reserveTokens": 20000}}}`, 40_000, 10_000, ""},
		{"{\n\"session\": {\"compaction\": {\"reserveTokens\": 20000}}}", 16_000, 4000,
			"config.json:2: session.compaction.reserveTokens is 20000, but the window has 16000 tokens: a quarter of it is kept free"},
	} {
		l, err := load(t, c.text, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, problem := l.Reserve(c.window)
		if got != c.want || !strings.HasSuffix(problem, c.problem) || (problem == "") != (c.problem == "") {
			t.Errorf("%s: of %d tokens %d are kept free, %q, want %d, %q", c.text, c.window, got, problem, c.want, c.problem)
		}
		if len(l.Warnings) > 0 {
			t.Errorf("%s: no window is configured, and yet: %q", c.text, l.Warnings)
		}
	}
	l, err := load(t, `{"contextWindow": 8000, "session": {"compaction": {"reserveTokens": 9000}}}`, nil)
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "reserveTokens is 9000, but the window has 8000 tokens") {
		t.Errorf("warnings %q, %v", l.Warnings, err)
	}
}

// TestEmptyFile: a file that says nothing is a configuration that says nothing.
func TestEmptyFile(t *testing.T) {
	for _, text := range []string{" ", "\n\n", "// nothing yet\n", "/* nor here */", "{}", "{\n// \n}\n", "\xef\xbb\xbf{}"} {
		l, err := load(t, text, nil)
		if err != nil || len(l.Sources) > 0 || len(l.Warnings) > 0 {
			t.Errorf("%q: %v, %+v", text, err, l)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(func(name string) string { return map[string]string{"GOCLAW_HOME": dir}[name] }, nil); err != nil {
		t.Errorf("a file of no bytes: %v", err)
	}
}

// TestMarkedByDefault: a threshold that does not say how it is delivered.
func TestMarkedByDefault(t *testing.T) {
	l, err := load(t, `{"session": {"memoryFlush": {"thresholds": [{"percent": 50, "prompt": "x"}]}}}`, nil)
	if err != nil || l.Session.MemoryFlush.Thresholds[0].InjectAs != "marked" {
		t.Errorf("%v, %+v", err, l)
	}
}

// TestStrayVariables: a variable that sets nothing is named, with the one that
// was meant.
func TestStrayVariables(t *testing.T) {
	for name, want := range map[string]string{
		"GOCLAW_SESION_STORE":        "there is no setting for $GOCLAW_SESION_STORE (did you mean $GOCLAW_SESSION_STORE?)",
		"GOCLAW_SESSION_DEFAULTKEY":  "(did you mean $GOCLAW_SESSION_DEFAULT_KEY?)",
		"GOCLAW_HOEM":                "(did you mean $GOCLAW_HOME?)",
		"GOCLAW_ZEBRA":               "there is no setting for $GOCLAW_ZEBRA",
		"GOCLAW_SEARCH_MEMORY":       "$GOCLAW_SEARCH_MEMORY is not read: search.memory has more than one value, set it in",
		"GOCLAW_MODEL":               "",
		"GOCLAW_NO_LOCAL":            "",
		"GOCLAW_TOOLS_BASH_TIMEOUT":  "",
		"ANOTHER_PROGRAMS_VARIABLES": "",
	} {
		l, err := load(t, "", map[string]string{name: "5m"})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(l.Warnings, "\n"); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: warnings %q, want %q", name, got, want)
		}
	}
	if l, err := load(t, "", map[string]string{"GOCLAW_MODLE": ""}); err != nil || len(l.Warnings) > 0 {
		t.Errorf("an empty variable is none: %v, %q", err, l.Warnings)
	}
}

func TestEnvironment(t *testing.T) {
	l, err := load(t, `{"model": "a/b", "providers": {"openai": {"apiKey": "from-file"}}}`, map[string]string{
		"GOCLAW_MODEL": "c/d", "GOCLAW_SESSION_RETENTION_TTL": "2w", "GOCLAW_SESSION_CHECKPOINT_ENABLED": "false",
		"OPENAI_API_KEY": "from-env", "ANTHROPIC_API_KEY": "k",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{l.Model, l.Source("model"), time.Duration(l.Session.Retention.TTL), l.Session.Checkpoint.Enabled, l.Providers["openai"].APIKey, l.Providers["anthropic"].APIKey}
	want := []any{"c/d", "$GOCLAW_MODEL", 14 * 24 * time.Hour, false, "from-file", "k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTTLByChannelAndKey(t *testing.T) {
	l, err := load(t, `{"session": {"retention": {"ttl": {"*": "2w", "telegram": "3d12h", "group": "90m", "main:cli:*": "1d", "main:cli:keep*": "", "main:telegram:42": "1h"}, "expired": "trash"}}}`, nil)
	if err != nil || len(l.Warnings) > 0 {
		t.Fatal(err, l.Warnings)
	}
	for key, want := range map[session.Key]time.Duration{
		"main:cli:user": 24 * time.Hour, "main:cli:keep-this": 0, "main:telegram:7": 84 * time.Hour, "main:telegram:42": time.Hour, "main:mail:ana": 14 * 24 * time.Hour,
		"agent:main:telegram:direct:7": 84 * time.Hour, "agent:main:discord:group:9": 90 * time.Minute, "odd": 14 * 24 * time.Hour,
	} {
		if got := l.Session.Retention.For(key); got != want {
			t.Errorf("the ttl of %s is %v, want %v", key, got, want)
		}
	}
	if l, err = load(t, `{"session": {"retention": {"ttl": "1d"}}}`, nil); err != nil || l.Session.Retention.For("main:cli:user") != 24*time.Hour {
		t.Errorf("one ttl for all: %v, %v", l.Session.Retention, err)
	}
	for _, bad := range []string{`{"session": {"retention": {"ttl": {"cli": "soon"}}}}`, `{"session": {"retention": {"ttl": 3}}}`, `{"session": {"retention": {"expired": "burn"}}}`} {
		if _, err := load(t, bad, nil); err == nil || !strings.Contains(err.Error(), "config.json:1: session.retention.") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Where the program is started does not decide which conversations it finds.
func TestRelativePaths(t *testing.T) {
	l, err := load(t, `{"workspace": "~", "session": {"path": "rel.db"}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Session.Path != filepath.Join(l.Home, "rel.db") || l.Workspace != "/h" {
		t.Errorf("path %s, workspace %s", l.Session.Path, l.Workspace)
	}

	// A workspace, and what is said for one run, is meant from here.
	dir := t.TempDir()
	t.Chdir(dir)
	l, err = load(t, `{"workspace": "notes"}`, map[string]string{"GOCLAW_SESSION_PATH": "rel.db"})
	if err != nil {
		t.Fatal(err)
	}
	if l.Session.Path != filepath.Join(dir, "rel.db") || l.Workspace != filepath.Join(dir, "notes") {
		t.Errorf("path %s, workspace %s", l.Session.Path, l.Workspace)
	}
	if l, err = load(t, `{}`, map[string]string{"GOCLAW_WORKSPACE": "."}); err != nil || l.Workspace != dir {
		t.Errorf("workspace %s, %v, want %s", l.Workspace, err, dir)
	}
}

// TestEveryFieldHasAName: a field without a json tag could not be set.
func TestEveryFieldHasAName(t *testing.T) {
	var walk func(reflect.Type)
	walk = func(ty reflect.Type) {
		switch ty.Kind() {
		case reflect.Struct:
			for i := range ty.NumField() {
				if ty.Field(i).Tag.Get("json") == "" {
					t.Errorf("%s.%s has no json name", ty, ty.Field(i).Name)
				}
				walk(ty.Field(i).Type)
			}
		case reflect.Map, reflect.Slice:
			walk(ty.Elem())
		}
	}
	walk(reflect.TypeFor[Config]())
}

// TestSample: the file that init writes changes nothing, and with its
// settings uncommented it says the defaults.
func TestSample(t *testing.T) {
	plain, err := load(t, string(Sample()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for line := range strings.Lines(string(Sample())) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, `// "`) {
			line = strings.Replace(line, "// ", "", 1)
		}
		open = append(open, line)
	}
	full, err := load(t, strings.Join(open, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(plain.Warnings)+len(full.Warnings) > 0 || len(full.Sources) < 25 {
		t.Errorf("warnings %q %q, %d values set", plain.Warnings, full.Warnings, len(full.Sources))
	}
	full.Models, plain.Models = nil, nil
	full.Workspace, full.Session.Path = plain.Workspace, plain.Session.Path
	if diff := cmp.Diff(plain.Config, full.Config); diff != "" {
		t.Errorf("the sample does not say the defaults (-default +sample)\n%s", diff)
	}
}

func TestDuration(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
		back string
	}{{"", 0, ""}, {"90s", 90 * time.Second, "1m30s"}, {"12h", 12 * time.Hour, "12h"}, {"30d", 720 * time.Hour, "30d"}, {"2w", 336 * time.Hour, "14d"}, {"0.5d", 12 * time.Hour, "12h"},
		{"3d12h", 84 * time.Hour, "3d12h"}, {"90m", 90 * time.Minute, "1h30m"}, {"1w2d3h4m5s", 219*time.Hour + 4*time.Minute + 5*time.Second, "9d3h4m5s"}, {"1w12h", 180 * time.Hour, "7d12h"}} {
		d, err := ParseDuration(c.text)
		if err != nil || time.Duration(d) != c.want || d.String() != c.back {
			t.Errorf("%q: %v, %v, written %q; want %v, written %q", c.text, time.Duration(d), err, d.String(), c.want, c.back)
		}
	}
	for _, bad := range []string{"-1h", "d", "-3d", "1y", "12", "3d-2h", "12h3d", "2d1w", "3d 12h", "1d1d", "soon", "3d+1h", "1000000d"} {
		if d, err := ParseDuration(bad); err == nil {
			t.Errorf("%q is taken as %v", bad, d)
		}
	}
}
