package openclaw

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ncruces/go-sqlite3"

	"goclaw/internal/fixtures"
)

// installed makes an installation with these files below the home; a name that
// ends in a slash is a folder.
func installed(t *testing.T, files map[string]string) Installation {
	t.Helper()
	home := t.TempDir()
	for name, text := range files {
		path := filepath.Join(home, name)
		if strings.HasSuffix(name, "/") {
			path += "/x"
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, ok := Installed(home, func(string) string { return "" })
	if !ok {
		t.Fatal("OpenClaw is not found")
	}
	return in
}

func TestAgent(t *testing.T) {
	type want struct {
		workspace, model string // the workspace below the home
		chars            [2]int
	}
	usual := [2]int{fileChars, totalChars}
	for name, c := range map[string]struct {
		files map[string]string
		want  map[string]want
		none  []string
	}{
		"as installed": {map[string]string{".openclaw/openclaw.json": "{}", ".openclaw/workspace/": ""},
			map[string]want{"main": {".openclaw/workspace", "", usual}}, []string{"ops", "", "../main"}},
		"a list": {map[string]string{
			".openclaw/openclaw.json": `{agents: {defaults: {workspace: '~/ws', model: {primary: 'a/b'}, bootstrapMaxChars: 100},
				list: [{id: 'main', default: true}, {id: 'Ops', workspace: '~/ops', model: 'c/d'}, {id: 'mute', model: {primary: 7}}]}}`,
			"ws/": "", "ops/": "", ".openclaw/workspace-mute/": "", ".openclaw/agents/old/sessions/": ""},
			map[string]want{
				"main": {"ws", "a/b", [2]int{100, totalChars}}, "ops": {"ops", "c/d", [2]int{100, totalChars}},
				"mute": {".openclaw/workspace-mute", "a/b", [2]int{100, totalChars}}, "old": {"", "a/b", [2]int{100, totalChars}},
			}, []string{"other"}},
		"entries": {map[string]string{
			".openclaw/openclaw.json": `{agents: {defaults: {workspace: '~/ws', model: 'opus', models: {'anthropic/claude-opus-4-6': {alias: 'Opus'}}}, entries: {coder: {}, boss: {default: true, model: 'gpt'}}}}`,
			"ws/coder/":               ""},
			map[string]want{"coder": {"ws/coder", "anthropic/claude-opus-4-6", usual}, "boss": {"ws", "anthropic/gpt", usual}}, []string{"main"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := installed(t, c.files)
			for id, w := range c.want {
				a, ok := in.Agent(id)
				if w.workspace != "" {
					w.workspace = filepath.Join(in.home, w.workspace)
				}
				if diff := cmp.Diff([]any{true, w.workspace, w.model, w.chars}, []any{ok, a.Workspace, a.Model, [2]int{a.FileChars, a.TotalChars}}); diff != "" {
					t.Errorf("%s (-want +got)\n%s", id, diff)
				}
			}
			for _, id := range c.none {
				if a, ok := in.Agent(id); ok {
					t.Errorf("%q is the agent %+v", id, a)
				}
			}
		})
	}
}

func TestAgentFiles(t *testing.T) {
	a := Agent{Workspace: "/w"}
	for key, want := range map[string]string{
		"agent:main:main":              "AGENTS SOUL TOOLS IDENTITY USER MEMORY",
		"agent:main:telegram:direct:1": "AGENTS SOUL TOOLS IDENTITY USER MEMORY",
		"agent:main:discord:group:9":   "AGENTS SOUL TOOLS IDENTITY USER",
		"agent:main:cron:job":          "AGENTS SOUL TOOLS IDENTITY USER",
		"agent:main:subagent:x":        "AGENTS TOOLS",
	} {
		got := strings.NewReplacer("/w/", "", ".md", "").Replace(strings.Join(a.Files(key), " "))
		if got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

func TestSkills(t *testing.T) {
	in := installed(t, map[string]string{".openclaw/openclaw.json": `{skills: {load: {extraDirs: ['~/more', 'nowhere']}, entries: {off: {enabled: false}, on: {enabled: true}}},
		agents: {list: [{id: 'main'}, {id: 'few', skills: ['on', 'off']}, {id: 'none', skills: []}]}}`})
	if diff := cmp.Diff([]string{filepath.Join(in.State, "skills"), filepath.Join(in.home, "more")}, in.SkillDirs()); diff != "" {
		t.Errorf("folders (-want +got)\n%s", diff)
	}
	for id, want := range map[string]string{"main": "on other", "few": "on", "none": ""} {
		a, _ := in.Agent(id)
		var got []string
		for _, skill := range []string{"off", "on", "other"} {
			if !a.Refuses(skill) {
				got = append(got, skill)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s may use %v, want %s", id, got, want)
		}
	}
	if in.Refuses("other") || !in.Refuses("off") {
		t.Error("where there is no agent, only what is off is refused")
	}
}

// TestRealConfiguration: what OpenClaw 2026.2.1 has written is understood.
func TestRealConfiguration(t *testing.T) {
	state := filepath.Join(fixtures.Unpack(t, "../testdata/fixtures.tar.zst"), "openclaw-2026.2.1", "dot-openclaw")
	in, ok := Installed(t.TempDir(), func(name string) string { return map[string]string{"OPENCLAW_STATE_DIR": state}[name] })
	a, known := in.Agent("ops")
	p, err := a.Provider("fakeant", func(string) string { return "" })
	if !ok || !known || err != nil || a.Model != "fakeant/fake-claude" || p.Key != "sk-fake" || p.API != "anthropic-messages" || p.BaseURL != "http://127.0.0.1:18771" ||
		len(p.Models) != 1 || p.Models[0] != (Model{ID: "fake-claude", ContextWindow: 200000, MaxTokens: 8192}) {
		t.Errorf("%t %t %v: %+v, %+v", ok, known, err, a.Model, p)
	}
}

func TestOverride(t *testing.T) {
	in := installed(t, map[string]string{".openclaw/agents/main/sessions/sessions.json": `{
		// as its users have it
		"agent:main:main": {sessionId: "x", providerOverride: "openai", modelOverride: "gpt-5"},
		"agent:main:other": {sessionId: "y", modelOverride: 7},
	}`})
	a, _ := in.Agent("main")
	for key, want := range map[string]string{"agent:main:main": "openai/gpt-5", "agent:main:other": "", "agent:main:none": ""} {
		if got := a.Override(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	// Newer versions have a database.
	table(t, filepath.Join(a.dir, agentDB), `CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, entry_json TEXT);
		INSERT INTO session_nodes VALUES ('agent:main:main', '{"sessionId":"x","providerOverride":"anthropic","modelOverride":"claude"}'), ('agent:main:plain', '{}')`)
	for key, want := range map[string]string{"agent:main:main": "anthropic/claude", "agent:main:plain": ""} {
		if got := a.Override(key); got != want {
			t.Errorf("in a database, %s: %q, want %q", key, got, want)
		}
	}
}

// table writes a store of keys as OpenClaw's newer versions do.
func table(t *testing.T, path, sql string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(sql); err != nil {
		t.Fatal(err)
	}
}

// TestProvider: a key is found wherever OpenClaw keeps it, and in its order.
func TestProvider(t *testing.T) {
	key := func(provider, key string) string {
		return fmt.Sprintf(`{"type":"api_key","provider":%q,"key":%q}`, provider, key)
	}
	const agentTable = "CREATE TABLE auth_profile_store (store_key TEXT PRIMARY KEY, store_json TEXT, updated_at INTEGER); INSERT INTO auth_profile_store VALUES ('primary', '%s', 1)"
	for name, c := range map[string]struct {
		conf  string
		files map[string]string // below the state
		table map[string]string
		env   map[string]string
		want  string // provider, address, API, key and the file that it is in
	}{
		"a file": {files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"version":1,"profiles":{"anthropic:b":` + key("anthropic", "B") + `,"anthropic:a":` + key("anthropic", "A") + `,"x":` + key("openai", "X") + `}}`},
			want: "||A|agents/ops/agent/auth-profiles.json"},
		"its order": {files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"profiles":{"b":` + key("anthropic", "B") + `,"a":` + key("anthropic", "A") + `},"lastGood":{"anthropic":"b"}}`},
			want: "||B|agents/ops/agent/auth-profiles.json"},
		"the configured order": {conf: `auth: {order: {anthropic: ['b']}}`, files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"profiles":{"b":` + key("anthropic", "B") + `,"a":` + key("anthropic", "A") + `}}`},
			want: "||B|agents/ops/agent/auth-profiles.json"},
		"of the main agent": {files: map[string]string{"agents/main/agent/auth-profiles.json": `{"profiles":{"a":` + key("anthropic", "M") + `}}`},
			want: "||M|agents/main/agent/auth-profiles.json"},
		"a table": {table: map[string]string{"agents/ops/agent/openclaw-agent.sqlite": fmt.Sprintf(agentTable, `{"profiles":{"a":`+key("anthropic", "T")+`}}`)},
			want: "||T|agents/ops/agent/openclaw-agent.sqlite"},
		"the table of all": {table: map[string]string{"state/openclaw.sqlite": `CREATE TABLE config_machine_state (state_key TEXT PRIMARY KEY, value_json TEXT, updated_at_ms INTEGER);
				INSERT INTO config_machine_state VALUES ('authProfiles.store', '{"profiles":{"a":` + key("anthropic", "A") + `,"b":` + key("anthropic", "B") + `}}', 1), ('authProfiles.state', '{"order":{"anthropic":["b"]}}', 1)`},
			want: "||B|state/openclaw.sqlite"},
		"another table":        {table: map[string]string{"agents/ops/agent/openclaw-agent.sqlite": "CREATE TABLE x (y)"}},
		"the configuration":    {conf: `models: {providers: {anthropic: {baseUrl: 'http://here', api: 'anthropic-messages', apiKey: 'C'}}}`, want: "http://here|anthropic-messages|C|openclaw.json"},
		"a reference":          {conf: `models: {providers: {anthropic: {apiKey: '${MY_KEY}'}}}`, env: map[string]string{"MY_KEY": "E"}, want: "||E|openclaw.json"},
		"a missing reference":  {conf: `models: {providers: {anthropic: {apiKey: '${MY_KEY}'}}}`},
		"the name of one":      {conf: `models: {providers: {anthropic: {apiKey: 'MY_KEY'}}}, env: {vars: {MY_KEY: 'V'}}`, want: "||V|openclaw.json"},
		"an object":            {conf: `models: {providers: {anthropic: {apiKey: {source: 'env', provider: 'default', id: 'MY_KEY'}}}}, env: {MY_KEY: 'V'}`, want: "||V|openclaw.json"},
		"its own variables":    {conf: `env: {ANTHROPIC_API_KEY: 'V'}`, want: "||V|openclaw.json"},
		"a .env":               {files: map[string]string{".env": "# mine\nOTHER=1\nexport ANTHROPIC_API_KEY=\"D\"\n"}, want: "||D|.env"},
		"a login":              {files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"profiles":{"a":{"type":"oauth","provider":"anthropic","access":"x","refresh":"y","expires":9e15}}}`}},
		"an expired token":     {files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"profiles":{"a":{"type":"token","provider":"anthropic","token":"x","expires":1}}}`}},
		"damaged":              {files: map[string]string{"agents/ops/agent/auth-profiles.json": `{"profiles":`, "agents/main/agent/openclaw-agent.sqlite": "no database"}},
		"a server without key": {conf: `models: {providers: {anthropic: {baseUrl: 'http://127.0.0.1:1'}}}`, want: "http://127.0.0.1:1|||openclaw.json"},
		"nothing":              {},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{".openclaw/openclaw.json": "{" + c.conf + "}", ".openclaw/agents/ops/sessions/": ""}
			for name, text := range c.files {
				files[".openclaw/"+name] = text
			}
			in := installed(t, files)
			for name, sql := range c.table {
				table(t, filepath.Join(in.State, name), sql)
			}
			a, _ := in.Agent("ops")
			p, err := a.Provider("anthropic", func(k string) string { return c.env[k] })
			if c.want == "" {
				if !errors.Is(err, ErrNoKey) {
					t.Errorf("%+v, %v; want no key", p, err)
				}
				return
			}
			from, _ := filepath.Rel(in.State, p.From)
			if got := strings.Join([]string{p.BaseURL, p.API, p.Key, from}, "|"); err != nil || got != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}
