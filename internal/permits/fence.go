// Package permits says what the model's tools may do here: the fence around goclaw's
// own state, the rules for what is done without a question, and how commands are
// confined. It reads the settings and what the user has allowed for good.
package permits

import (
	"fmt"
	"os"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/tool"
)

// Fence keeps the model's tools out of goclaw's own state: its home (except the
// folder workspace in it), configuration, sessions, locks and the commands that
// the user has allowed, wherever those are.
func Fence(c *config.Loaded) tool.Fence {
	f := tool.Fence{Private: []string{c.Home, c.File}, Open: []string{filepath.Join(c.Home, "workspace")}}
	// The home that a start without GOCLAW_HOME would use.
	if usual, err := config.Home(unset("GOCLAW_HOME")); err == nil && usual != c.Home {
		f.Private = append(f.Private, usual)
		f.Open = append(f.Open, filepath.Join(usual, "workspace"))
	}
	// By name as well: in the home they may be links to somewhere else.
	for _, name := range []string{"config.json", "allowed", "consent.json", "windows.json", "history", "inherit.json", "removed.json", "sessions", "locks"} {
		f.Private = append(f.Private, filepath.Join(c.Home, name))
	}
	dbs := []string{c.IndexPath(), filepath.Join(c.Home, "sessions.db"), filepath.Join(c.Home, "index.db")}
	own := []string{c.Home}
	if c.Session.Store != "postgres" {
		dbs, own = append(dbs, c.Session.Path), append(own, c.Session.Path)
	}
	for _, db := range dbs {
		f.Private = append(f.Private, db, db+"-wal", db+"-shm", db+"-journal", db+"-reserve")
	}
	if c.Session.Store == "sqlite" { // jsonl has its locks in its folder
		f.Private = append(f.Private, filepath.Join(filepath.Dir(c.Session.Path), "locks"))
	}
	// A workspace that the user put inside a private folder is allowed, unless
	// it is goclaw's state itself. So is a folder of memory files.
	for _, dir := range own {
		for _, open := range []string{c.Workspace, c.Memory} {
			if dir != open && config.Within(dir, open) {
				f.Open = append(f.Open, open)
			}
		}
	}
	return f
}

// unset is the environment without one variable.
func unset(name string) func(string) string {
	return func(key string) string {
		if key == name {
			return ""
		}
		return os.Getenv(key)
	}
}

// CheckWorkspace refuses a workspace or a folder of memory files that tools
// could not use.
func CheckWorkspace(c *config.Loaded) error {
	for _, at := range []struct{ what, key, path string }{{"the workspace", "workspace", c.Workspace}, {"the folder of memory files", "memory", c.Memory}} {
		if Fence(c).Check(at.path) != nil {
			return fmt.Errorf("%s %s (%s) holds goclaw's own state, which tools may not reach: choose another folder, such as %s",
				at.what, at.path, c.Source(at.key), filepath.Join(c.Home, "workspace"))
		}
	}
	return nil
}
