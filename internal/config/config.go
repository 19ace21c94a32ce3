// Package config reads goclaw's configuration: commented JSON, overridden by
// the environment, every value with where it came from.
package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/memoryfiles"
	"goclaw/session"
)

// Config is the whole configuration. Every field has a default; see Default.
//
// The struct is the table of settings: json is the name, doc the meaning, and
// rule what a value must be. Reading, checking, showing, the sample and
// docs/guide/configuration.md all go by it.
type Config struct {
	Model         string               `json:"model" doc:"the model to ask, as provider/model; offline is the built-in one; empty: the first that is available"`
	ContextWindow int                  `json:"contextWindow" doc:"how many tokens the model takes; 0: as the catalogue says, else its server, else 32000; a number here goes before what a refusal said" rule:"at least 0"`
	MaxTokens     int                  `json:"maxTokens" doc:"the longest answer, in tokens; 0: as the catalogue says" rule:"at least 0"`
	Thinking      string               `json:"thinking" doc:"how much the model thinks before it answers; empty: its own default" rule:"empty or one of off minimal low medium high xhigh max"`
	Models        map[string]Model     `json:"models" doc:"what differs from the catalogue, by provider/model"`
	Workspace     string               `json:"workspace" doc:"the folder that tools work in; relative to the current folder; empty: the current folder"`
	Memory        string               `json:"memory" doc:"the folder of MEMORY.md and memory/, whatever the workspace; relative to the current folder; empty: workspace in goclaw's home"`
	Providers     map[string]Provider  `json:"providers" doc:"addresses and keys, by provider"`
	Tools         Tools                `json:"tools"`
	MCPServers    map[string]MCPServer `json:"mcpServers" doc:"other programs whose tools the model may call, by name; goclaw mcp add writes this"`
	Limits        Limits               `json:"limits"`
	Search        Search               `json:"search"`
	Agents        Agents               `json:"agents"`
	Session       Session              `json:"session"`
}

// Model overrides what the catalogue says.
type Model struct {
	ContextWindow int     `json:"contextWindow" doc:"how many tokens this model takes, whatever a refusal said" rule:"at least 0"`
	MaxTokens     int     `json:"maxTokens" doc:"its longest answer, in tokens" rule:"at least 0"`
	InputPrice    float64 `json:"inputPrice" doc:"dollars per million tokens" rule:"at least 0"`
	OutputPrice   float64 `json:"outputPrice" doc:"dollars per million tokens" rule:"at least 0"`
	API           string  `json:"api" doc:"how this model is asked, where its server speaks OpenAI's language; empty: as its provider" rule:"empty or one of chat responses"`
}

// Provider is where a model is asked.
type Provider struct {
	BaseURL string `json:"baseUrl" doc:"its address; empty: the usual one" rule:"an address"`
	APIKey  string `json:"apiKey" doc:"its key, or ${NAME} for that of a variable; ANTHROPIC_API_KEY, OPENAI_API_KEY and the like are read if it is empty"`
	API     string `json:"api" doc:"which of OpenAI's two APIs it is asked with: chat completions or Responses; empty: Responses for the reasoning models of OpenAI itself" rule:"empty or one of chat responses"`
}

// Tools are what the model may do.
type Tools struct {
	Mode        string   `json:"mode" doc:"what is done without asking: nothing, edits of files, only reading (plan), or all" rule:"one of ask edits plan all"`
	Allow       []string `json:"allow" doc:"what is allowed in every mode, such as bash(go test): commands that begin with these words"`
	Bash        string   `json:"bash" doc:"whether the model may run commands" rule:"one of ask on off"`
	BashTimeout Duration `json:"bashTimeout" doc:"how long a command may run, at most 10m"`
	Sandbox     string   `json:"sandbox" doc:"let commands write only below the workspace: in the mode all, where the system has the sandbox (auto); in every mode, and without the sandbox no command runs (on); or never (off)" rule:"one of auto on off"`
	Network     string   `json:"network" doc:"whether commands may use the network; off needs a system that has the sandbox" rule:"one of on off"`
	Writable    []string `json:"writable" doc:"more folders that commands in the sandbox may write in, besides the usual caches"`
	Fetch       Fetch    `json:"fetch"`
}

