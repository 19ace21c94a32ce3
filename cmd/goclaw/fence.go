package main

import (
	"fmt"
	"os"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/tool"
)

// fence keeps the model's tools out of goclaw's own state: its home (except the
// folder workspace in it), configuration, sessions, locks and the commands that
// the user has allowed, wherever those are.
func fence(c *config.Loaded) tool.Fence {
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
	dbs := []string{indexAt(c), filepath.Join(c.Home, "sessions.db"), filepath.Join(c.Home, "index.db")}
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
	// it is goclaw's state itself.
	for _, dir := range own {
		if dir != c.Workspace && within(dir, c.Workspace) {
			f.Open = append(f.Open, c.Workspace)
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

// checkWorkspace refuses a workspace that tools could not use.
func checkWorkspace(c *config.Loaded) error {
	if fence(c).Check(c.Workspace) == nil {
		return nil
	}
	return fmt.Errorf("the workspace %s (%s) holds goclaw's own state, which tools may not reach: choose another folder, such as %s",
		c.Workspace, c.Source("workspace"), filepath.Join(c.Home, "workspace"))
}
