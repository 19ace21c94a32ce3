package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"goclaw/internal/json5"
)

// Agents are settings under the names and in the places that OpenClaw gives
// them, so that the section of an openclaw.json can be copied.
type Agents struct {
	Defaults AgentDefaults `json:"defaults"`
	List     []Agent       `json:"list" doc:"agents with settings of their own; what is not set there is as in agents.defaults"`
}

// AgentDefaults are the settings of all agents.
type AgentDefaults struct {
	MemorySearch MemorySearch `json:"memorySearch"`
}

// Agent is an agent with settings of its own.
type Agent struct {
	ID           string      `json:"id" doc:"the agent: main in agent:main:main and main:cli:user" rule:"not empty"`
	MemorySearch AgentSearch `json:"memorySearch"`
}

// AgentSearch is how the model searches memory files in the sessions of an
// agent.
type AgentSearch struct {
	Enabled bool        `json:"enabled" doc:"give the model memory_search and memory_get"`
	Query   MemoryQuery `json:"query"`
}

// MemorySearch is how the model searches memory files.
type MemorySearch struct {
	Enabled    bool        `json:"enabled" doc:"give the model memory_search and memory_get"`
	Provider   string      `json:"provider" doc:"what makes vectors, if search.embeddings does not say: local (the built-in model), none, ollama, openai or openai-compatible"`
	Model      string      `json:"model" doc:"the model of that provider; empty: its usual one"`
	Remote     Remote      `json:"remote"`
	ExtraPaths []string    `json:"extraPaths" doc:"the same as search.memory"`
	Query      MemoryQuery `json:"query"`
}

// Remote is where a provider of vectors is.
type Remote struct {
	BaseURL string `json:"baseUrl" doc:"its address; empty: the usual one" rule:"an address"`
	APIKey  string `json:"apiKey" doc:"its key, or ${NAME} for that of a variable"`
}

// MemoryQuery is what a search of the model returns, and in which order.
type MemoryQuery struct {
	MaxResults int     `json:"maxResults" doc:"how many notes memory_search returns if the model asks for no number; 0: 8" rule:"at least 0"`
	MinScore   float64 `json:"minScore" doc:"memory_search leaves out notes with a lower score" rule:"0 to 1"`
	Hybrid     Hybrid  `json:"hybrid"`
}

// Hybrid is how words and meaning are weighed. Only the ratio of the weights
// counts, and OpenClaw's defaults stand for goclaw's own balance.
type Hybrid struct {
	Enabled             bool    `json:"enabled" doc:"false: memory files are ranked by meaning alone, where they have vectors"`
	VectorWeight        float64 `json:"vectorWeight" doc:"how much the meaning counts in memory files; 0.7 beside 0.3 is goclaw's own balance" rule:"0 to 1"`
	TextWeight          float64 `json:"textWeight" doc:"how much the words count in memory files" rule:"0 to 1"`
	CandidateMultiplier int     `json:"candidateMultiplier" doc:"how many notes are compared for each one that is returned, up to 20; never fewer than 200 in all" rule:"at least 0"`
}

func defaultAgents() Agents {
	q := MemoryQuery{MaxResults: 8, Hybrid: Hybrid{Enabled: true, VectorWeight: 0.7, TextWeight: 0.3, CandidateMultiplier: 4}}
	return Agents{Defaults: AgentDefaults{MemorySearch{Enabled: true, ExtraPaths: []string{}, Query: q}}, List: []Agent{}}
}

const (
	agentsKey     = "agents"
	defaultSearch = "agents.defaults.memorySearch"
)

// MemorySearch returns the settings of an agent.
func (l *Loaded) MemorySearch(agent string) AgentSearch {
	for _, a := range l.Agents.List {
		if strings.EqualFold(a.ID, agent) {
			return a.MemorySearch
		}
	}
	return l.Agents.Defaults.MemorySearch.agent()
}

func (s MemorySearch) agent() AgentSearch { return AgentSearch{s.Enabled, s.Query} }

// complete gives each agent of the list the defaults for what it does not set.
func (l *Loaded) complete() {
	for i := range l.Agents.List {
		key := searchOf(i)
		overlay(reflect.ValueOf(&l.Agents.List[i].MemorySearch).Elem(), reflect.ValueOf(l.Agents.Defaults.MemorySearch.agent()), "", func(name string) bool {
			_, said := l.Sources[join(key, name)]
			return !said
		})
	}
}

// searchOf is the key of the settings of agent i in the list.
func searchOf(i int) string { return fmt.Sprintf("agents.list[%d].memorySearch", i) }

// overlay copies the values of from that pick picks by their names below path.
func overlay(to, from reflect.Value, path string, pick func(name string) bool) {
	if to.Kind() != reflect.Struct {
		if pick(path) {
			to.Set(from)
		}
		return
	}
	for i := range to.NumField() {
		overlay(to.Field(i), from.Field(i), join(path, to.Type().Field(i).Tag.Get("json")), pick)
	}
}

