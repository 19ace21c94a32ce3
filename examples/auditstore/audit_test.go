package auditstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(dir string) (session.Store, error) { return Open(dir) })
}

func TestAudit(t *testing.T) {
	dir := t.TempDir()
	st, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, err := session.Load(t.Context(), st, "main:cli:ana", session.System{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if want := string(s.ID) + " 1-1\n"; err != nil || !strings.HasSuffix(string(got), want) {
		t.Errorf("the audit log is %q, %v, want %q", got, err, want)
	}
}
