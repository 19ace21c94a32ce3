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

	"goclaw/session"
)

// Config is the whole of it. Every field has a default; see Default.
type Config struct {
	Model         string              `json:"model" doc:"provider/model; \"offline\" is the built-in one; empty: what can be found"`
	ContextWindow int                 `json:"contextWindow" doc:"tokens the model takes; 0: from the catalogue, else as its server says, else 32000"`
	MaxTokens     int                 `json:"maxTokens" doc:"tokens of an answer; 0: from the catalogue"`
	Thinking      string              `json:"thinking" doc:"off, minimal, low, medium, high or xhigh"`
	Models        map[string]Model    `json:"models" doc:"overrides of the catalogue, by provider/model"`
	Workspace     string              `json:"workspace" doc:"the folder that tools work in, with memory/ and MEMORY.md; relative: to the current folder"`
	Providers     map[string]Provider `json:"providers" doc:"base URLs and keys, by provider"`
	Tools         Tools               `json:"tools"`
	Search        Search              `json:"search"`
	Session       Session             `json:"session"`
}

// Model overrides what the catalogue says.
type Model struct {
	ContextWindow int     `json:"contextWindow"`
	MaxTokens     int     `json:"maxTokens"`
	InputPrice    float64 `json:"inputPrice" doc:"dollars per million tokens"`
	OutputPrice   float64 `json:"outputPrice" doc:"dollars per million tokens"`
}

// Provider is where a model is asked.
type Provider struct {
	BaseURL string `json:"baseUrl"`
	APIKey  string `json:"apiKey"`
}

// Tools are what the model may do.
type Tools struct {
	Bash        string   `json:"bash" doc:"ask, on or off"`
	BashTimeout Duration `json:"bashTimeout" doc:"how long a command may run"`
}

// Search is how what was said is found again.
type Search struct {
	Embeddings string   `json:"embeddings" doc:"builtin, off, or endpoint: a server with OpenAI's /embeddings, such as Ollama"`
	BaseURL    string   `json:"baseUrl" doc:"of the endpoint, such as http://localhost:11434/v1"`
	Model      string   `json:"model" doc:"that the endpoint is asked for"`
	APIKey     string   `json:"apiKey" doc:"of the endpoint, if it needs one"`
	Memory     []string `json:"memory" doc:"files and folders of the workspace to search beside MEMORY.md and memory/"`
}

// Session is how conversations are kept.
type Session struct {
	Store       string      `json:"store" doc:"sqlite or jsonl"`
	Path        string      `json:"path" doc:"the database, or the folder of logs; empty: in the home folder. Another program's is inherited from, not written to"`
	Shared      bool        `json:"shared" doc:"jsonl: write into path even where another program keeps its sessions, under its locks"`
	Layout      string      `json:"layout" doc:"of the jsonl store: openclaw, claw0 or claw0-old"`
	DefaultKey  string      `json:"defaultKey" doc:"the session that a chat opens"`
	Inherit     Inherit     `json:"inherit"`
	Checkpoint  Checkpoint  `json:"checkpoint"`
	MemoryFlush MemoryFlush `json:"memoryFlush"`
	Compaction  Compaction  `json:"compaction"`
	Retention   Retention   `json:"retention"`
}

// Inherit is whether and from where other agents' sessions are taken.
type Inherit struct {
	Enabled bool   `json:"enabled" doc:"take over other agents' sessions at the first start, and with goclaw import"`
	Source  string `json:"source" doc:"a folder to look in beside the usual ones"`
	Format  string `json:"format" doc:"auto, or the one program to look for: openclaw (or jsonl), pi, claw0, claude-code or codex"`
	Follow  bool   `json:"follow" doc:"take what they write while a chat is open"`
}

// Checkpoint is when summaries are made ahead of time.
type Checkpoint struct {
	Enabled        bool   `json:"enabled"`
	Model          string `json:"model" doc:"a cheaper model for summaries; empty: the small one of the main model's vendor"`
	FallbackToMain bool   `json:"fallbackToMain"`
	TokenPercents  []int  `json:"tokenThresholdPercents"`
	TurnThreshold  int    `json:"turnThreshold"`
	MinTokens      int    `json:"minTokensForGen"`
}

// MemoryFlush is when the model is warned about its window.
type MemoryFlush struct {
	Enabled            bool        `json:"enabled"`
	ShowInSystemPrompt bool        `json:"showInSystemPrompt"`
	Thresholds         []Threshold `json:"thresholds"`
}