// Adopt takes the settings of memory_search from data, the configuration of
// OpenClaw, where nothing else sets them. What would send texts to a server is
// not taken: the user allowed it to another program. A wrong value is a warning,
// and what goclaw does not use is no business of ours.
func (l *Loaded) Adopt(file string, data []byte) {
	plain, err := json5.Standardize(data)
	if err != nil {
		return // OpenClaw itself says so
	}
	v, err := hujson.Parse(plain)
	if err != nil {
		return
	}
	section := v.Find("/" + agentsKey)
	if section == nil {
		return
	}
	theirs := &Loaded{File: file, Sources: map[string]string{}}
	r := reader{l: theirs, data: plain, lenient: true}
	if err := r.value(section, reflect.ValueOf(&theirs.Agents).Elem(), agentsKey); err != nil {
		theirs.Warnings = append(theirs.Warnings, err.Error())
	}
	walk(setting{key: agentsKey, value: reflect.ValueOf(&theirs.Agents).Elem()}, func(s setting) bool {
		if problem := s.breaks(); problem != "" && theirs.Sources[s.key] != "" {
			theirs.Warnings = append(theirs.Warnings, fmt.Sprintf("config: %s: %s must %s", theirs.Source(s.key), s.key, problem))
			delete(theirs.Sources, s.key)
		}
		return true
	})
	l.Warnings = append(l.Warnings, theirs.Warnings...)
	mine := l.Agents.Defaults.MemorySearch.agent()
	l.adopt(theirs, defaultSearch, &mine, defaultSearch, theirs.Agents.Defaults.MemorySearch.agent())
	l.Agents.Defaults.MemorySearch.Enabled, l.Agents.Defaults.MemorySearch.Query = mine.Enabled, mine.Query
	for i, a := range theirs.Agents.List {
		at := slices.IndexFunc(l.Agents.List, func(o Agent) bool { return strings.EqualFold(o.ID, a.ID) })
		mine := Agent{ID: a.ID}
		if at >= 0 {
			mine = l.Agents.List[at]
		}
		if n := cmp.Or(at+1, len(l.Agents.List)+1) - 1; a.ID == "" || !l.adopt(theirs, searchOf(n), &mine.MemorySearch, searchOf(i), a.MemorySearch) {
			continue
		}
		if at >= 0 {
			l.Agents.List[at] = mine
		} else {
			l.Agents.List = append(l.Agents.List, mine)
		}
	}
	l.complete()
}

// adopt copies what another program has set below their key, and we have not set
// below ours. It reports whether there was anything.
func (l *Loaded) adopt(theirs *Loaded, ours string, to *AgentSearch, their string, from AgentSearch) (any bool) {
	overlay(reflect.ValueOf(to).Elem(), reflect.ValueOf(from), "", func(name string) bool {
		where, said := theirs.Sources[join(their, name)]
		_, known := l.Sources[join(ours, name)]
		if !said || known {
			return false
		}
		l.Sources[join(ours, name)] = where
		any = true
		return true
	})
	return any
}

// vendors are the providers of vectors that speak OpenAI's /embeddings.
var vendors = map[string]Search{
	"ollama":            {BaseURL: "http://127.0.0.1:11434/v1", Model: "nomic-embed-text"},
	"openai":            {BaseURL: "https://api.openai.com/v1", Model: "text-embedding-3-small"},
	"openai-compatible": {},
}

// vectors sets what makes vectors as agents.defaults.memorySearch.provider says,
// unless search.embeddings is set.
func (l *Loaded) vectors(getenv func(string) string) {
	const key = defaultSearch + ".provider"
	m, s := l.Agents.Defaults.MemorySearch, &l.Search
	if _, said := l.Sources["search.embeddings"]; said {
		return
	}
	switch v, ok := vendors[m.Provider]; {
	case m.Provider == "none":
		s.Embeddings = "off"
	case ok:
		s.Embeddings = "endpoint"
		s.BaseURL = cmp.Or(s.BaseURL, m.Remote.BaseURL, v.BaseURL)
		s.Model = cmp.Or(s.Model, m.Model, v.Model)
		secret := m.Remote.APIKey
		if name, is := strings.CutPrefix(secret, "${"); is {
			secret = getenv(strings.TrimSuffix(name, "}"))
		}
		if s.APIKey = cmp.Or(s.APIKey, secret); m.Provider == "openai" {
			s.APIKey = cmp.Or(s.APIKey, l.Providers["openai"].APIKey)
		}
	case m.Provider != "" && m.Provider != "auto" && m.Provider != "local":
		l.Warnings = append(l.Warnings, fmt.Sprintf("config: %s: goclaw cannot get vectors from %q (%s): the built-in model makes them", l.Source(key), m.Provider, key))
		return
	default:
		return
	}
	for _, name := range []string{"embeddings", "baseUrl", "model", "apiKey"} {
		if at := "search." + name; l.Sources[at] == "" {
			l.Sources[at] = l.Source(key)
		}
	}
}

// unused are settings of OpenClaw that goclaw has no use for. They are said in
// one line: the section is a copy.
type unused struct {
	where string // of the first
	keys  []string
}

func (u *unused) add(where, key string) {
	if len(u.keys) == 0 {
		u.where = where
	}
	u.keys = append(u.keys, key)
}

// maxUnused is how many of them are named.
const maxUnused = 6

func (u *unused) warning() string {
	more := ""
	if n := len(u.keys) - maxUnused; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("config: %s: goclaw does not use %s%s", u.where, strings.Join(u.keys[:min(len(u.keys), maxUnused)], ", "), more)
}