// Fetch is how the model reads web pages.
type Fetch struct {
	Enabled bool     `json:"enabled" doc:"let the model read web pages; it asks first"`
	Private []string `json:"private" doc:"hosts that may be fetched from although their address is private, such as localhost or *.example.com; * is all"`
}

// MCPServer is a server of the Model Context Protocol, in the form that other
// programs use: a program, or an address.
type MCPServer struct {
	Type     string            `json:"type" doc:"stdio or http; empty: as command or url say" rule:"empty or one of stdio http streamable-http"`
	Command  string            `json:"command" doc:"the program to start"`
	Args     []string          `json:"args" doc:"its arguments"`
	Env      map[string]string `json:"env" doc:"variables of its environment; ${NAME} is the value of another"`
	URL      string            `json:"url" doc:"the address, if it is not a program" rule:"an address"`
	Headers  map[string]string `json:"headers" doc:"sent with every request; ${NAME} is the value of a variable"`
	Disabled bool              `json:"disabled" doc:"do not start it"`
}

// Limits end what would go too far. Dollars are counted as far as prices are
// known.
type Limits struct {
	CallsPerAnswer int     `json:"callsPerAnswer" doc:"how many tool calls of one answer are run; the model is told that the others were not; 0: 128" rule:"at least 0"`
	StepsPerTurn   int     `json:"stepsPerTurn" doc:"how often the model is asked in one turn; 0: 200" rule:"at least 0"`
	PerTurn        float64 `json:"perTurn" doc:"dollars that a turn may cost; a request that could pass it is not sent; 0: no limit" rule:"at least 0"`
	PerDay         float64 `json:"perDay" doc:"dollars that all sessions in this store may cost on a day, likewise; 0: no limit" rule:"at least 0"`
}

// Search is how past conversations and memory files are searched.
type Search struct {
	Embeddings string   `json:"embeddings" doc:"what compares meanings; endpoint is a server with OpenAI's /embeddings, such as Ollama" rule:"one of builtin off endpoint"`
	BaseURL    string   `json:"baseUrl" doc:"the address of the endpoint, such as http://localhost:11434/v1" rule:"an address"`
	Model      string   `json:"model" doc:"the model of the endpoint"`
	APIKey     string   `json:"apiKey" doc:"the key of the endpoint, if it needs one"`
	Memory     []string `json:"memory" doc:"files and folders to search besides MEMORY.md and memory/, relative to the folder of those"`
}

// Session is how conversations are kept.
type Session struct {
	Store       string      `json:"store" doc:"where logs are kept: in a database file, in files, or in a PostgreSQL that machines share" rule:"one of sqlite jsonl postgres"`
	Path        string      `json:"path" doc:"the database, the folder of logs, or postgres://user@host/name; relative to goclaw's home; empty: in goclaw's home. A folder of another program is imported from, not written to"`
	Shared      bool        `json:"shared" doc:"for jsonl: write into path even if another program keeps its sessions there, under its locks"`
	Layout      string      `json:"layout" doc:"for jsonl: the names and the form of the files" rule:"one of openclaw claw0 claw0-old"`
	DefaultKey  string      `json:"defaultKey" doc:"the key of the session that a chat opens" rule:"not empty"`
	Inherit     Inherit     `json:"inherit"`
	Checkpoint  Checkpoint  `json:"checkpoint"`
	MemoryFlush MemoryFlush `json:"memoryFlush"`
	Compaction  Compaction  `json:"compaction"`
	Retention   Retention   `json:"retention"`
}

// Inherit is whether and from where other programs' sessions are imported.
type Inherit struct {
	Enabled bool   `json:"enabled" doc:"import other agents' sessions at the first start, and with goclaw import"`
	Source  string `json:"source" doc:"a folder to look in besides the usual ones"`
	Format  string `json:"format" doc:"auto, or the one program to look for; jsonl is OpenClaw" rule:"one of auto openclaw jsonl pi claw0 claude-code codex opencode gemini-cli crush goclaw"`
	Follow  bool   `json:"follow" doc:"import automatically what other agents add to sources that were imported once"`
}

