package config

import (
	"path/filepath"
	"strings"
)

// IndexPath is where the search index is: index.db in goclaw's home, or next to
// a database of sessions outside it. Each PostgreSQL has one of its own in the home.
func (c *Loaded) IndexPath() string {
	path := c.Session.Path
	if c.Session.Store == "postgres" {
		return filepath.Join(c.Home, "index-"+Digest(path)+".db")
	}
	if c.Session.Store != "sqlite" || path == filepath.Join(c.Home, "sessions.db") {
		return filepath.Join(c.Home, "index.db")
	}
	return strings.TrimSuffix(path, ".db") + ".index.db"
}
