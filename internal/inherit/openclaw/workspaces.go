package openclaw

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"goclaw/internal/inherit/source"
	"goclaw/internal/json5"
	"goclaw/internal/wholefile"
)

// Installation is OpenClaw as it is set up on this machine.
type Installation struct {
	State  string // the folder of its state
	File   string // its configuration, which may be missing
	Config []byte
	// Workspaces are the folders in which its agents have their memory files.
	Workspaces []Workspace

	home string
	conf config
}

// Workspace is such a folder. Extra are files and folders of it that are
// memory files besides the usual ones.
type Workspace struct {
	Path  string
	Extra []string
}

// Installed returns the installation of the user with this home. ok is false
// if there is none.
func Installed(home string, getenv func(string) string) (in Installation, ok bool) {
	states := program{}.Places(home, getenv)
	if len(states) == 0 {
		return in, false
	}
	state := states[0]
	in.State = state
	in.File = filepath.Join(state, Config)
	in.Config, _ = wholefile.Read(in.File, maxConfig) // without it, the usual places count
	if in.Config == nil && !hasAgents(state) {
		return in, false
	}
	_ = json5.Unmarshal(in.Config, &in.conf)
	in.home = home
	c := in.conf
	add := func(dir string, extra []string) {
		dir = source.Expand(strings.TrimSpace(dir), home)
		if !filepath.IsAbs(dir) || !isDir(dir) || slices.ContainsFunc(in.Workspaces, func(w Workspace) bool { return sameDir(w.Path, dir) }) {
			return
		}
		in.Workspaces = append(in.Workspaces, Workspace{dir, extra})
	}
	extra := c.Agents.Defaults.MemorySearch.ExtraPaths
	for _, a := range c.agents() {
		dir := a.Workspace
		if known, ok := in.Agent(a.ID); ok && known.Workspace != "" {
			dir = known.Workspace
		}
		add(dir, slices.Concat(extra, a.MemorySearch.ExtraPaths))
	}
	for _, dir := range []string{c.Agents.Defaults.Workspace, c.Agent.Workspace, filepath.Join(state, "workspace")} {
		add(dir, extra)
	}
	// OpenClaw looks for these in the home, wherever its state is.
	if home != "" {
		add(filepath.Join(home, ".openclaw", "workspace"), extra)
	}
	// Those of other agents, and of profiles.
	for _, at := range []string{state, filepath.Join(home, ".openclaw")} {
		found, _ := filepath.Glob(filepath.Join(GlobQuote(at), "workspace-*"))
		for _, dir := range found {
			add(dir, extra)
		}
	}
	return in, true
}

func isDir(path string) bool {
	in, err := os.Stat(path)
	return err == nil && in.IsDir()
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}
