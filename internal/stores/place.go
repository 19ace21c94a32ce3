package stores

import (
	"fmt"
	"os"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/store/sqlite"
)

// Placed is where goclaw's own sessions are, if that is not where session.path says.
type Placed struct {
	Foreign string // the folder that session.path names, if it is another program's
	Why     string // tells the user so
	Moved   string // says that OpenClaw has moved the logs of a shared store away
}

// Place decides where goclaw's own sessions are. A folder in which another
// program keeps its sessions is imported from and not written to, unless
// session.shared is set: goclaw's own sessions are then in its home.
func Place(c *config.Loaded) (p Placed) {
	if c.Session.Store == "postgres" {
		return p
	}
	dir, own := c.Session.Path, filepath.Join(c.Home, "sessions")
	if c.Session.Store != "jsonl" {
		dir, own = filepath.Dir(dir), filepath.Join(c.Home, "sessions.db")
	}
	if config.Within(c.Home, dir) {
		return p
	}
	if _, err := os.Stat(c.Session.Path); err == nil && c.Session.Store != "jsonl" {
		return p // a database that is there already stays in use, if it is goclaw's
	}
	owner, root := inherit.Owner(dir)
	switch {
	case owner == "":
	case c.Session.Shared && c.Session.Store == "jsonl":
		db, n := inherit.MovedInto(root)
		if db == "" {
			c.Session.Path = root
			return p
		}
		// What is written there now, OpenClaw moves away as well.
		p.Foreign = root
		p.Moved = fmt.Sprintf("OpenClaw has moved the sessions of %s into its database %s (%s): goclaw import brings them back, and goclaw's own are in %s from now on", dir, db, transcript.Count(n, "session"), own)
		p.Why = p.Moved
		c.Sources["session.path"] = fmt.Sprintf("%s names a folder that OpenClaw has moved into a database", c.Source("session.path"))
		c.Session.Path = own
	case c.Session.Shared:
	default:
		p.Foreign = root
		p.Why = fmt.Sprintf("%s is %s's and goclaw does not write to it: its sessions are imported, and goclaw's own are in %s (session.shared: true would write there)", dir, owner, own)
		c.Sources["session.path"] = fmt.Sprintf("%s names a folder of %s", c.Source("session.path"), owner)
		c.Session.Path = own
	}
	return p
}

// CheckOwner refuses a file at path that is not goclaw's database, because opening
// it would change it.
func CheckOwner(path string) error {
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
