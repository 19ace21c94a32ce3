package main

import (
	"fmt"
	"os"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/store/sqlite"
)

// place decides where goclaw's own sessions are. A folder in which another
// program keeps its sessions is imported from and not written to, unless
// session.shared is set: goclaw's own sessions are then in its home.
func (e *env) place(c *config.Loaded) {
	if c.Session.Store == "postgres" {
		return
	}
	dir, own := c.Session.Path, filepath.Join(c.Home, "sessions")
	if c.Session.Store != "jsonl" {
		dir, own = filepath.Dir(dir), filepath.Join(c.Home, "sessions.db")
	}
	if within(c.Home, dir) {
		return
	}
	if _, err := os.Stat(c.Session.Path); err == nil && c.Session.Store != "jsonl" {
		return // a database that is there already stays in use, if it is goclaw's
	}
	owner, root := inherit.Owner(dir)
	switch {
	case owner == "":
	case c.Session.Shared && c.Session.Store == "jsonl":
		db, n := inherit.MovedInto(root)
		if db == "" {
			c.Session.Path = root
			return
		}
		// What is written there now, OpenClaw moves away as well.
		e.foreign = root
		e.moved = fmt.Sprintf("OpenClaw has moved the sessions of %s into its database %s (%s): goclaw import brings them back, and goclaw's own are in %s from now on", dir, db, transcript.Count(n, "session"), own)
		e.placed = e.moved
		c.Sources["session.path"] = fmt.Sprintf("%s names a folder that OpenClaw has moved into a database", c.Source("session.path"))
		c.Session.Path = own
	case c.Session.Shared:
	default:
		e.foreign = root
		e.placed = fmt.Sprintf("%s is %s's and goclaw does not write to it: its sessions are imported, and goclaw's own are in %s (session.shared: true would write there)", dir, owner, own)
		c.Sources["session.path"] = fmt.Sprintf("%s names a folder of %s", c.Source("session.path"), owner)
		c.Session.Path = own
	}
}

// notForeign refuses a file at path that is not goclaw's database, because opening
// it would change it.
func notForeign(path string) error {
	if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
		return nil // the store says what is wrong, if anything is
	}
	switch owner, n := inherit.DatabaseOwner(path); owner {
	case "":
		return nil
	case inherit.FirstGoclaw:
		return fmt.Errorf("%s is the database of an earlier GoClaw, and goclaw does not write to it: mv %s %s.old, and goclaw import %s.old imports its sessions (%d)", path, path, path, path, n)
	case inherit.OpenClaw:
		return fmt.Errorf("%s is OpenClaw's and goclaw does not write to it: set session.path to another file, and goclaw import %s imports its sessions (%d)", path, path, n)
	default:
		if sqlite.HasRecords(path) { // only its mark is damaged
			return nil
		}
		return fmt.Errorf("%s is a database of another program, and goclaw does not write to it: move it away, or set session.path to another file", path)
	}
}

// within reports whether path is dir or inside it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}
