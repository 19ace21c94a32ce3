package openclaw

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/internal/inherit/source"
	"goclaw/internal/json5"
	"goclaw/internal/wholefile"
)

// Agent is an agent of OpenClaw, as its configuration has it.
type Agent struct {
	ID        string
	Workspace string // the folder with its files; "": there is none
	Model     string // provider/model; "": none is named
	// How many characters the model gets of one file of the workspace, and of all.
	FileChars, TotalChars int

	dir    string    // with its keys
	skills *[]string // those that it may use; nil: all
	in     Installation
}

// What OpenClaw gives to the model if its configuration does not say it.
const (
	fileChars  = 20_000
	totalChars = 150_000
)

// agentDB is the file in an agent's folder that newer versions keep all in.
const agentDB = "openclaw-agent.sqlite"

// mainAgent is the one that is there without a configuration.
const mainAgent = "main"

// config is what we read of OpenClaw's configuration. Values of another type
// are none.
type config struct {
	Agents struct {
		Defaults agentConfig            `json:"defaults"`
		List     []agentConfig          `json:"list"`
		Entries  map[string]agentConfig `json:"entries"` // instead of the list, since 2026.8
	} `json:"agents"`
	Agent agentConfig `json:"agent"` // before 2026
	Auth  struct {
		Order map[string][]string `json:"order"`
	} `json:"auth"`
	Env    map[string]json.RawMessage `json:"env"`
	Skills struct {
		Load struct {
			ExtraDirs []string `json:"extraDirs"`
		} `json:"load"`
		Entries map[string]struct {
			Enabled *bool `json:"enabled"`
		} `json:"entries"`
	} `json:"skills"`
	Models struct {
		Providers map[string]providerConfig `json:"providers"`
	} `json:"models"`
}

type agentConfig struct {
	ID           string          `json:"id"`
	Default      bool            `json:"default"`
	Workspace    string          `json:"workspace"`
	Dir          string          `json:"agentDir"`
	Model        json.RawMessage `json:"model"` // a name, or {primary}
	MemorySearch struct {
		ExtraPaths []string `json:"extraPaths"`
	} `json:"memorySearch"`
	Skills     *[]string `json:"skills"` // those that it may use; nil: all
	FileChars  int       `json:"bootstrapMaxChars"`
	TotalChars int       `json:"bootstrapTotalMaxChars"`
	// Other names of models.
	Models map[string]struct {
		Alias string `json:"alias"`
	} `json:"models"`
}

// primary returns the name of the model that is asked first.
func (a agentConfig) primary() string {
	var name string
	var object struct {
		Primary string `json:"primary"`
	}
	if json.Unmarshal(a.Model, &name) != nil && json.Unmarshal(a.Model, &object) == nil {
		name = object.Primary
	}
	return strings.TrimSpace(name)
}

// agents returns the agents that the configuration lists.
func (c config) agents() []agentConfig {
	out := slices.Clone(c.Agents.List)
	for _, id := range slices.Sorted(maps.Keys(c.Agents.Entries)) {
		a := c.Agents.Entries[id]
		a.ID = id
		out = append(out, a)
	}
	for i := range out {
		out[i].ID = strings.ToLower(strings.TrimSpace(out[i].ID))
	}
	return out
}

// first returns the agent that is meant where none is named.
func (c config) first() string {
	list := c.agents()
	id := func(which func(agentConfig) bool) string {
		if i := slices.IndexFunc(list, which); i >= 0 {
			return list[i].ID
		}
		return ""
	}
	return cmp.Or(
		id(func(a agentConfig) bool { return a.Default }),
		id(func(a agentConfig) bool { return a.ID == mainAgent }),
		id(func(a agentConfig) bool { return a.ID != "" }), mainAgent)
}

// Agent returns the agent called id. ok is false if OpenClaw has none.
func (in Installation) Agent(id string) (a Agent, ok bool) {
	id = strings.ToLower(id)
	if in.State == "" || id == "" || id != filepath.Base(id) {
		return a, false
	}
	c := in.conf
	var own agentConfig
	for _, l := range c.agents() {
		if l.ID == id {
			own, ok = l, true
			break
		}
	}
	a = Agent{ID: id, in: in, dir: filepath.Join(in.State, "agents", id, "agent")}
	if !ok && !isDir(filepath.Join(in.State, "agents", id)) && (id != mainAgent || len(c.agents()) > 0) {
		return Agent{}, false
	}
	if own.Dir != "" {
		a.dir = source.Expand(strings.TrimSpace(own.Dir), in.home)
	}
	a.skills = cmp.Or(own.Skills, c.Agents.Defaults.Skills)
	a.Workspace = in.workspaceOf(id, own)
	a.Model = c.model(cmp.Or(own.primary(), c.Agents.Defaults.primary(), c.Agent.primary()))
	a.FileChars = cmp.Or(max(own.FileChars, 0), max(c.Agents.Defaults.FileChars, 0), fileChars)
	a.TotalChars = cmp.Or(max(own.TotalChars, 0), max(c.Agents.Defaults.TotalChars, 0), totalChars)
	return a, true
}