// Threshold is one warning.
type Threshold struct {
	Percent  int    `json:"percent"`
	Prompt   string `json:"prompt"`
	InjectAs string `json:"injectAs" doc:"system, user or marked; empty: marked"`
}

// Compaction is how the past is folded.
type Compaction struct {
	ReserveTokens    int  `json:"reserveTokens" doc:"tokens of the window that are kept free for the answer at least, up to a quarter of it; a large window keeps more: up to a tenth of it, 16k or the model's longest answer"`
	PreferCheckpoint bool `json:"preferCheckpoint"`
}

// Retention is when sessions end. Nothing is removed but what is in the
// trash for longer than Trash.
type Retention struct {
	TTL     Duration            `json:"ttl" doc:"idle for so long (90m, 12h, 3d12h, 2w), a key begins a new session; empty: never; an object is ttlFor"`
	TTLFor  map[string]Duration `json:"ttlFor" doc:"ttl by channel (telegram), kind (group) or key with * (main:cli:*); the longest that fits holds"`
	Expired string              `json:"expired" doc:"what becomes of a session that was idle for its ttl: keep, or trash"`
	Trash   Duration            `json:"trash" doc:"how long a deleted session can be restored; empty: for ever"`
}

// For returns how long a session of key may be idle: what the longest pattern
// that fits says, else TTL. 0 is for ever.
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

// globbed reports whether text has the form of pattern, in which * is any text.
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

// Reserve returns how much of a window of so many tokens is kept free for the
// answer at least: what is configured, but never most of a small window. The
// problem is "" unless what was configured is more than the window has.
func (l *Loaded) Reserve(window int) (tokens int, problem string) {
	const key = "session.compaction.reserveTokens"
	want := l.Session.Compaction.ReserveTokens
	tokens = min(want, window/4)
	if _, said := l.Sources[key]; said && window > 0 && want >= window {
		problem = fmt.Sprintf("config: %s: %s is %d, but the window has %d tokens: a quarter of them is kept free", l.Source(key), key, want, window)
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
			return "", errors.New("neither GOCLAW_HOME nor HOME is set: set GOCLAW_HOME to the folder that shall hold goclaw's sessions")
		}
	}
	return filepath.Join(home, ".openclaw", "goclaw"), nil
}

// Default returns what holds where nothing else is said.
func Default() Config {
	return Config{
		Workspace: "",
		Tools:     Tools{Bash: "ask", BashTimeout: Duration(2 * time.Minute)},
		Search:    Search{Embeddings: "builtin", Memory: []string{}},
		Session: Session{
			Store:      "sqlite",
			Layout:     "openclaw",
			DefaultKey: "main:cli:user",
			Inherit:    Inherit{Enabled: true, Source: "~/.openclaw/agents/main/sessions", Format: "auto"},
			Checkpoint: Checkpoint{Enabled: true, FallbackToMain: true, TokenPercents: []int{25, 50, 75}, TurnThreshold: 15, MinTokens: 10000},
			MemoryFlush: MemoryFlush{Enabled: true, ShowInSystemPrompt: true, Thresholds: []Threshold{
				{50, "Context at 50%. Consider noting key decisions to memory.", "system"},
				{75, "Context at 75%. Write important context to memory/YYYY-MM-DD.md now.", "system"},
				{90, "Context at 90%: the past will be folded soon. Write everything that must not be lost to memory/YYYY-MM-DD.md now. If there is nothing to write, reply NO_REPLY.", "marked"},
			}},
			Compaction: Compaction{ReserveTokens: 4000, PreferCheckpoint: true},
			Retention:  Retention{TTLFor: map[string]Duration{}, Expired: "keep", Trash: Duration(30 * 24 * time.Hour)},
		},
	}
}

// paths fills in and expands the folders. A relative workspace, and whatever a
// variable of the environment says, is relative to the current folder, as
// everywhere. What the file says of sessions is relative to the home: where the
// program is started must not decide which conversations it finds.
func (l *Loaded) paths(getenv func(string) string) error {
	if l.Workspace == "" {
		l.Workspace = filepath.Join(l.Home, "workspace")
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
		{"session.path", &l.Session.Path, false},
		{"session.inherit.source", &l.Session.Inherit.Source, false},
	} {
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
	return nil
}