// Checkpoint is when summaries are made in advance.
type Checkpoint struct {
	Enabled        bool   `json:"enabled" doc:"make summaries in advance, in the background, so that a compaction need not wait for one"`
	Model          string `json:"model" doc:"a cheaper model for summaries; empty: the small one of the main model's vendor"`
	FallbackToMain bool   `json:"fallbackToMain" doc:"let the main model summarise if that one cannot"`
	TokenPercents  []int  `json:"tokenThresholdPercents" doc:"make one when the context reaches these percentages of the window" rule:"1 to 99"`
	TurnThreshold  int    `json:"turnThreshold" doc:"make one after this many turns; 0: never for this reason" rule:"at least 0"`
	MinTokens      int    `json:"minTokensForGen" doc:"do not make one for a smaller context" rule:"at least 0"`
}

// MemoryFlush is when the model is warned about its window.
type MemoryFlush struct {
	Enabled            bool        `json:"enabled" doc:"tell the model at the thresholds how full its window is"`
	ShowInSystemPrompt bool        `json:"showInSystemPrompt" doc:"end each request with a line such as [Context: 156k/200k tokens (78%)]; it is not in the system prompt, whatever the name says"`
	Thresholds         []Threshold `json:"thresholds" doc:"the warnings; by default at 50, 75 and 90 %"`
}

// Threshold is one warning.
type Threshold struct {
	Percent  int    `json:"percent" doc:"the percentage of the window at which it is given" rule:"1 to 99"`
	Prompt   string `json:"prompt" doc:"what the model is told" rule:"not empty"`
	InjectAs string `json:"injectAs" doc:"how: as a system message, as a user message, or as a user message with a marker; empty: marked" rule:"one of system user marked"`
}

// Compaction is how the past is replaced by a summary.
type Compaction struct {
	AskAbove         float64 `json:"askAbove" doc:"dollars above which /compact and goclaw compact ask before they make a summary" rule:"at least 0"`
	ReserveTokens    int     `json:"reserveTokens" doc:"the least number of tokens to keep free for the answer; large windows keep more, small ones at most a quarter of the window" rule:"at least 0"`
	PreferCheckpoint bool    `json:"preferCheckpoint" doc:"use the summary of a recent checkpoint instead of asking a model"`
}

// Retention is when sessions end. Only sessions that were in the trash for
// longer than Trash are removed.
type Retention struct {
	TTL     Duration            `json:"ttl" doc:"after this time without use (90m, 12h, 3d12h, 2w) a key starts a new session; empty: never; an object here is read as ttlFor"`
	TTLFor  map[string]Duration `json:"ttlFor" doc:"ttl by channel (telegram), kind (group) or key with * (main:cli:*); the longest pattern that fits counts"`
	Expired string              `json:"expired" doc:"what happens to a session that was not used for its ttl" rule:"one of keep trash"`
	Trash   Duration            `json:"trash" doc:"how long a deleted session can be restored; empty: forever"`
}

// For returns how long a session of key may be idle: as the longest pattern that
// fits says, else TTL. 0 is forever.
func (r Retention) For(key session.Key) time.Duration {
	best, ttl := "", r.TTL
	p := key.Parts()
	for pattern, d := range r.TTLFor {
		fits := pattern == p.Channel || pattern == p.Kind || pattern == string(key)
		if strings.Contains(pattern, "*") {
			fits = globbed(pattern, string(key))
		}
		if fits && (best == "" || len(pattern) > len(best) || len(pattern) == len(best) && pattern < best) {
			best, ttl = pattern, d
		}
	}
	return time.Duration(ttl)
}

// globbed reports whether text matches pattern, in which * is any text.
func globbed(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// Reserve returns the minimum that is kept free for the answer in a window of
// that many tokens: what is configured, but at most a quarter of the window. The
// problem is "" unless more was configured than the window has.
func (l *Loaded) Reserve(window int) (tokens int, problem string) {
	const key = "session.compaction.reserveTokens"
	want := l.Session.Compaction.ReserveTokens
	tokens = min(want, window/4)
	if _, said := l.Sources[key]; said && window > 0 && want >= window {
		problem = fmt.Sprintf("config: %s: %s is %d, but the window has %d tokens: a quarter of it is kept free", l.Source(key), key, want, window)
	}
	return tokens, problem
}

// Duration is written as 30s, 15m, 12h, 30d or 2w; empty is none.
type Duration time.Duration

// Home returns the folder of goclaw's state: GOCLAW_HOME, else
// ~/.openclaw/goclaw.
func Home(getenv func(string) string) (string, error) {
	if h := getenv("GOCLAW_HOME"); h != "" {
		return filepath.Abs(h)
	}
	home := getenv("HOME")
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", errors.New("neither GOCLAW_HOME nor HOME is set: set GOCLAW_HOME to the folder for goclaw's sessions")
		}
	}
	return filepath.Join(home, ".openclaw", "goclaw"), nil
}