// model returns the whole name of a model that may be given by another one, or
// without its provider.
func (c config) model(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return name
	}
	for full, m := range c.Agents.Defaults.Models {
		if strings.EqualFold(strings.TrimSpace(m.Alias), name) {
			return full
		}
	}
	return "anthropic/" + name
}

// workspaceOf returns the folder of an agent: the one that is configured for it,
// or else the first of the usual ones that there is.
func (in Installation) workspaceOf(id string, own agentConfig) string {
	shared := cmp.Or(in.conf.Agents.Defaults.Workspace, in.conf.Agent.Workspace)
	usual := filepath.Join(in.State, "workspace")
	places := []string{own.Workspace}
	if own.Workspace == "" {
		places = []string{filepath.Join(in.State, "workspace-"+id), filepath.Join(cmp.Or(shared, usual), id)}
	}
	if own.Workspace == "" && id == in.conf.first() {
		places = []string{shared}
		if shared == "" {
			places = []string{usual, filepath.Join(in.home, ".openclaw", "workspace")}
		}
	}
	for _, dir := range places {
		if dir = source.Expand(strings.TrimSpace(dir), in.home); filepath.IsAbs(dir) && isDir(dir) {
			return dir
		}
	}
	return ""
}

// Files returns the files of the workspace that OpenClaw gives to the model in a
// session with this key, in its order. HEARTBEAT.md and BOOTSTRAP.md are left out:
// they are for what only OpenClaw does.
func (a Agent) Files(key string) []string {
	if a.Workspace == "" {
		return nil
	}
	names := []string{"AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "MEMORY.md"}
	at := ":" + key + ":"
	switch {
	case strings.Contains(at, ":subagent:"):
		names = []string{"AGENTS.md", "TOOLS.md"}
	case strings.Contains(at, ":cron:"), strings.Contains(at, ":group:"), strings.Contains(at, ":channel:"):
		names = names[:len(names)-1] // others may be listening
	}
	var out []string
	for _, name := range names {
		out = append(out, filepath.Join(a.Workspace, name))
	}
	return out
}

// SkillDirs returns the folders in which all agents have skills, the nearest first.
func (in Installation) SkillDirs() (out []string) {
	if in.State == "" {
		return nil
	}
	for _, dir := range append([]string{filepath.Join(in.State, "skills")}, in.conf.Skills.Load.ExtraDirs...) {
		if dir = source.Expand(strings.TrimSpace(dir), in.home); filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Refuses reports whether the configuration turns a skill off.
func (in Installation) Refuses(skill string) bool {
	on := in.conf.Skills.Entries[skill].Enabled
	return on != nil && !*on
}

// Refuses reports whether the configuration turns a skill off, for all or for a.
func (a Agent) Refuses(skill string) bool {
	return a.in.Refuses(skill) || a.skills != nil && !slices.Contains(*a.skills, skill)
}

// Override returns the model that was chosen for the session with this key, ""
// if none was.
func (a Agent) Override(key string) string {
	type entry struct {
		Provider string `json:"providerOverride"`
		Model    string `json:"modelOverride"`
	}
	name := func(e entry) string {
		if e.Provider == "" || e.Model == "" {
			return ""
		}
		return e.Provider + "/" + e.Model
	}
	const query = "SELECT entry_json FROM %s WHERE session_key = $1"
	for _, text := range texts(filepath.Join(a.dir, agentDB), []any{key}, fmt.Sprintf(query, "session_nodes"), fmt.Sprintf(query, "session_entries")) {
		var e entry
		_ = json.Unmarshal([]byte(text), &e) // fields of other types are no fields
		return name(e)
	}
	data, err := wholefile.Read(filepath.Join(a.in.State, "agents", a.ID, "sessions", "sessions.json"), maxConfig)
	if err != nil {
		return ""
	}
	var index map[string]entry
	_ = json5.Unmarshal(data, &index)
	return name(index[key])
}
