package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A section as OpenClaw's users have it, with all that goclaw does not use.
const copied = `{
  "agents": {
    "defaults": {
      "model": {"primary": "anthropic/claude-opus-4-6"},
      "workspace": "~/.openclaw/workspace",
      "memorySearch": {
        "enabled": true,
        "provider": "local",
        "fallback": "none",
        "sources": ["memory", "sessions"],
        "experimental": {"sessionMemory": true},
        "sync": {"watch": true, "watchDebounceMs": 1500},
        "store": {"vector": {"enabled": true}},
        "chunking": {"tokens": 400, "overlap": 80},
        "cache": {"enabled": true, "maxEntries": 50000},
        "extraPaths": ["docs"],
        "query": {
          "maxResults": 12,
          "minScore": 0.25,
          "hybrid": {"enabled": true, "vectorWeight": 0.2, "textWeight": 0.8, "candidateMultiplier": 6, "mmr": {"enabled": true, "lambda": 0.7}}
        }
      }
    },
    "list": [{"id": "main", "default": true}, {"id": "work", "memorySearch": {"query": {"minScore": 0.5}}}, {"id": "quiet", "memorySearch": {"enabled": false}}]
  }
}`

// TestCopiedFromOpenClaw: a section of OpenClaw's works as it is, and what
// goclaw does not use is one line.
func TestCopiedFromOpenClaw(t *testing.T) {
	l, err := load(t, copied, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Warnings) != 1 || !strings.HasSuffix(l.Warnings[0], "config.json:4: goclaw does not use agents.defaults.model, agents.defaults.workspace, agents.defaults.memorySearch.fallback, agents.defaults.memorySearch.sources, agents.defaults.memorySearch.experimental, agents.defaults.memorySearch.sync and 5 more") {
		t.Errorf("warnings %q", l.Warnings)
	}
	q := MemoryQuery{MaxResults: 12, MinScore: 0.25, Hybrid: Hybrid{Enabled: true, VectorWeight: 0.2, TextWeight: 0.8, CandidateMultiplier: 6}}
	work := q
	work.MinScore = 0.5
	for agent, want := range map[string]AgentSearch{"main": {true, q}, "other": {true, q}, "Work": {true, work}, "quiet": {false, q}} {
		if d := cmp.Diff(want, l.MemorySearch(agent)); d != "" {
			t.Errorf("agent %s (-want +got)\n%s", agent, d)
		}
	}
	if l.Search.Embeddings != "builtin" {
		t.Errorf("vectors from %q", l.Search.Embeddings)
	}
}

func TestWrongMemorySearch(t *testing.T) {
	for text, want := range map[string]string{
		`{"query": {"minScore": "high"}}`:                       `config.json:1: agents.defaults.memorySearch.query.minScore must be a number, not "high"`,
		`{"query": {"minScore": 1.5}}`:                          `config.json:1: agents.defaults.memorySearch.query.minScore must be from 0 to 1, not 1.5`,
		`{"query": {"maxResults": 2.5}}`:                        `agents.defaults.memorySearch.query.maxResults must be a whole number, not 2.5`,
		`{"query": {"hybrid": {"textWeight": -0.1}}}`:           `agents.defaults.memorySearch.query.hybrid.textWeight must be from 0 to 1, not -0.1`,
		`{"enabled": "yes"}`:                                    `agents.defaults.memorySearch.enabled must be true or false, not "yes"`,
		`true`:                                                  `agents.defaults.memorySearch must be an object, not true`,
		`{"provider": "openai-compatible"}`:                     `which needs search.baseUrl`,
		`{"provider": "ollama", "remote": {"baseUrl": "here"}}`: `must be an address`,
	} {
		if _, err := load(t, `{"agents": {"defaults": {"memorySearch": `+text+`}}}`, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	l, err := load(t, `{"agents": {"defaults": {"memorySearch": {"query": {"maxResult": 3}}}}}`, nil)
	if err != nil || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], `(did you mean "maxResults"?)`) {
		t.Errorf("got %v and %q", err, l.Warnings)
	}
}

