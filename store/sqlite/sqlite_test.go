package sqlite

import (
	"path/filepath"
	"testing"

	"goclaw/session"
	"goclaw/store/storetest"
)

func open(t *testing.T, dir string) session.Store {
	t.Helper()
	s, err := Open(filepath.Join(dir, "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, open) }
