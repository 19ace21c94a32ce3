package openclaw

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"goclaw/internal/inherit/source"
	"goclaw/internal/json5"
	"goclaw/internal/sqlx"
	"goclaw/internal/wholefile"
)

// Provider is how OpenClaw asks the models of a provider.
type Provider struct {
	Name    string
	BaseURL string // "": the usual one
	API     string // such as anthropic-messages; "": the usual one
	Key     string
	From    string // the file that the key is in
	Models  []Model
}

// Model is what OpenClaw knows of a model.
type Model struct {
	ID            string `json:"id"`
	ContextWindow int    `json:"contextWindow"`
	MaxTokens     int    `json:"maxTokens"`
}

type providerConfig struct {
	BaseURL string          `json:"baseUrl"`
	API     string          `json:"api"`
	Key     json.RawMessage `json:"apiKey"` // a text, or where it is
	Models  []Model         `json:"models"`
}

// profile is a key in one of the stores that OpenClaw has had: a file for each
// agent, a table for each, one table for all.
type profile struct {
	Type     string          `json:"type"` // api_key, token or oauth
	Provider string          `json:"provider"`
	Key      string          `json:"key"`
	KeyRef   json.RawMessage `json:"keyRef"`
	Token    string          `json:"token"`
	TokenRef json.RawMessage `json:"tokenRef"`
	Expires  float64         `json:"expires"` // in milliseconds
}

// profiles are such a store.
type profiles struct {
	Profiles map[string]profile  `json:"profiles"`
	Order    map[string][]string `json:"order"`
	LastGood map[string]string   `json:"lastGood"`
	from     string
}

// ErrNoKey: OpenClaw has no key for a provider that could be used here.
var ErrNoKey = errors.New("openclaw: no key")

// Provider returns how OpenClaw asks the models of a provider for a. getenv is the
// environment, which the configuration may refer to. The error wraps ErrNoKey if
// there is no key.
func (a Agent) Provider(name string, getenv func(string) string) (Provider, error) {
	p := Provider{Name: name}
	conf, listed := a.in.conf.Models.Providers[name]
	v := variables{getenv: getenv, in: a.in}
	p.BaseURL, p.API, p.Models = v.expand(conf.BaseURL), strings.TrimSpace(conf.API), conf.Models
	login := false
	for _, store := range a.stores() {
		for _, one := range store.of(name, a.in.conf.Auth.Order[name]) {
			key := cmp.Or(v.expand(one.Key), v.refer(one.KeyRef))
			if one.Type == "token" && name != "anthropic" && (one.Expires == 0 || one.Expires > float64(time.Now().UnixMilli())) {
				key = cmp.Or(v.expand(one.Token), v.refer(one.TokenRef))
			}
			if key != "" {
				p.Key, p.From = key, store.from
				return p, nil
			}
			login = login || one.Type != "api_key"
		}
	}
	if key, from := v.look(strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name)) + "_API_KEY"); key != "" {
		p.Key, p.From = key, from
		return p, nil
	}
	var text string
	if json.Unmarshal(conf.Key, &text) == nil {
		p.Key = v.expand(text)
		if value, _ := v.look(text); value != "" { // the name of a variable
			p.Key = value
		}
	} else {
		p.Key = v.refer(conf.Key)
	}
	switch p.From = a.in.File; {
	case p.Key != "":
		return p, nil
	case listed && p.BaseURL != "" && len(conf.Key) == 0 && !login: // a server that needs none
		return p, nil
	case login:
		return p, fmt.Errorf("%w: what OpenClaw has for %s is a login of its own, not a key", ErrNoKey, name)
	}
	return p, fmt.Errorf("%w for %s", ErrNoKey, name)
}