// TestProviderOfVectors: OpenClaw's provider says what makes vectors, unless
// search.embeddings does.
func TestProviderOfVectors(t *testing.T) {
	for text, want := range map[string]Search{
		`{"provider": "none"}`:   {Embeddings: "off"},
		`{"provider": "local"}`:  {Embeddings: "builtin"},
		`{"provider": "ollama"}`: {Embeddings: "endpoint", BaseURL: "http://127.0.0.1:11434/v1", Model: "nomic-embed-text"},
		`{"provider": "openai", "model": "text-embedding-3-large"}`:                                                              {Embeddings: "endpoint", BaseURL: "https://api.openai.com/v1", Model: "text-embedding-3-large", APIKey: "sk-1"},
		`{"provider": "openai-compatible", "model": "m", "remote": {"baseUrl": "https://e.example/v1", "apiKey": "${THE_KEY}"}}`: {Embeddings: "endpoint", BaseURL: "https://e.example/v1", Model: "m", APIKey: "k2"},
		`{"provider": "voyage"}`: {Embeddings: "builtin"},
	} {
		l, err := load(t, `{"agents": {"defaults": {"memorySearch": `+text+`}}}`, map[string]string{"OPENAI_API_KEY": "sk-1", "THE_KEY": "k2"})
		if err != nil {
			t.Fatal(err)
		}
		want.Memory = []string{}
		if d := cmp.Diff(want, l.Search); d != "" {
			t.Errorf("%s (-want +got)\n%s", text, d)
		}
		if got := strings.Join(l.Warnings, "\n"); strings.Contains(text, "voyage") != strings.Contains(got, `goclaw cannot get vectors from "voyage"`) {
			t.Errorf("%s: warnings %q", text, got)
		}
	}
	l, err := load(t, `{"search": {"embeddings": "builtin"}, "agents": {"defaults": {"memorySearch": {"provider": "openai"}}}}`, nil)
	if err != nil || l.Search.Embeddings != "builtin" || l.Search.BaseURL != "" {
		t.Errorf("got %+v, %v", l.Search, err)
	}
}

// TestAdopt: OpenClaw's own file counts where ours says nothing, and never ends
// a start.
func TestAdopt(t *testing.T) {
	l, err := load(t, `{"agents": {"defaults": {"memorySearch": {"query": {"maxResults": 3}}}, "list": [{"id": "a", "memorySearch": {"query": {"maxResults": 4}}}]}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Adopt("/o/openclaw.json", []byte(`// JSON5
{agents: {
  defaults: {memorySearch: {provider: 'openai', remote: {apiKey: 'sk-2'}, sync: {}, query: {
    maxResults: 20, minScore: 0.3,
    hybrid: {vectorWeight: 'much', textWeight: 7, candidateMultiplier: 9}}}},
  list: [{id: 'a', memorySearch: {query: {maxResults: 5, minScore: 0.6}}}, {id: 'b', memorySearch: {enabled: false}}, {id: 'c'}, {memorySearch: {enabled: false}}],
}}`))
	def := Hybrid{Enabled: true, VectorWeight: 0.7, TextWeight: 0.3, CandidateMultiplier: 9}
	for agent, want := range map[string]AgentSearch{
		"main": {true, MemoryQuery{3, 0.3, def}}, "a": {true, MemoryQuery{4, 0.6, def}}, "b": {false, MemoryQuery{3, 0.3, def}}, "c": {true, MemoryQuery{3, 0.3, def}},
	} {
		if d := cmp.Diff(want, l.MemorySearch(agent)); d != "" {
			t.Errorf("agent %s (-want +got)\n%s", agent, d)
		}
	}
	if got, want := l.Source("agents.defaults.memorySearch.query.minScore"), "/o/openclaw.json:4"; got != want {
		t.Errorf("it came from %s, want %s", got, want)
	}
	if l.Search.Embeddings != "builtin" || l.Agents.Defaults.MemorySearch.Remote.APIKey != "" {
		t.Errorf("a server of another program was taken: %+v", l.Search)
	}
	want := []string{
		`config: /o/openclaw.json:5: agents.defaults.memorySearch.query.hybrid.vectorWeight must be a number, not "much"`,
		`config: /o/openclaw.json:5: agents.defaults.memorySearch.query.hybrid.textWeight must be from 0 to 1, not 7`,
	}
	if d := cmp.Diff(want, l.Warnings); d != "" {
		t.Errorf("warnings (-want +got)\n%s", d)
	}
	for _, odd := range []string{``, `{`, `[]`, `{agents: 3}`, `{agents: {list: {}}}`, `{agents: {defaults: {memorySearch: null}}}`, `7`} {
		l.Adopt("/o/openclaw.json", []byte(odd))
	}
	if got := l.MemorySearch("main").Query.MaxResults; got != 3 {
		t.Errorf("maxResults %d", got)
	}
}

// TestKeysAreMasked: no list shows a key.
func TestKeysAreMasked(t *testing.T) {
	l, err := load(t, `{"agents": {"defaults": {"memorySearch": {"remote": {"apiKey": "sk-verysecretkey1234567890"}}}, "list": [{"id": "a"}]}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, leaf := range l.Leaves() {
		if s, ok := leaf.Value.(string); ok && strings.Contains(s, "verysecret") {
			t.Errorf("%s shows %s", leaf.Key, s)
		}
		seen = seen || leaf.Key == "agents.list[0].memorySearch.query.minScore"
	}
	if !seen {
		t.Error("the list is not shown")
	}
}