// Default returns the configuration of a user who has set nothing.
func Default() Config {
	return Config{
		Tools:  Tools{Mode: "ask", Allow: []string{}, Bash: "ask", BashTimeout: Duration(2 * time.Minute), Sandbox: "auto", Network: "on", Writable: []string{}, Fetch: Fetch{Enabled: true, Private: []string{}}},
		Limits: Limits{CallsPerAnswer: 128, StepsPerTurn: 200},
		Search: Search{Embeddings: "builtin", Memory: []string{}},
		Agents: defaultAgents(),
		Session: Session{
			Store:      "sqlite",
			Layout:     "openclaw",
			DefaultKey: "main:cli:user",
			Inherit:    Inherit{Enabled: true, Source: "~/.openclaw/agents/main/sessions", Format: "auto", Follow: true},
			Checkpoint: Checkpoint{Enabled: true, FallbackToMain: true, TokenPercents: []int{25, 50, 75}, TurnThreshold: 15, MinTokens: 10000},
			MemoryFlush: MemoryFlush{Enabled: true, ShowInSystemPrompt: true, Thresholds: []Threshold{
				{50, "Context at 50%. Consider noting key decisions to memory.", "system"},
				{75, "Context at 75%. Write important context to memory/YYYY-MM-DD.md now.", "system"},
				{90, "Context at 90%: the past will be compacted soon. Write everything that must not be lost to memory/YYYY-MM-DD.md now. If there is nothing to write, reply NO_REPLY.", "marked"},
			}},
			Compaction: Compaction{AskAbove: 0.1, ReserveTokens: 4000, PreferCheckpoint: true},
			Retention:  Retention{TTLFor: map[string]Duration{}, Expired: "keep", Trash: Duration(30 * 24 * time.Hour)},
		},
	}
}

// paths fills in and expands the folders. A relative workspace, and any path in
// an environment variable, is relative to the current folder. Paths of sessions
// in the file are relative to the home: the folder that the program is started
// in must not decide which conversations it finds.
func (l *Loaded) paths(getenv func(string) string) error {
	if l.Workspace == "" {
		l.Workspace = "."
	}
	unset := l.Memory == ""
	if unset {
		l.Memory = filepath.Join(l.Home, "workspace")
	}
	if l.Session.Path == "" {
		if l.Session.Store == "jsonl" {
			l.Session.Path = filepath.Join(l.Home, "sessions")
		} else {
			l.Session.Path = filepath.Join(l.Home, "sessions.db")
		}
	}
	for _, p := range []struct {
		key  string
		path *string
		here bool
	}{
		{"workspace", &l.Workspace, true},
		{"memory", &l.Memory, true},
		{"session.path", &l.Session.Path, false},
		{"session.inherit.source", &l.Session.Inherit.Source, false},
	} {
		if p.path == &l.Session.Path && l.Session.Store == "postgres" {
			continue // an address
		}
		switch rest, ok := strings.CutPrefix(*p.path, "~/"); {
		case ok:
			*p.path = filepath.Join(getenv("HOME"), rest)
		case *p.path == "~":
			*p.path = getenv("HOME")
		case filepath.IsAbs(*p.path):
		case p.here || strings.HasPrefix(l.Source(p.key), "$"):
			abs, err := filepath.Abs(*p.path)
			if err != nil {
				return fmt.Errorf("config: %s: %s: %w", l.Source(p.key), p.key, err)
			}
			*p.path = abs
		default:
			*p.path = filepath.Join(l.Home, *p.path)
		}
	}
	// Memory files were in the workspace before they had a folder of their own.
	if unset && l.Sources["workspace"] != "" && hasMemory(l.Workspace) && !hasMemory(l.Memory) {
		l.Memory = l.Workspace
	}
	return nil
}

// hasMemory reports whether there are memory files in dir.
func hasMemory(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, memoryfiles.Main))
	if err != nil {
		_, err = os.Stat(filepath.Join(dir, memoryfiles.Dir))
	}
	return err == nil
}