// stores returns where the keys of a may be: its own first, then those that agents
// share, then those of the main one, which the others inherit.
func (a Agent) stores() []profiles {
	var out []profiles
	of := func(dir string) {
		if s, ok := fromTable(filepath.Join(dir, agentDB), "SELECT store_json FROM auth_profile_store WHERE store_key = 'primary'", "SELECT state_json FROM auth_profile_state WHERE state_key = 'primary'"); ok {
			out = append(out, s)
		}
		file := filepath.Join(dir, "auth-profiles.json")
		var s profiles
		if data, err := wholefile.Read(file, maxConfig); err == nil {
			_ = json5.Unmarshal(data, &s)
			s.from = file
			out = append(out, s)
		}
	}
	of(a.dir)
	if s, ok := fromTable(filepath.Join(a.in.State, "state", "openclaw.sqlite"), "SELECT value_json FROM config_machine_state WHERE state_key = 'authProfiles.store'", "SELECT value_json FROM config_machine_state WHERE state_key = 'authProfiles.state'"); ok {
		out = append(out, s)
	}
	if main := filepath.Join(a.in.State, "agents", mainAgent, "agent"); main != a.dir {
		of(main)
	}
	return out
}

// fromTable reads a store of keys from a database, by a query for the keys and one
// for their order.
func fromTable(path string, queries ...string) (s profiles, ok bool) {
	s.from = path
	for _, text := range texts(path, nil, queries...) {
		_ = json.Unmarshal([]byte(text), &s)
	}
	return s, len(s.Profiles) > 0
}

// texts returns the first column of the rows that queries find in a database. One
// without the table, or that cannot be read, has none.
func texts(path string, args []any, queries ...string) (out []string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	d, err := source.OpenDatabase(path)
	if err != nil {
		return nil
	}
	defer d.Close()
	_ = d.View(func() error {
		out = nil
		for _, q := range queries {
			_ = d.Each(q, args, func(r sqlx.Row) error {
				out = append(out, r.Text(0))
				return nil
			})
		}
		return nil
	})
	return out
}

// of returns the keys for a provider, in the order in which they are tried.
func (s profiles) of(provider string, order []string) []profile {
	names := slices.Sorted(maps.Keys(s.Profiles))
	rank := slices.Concat(s.Order[provider], order, []string{s.LastGood[provider]})
	place := func(name string) int {
		if i := slices.Index(rank, name); i >= 0 {
			return i
		}
		return len(rank)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
	var out []profile
	for _, name := range names {
		if p := s.Profiles[name]; strings.EqualFold(p.Provider, provider) {
			out = append(out, p)
		}
	}
	return out
}

// variables are what ${NAME} stands for in OpenClaw's files: the environment, then
// what the configuration adds to it, then the file .env of its state.
type variables struct {
	getenv func(string) string
	in     Installation
}

func (v variables) look(name string) (value, from string) {
	if !variable.MatchString(name) {
		return "", ""
	}
	if value := v.getenv(name); value != "" {
		return value, "the environment"
	}
	var vars map[string]json.RawMessage
	_ = json.Unmarshal(v.in.conf.Env["vars"], &vars)
	for _, raw := range []json.RawMessage{vars[name], v.in.conf.Env[name]} {
		if json.Unmarshal(raw, &value) == nil && value != "" {
			return value, v.in.File
		}
	}
	file := filepath.Join(v.in.State, ".env")
	data, _ := wholefile.Read(file, maxConfig)
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
		if ok && strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `"'`), file
		}
	}
	return "", ""
}

var (
	variable  = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
	reference = regexp.MustCompile(`\$?\$\{[^}]*\}`)
)

// expand fills in the variables that a text refers to. It is "" if one of them is
// not set.
func (v variables) expand(text string) string {
	missing := false
	out := reference.ReplaceAllStringFunc(strings.TrimSpace(text), func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		value, _ := v.look(ref[2 : len(ref)-1])
		missing = missing || value == ""
		return value
	})
	if missing {
		return ""
	}
	return out
}

// refer returns the secret that an object says is in a variable. Those that a
// program or a file would have to tell are not looked up.
func (v variables) refer(raw json.RawMessage) string {
	var ref struct{ Source, ID string }
	if json.Unmarshal(raw, &ref) != nil || ref.Source != "env" {
		return ""
	}
	value, _ := v.look(ref.ID)
	return value
}
