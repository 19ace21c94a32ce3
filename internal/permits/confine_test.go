package permits

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"goclaw/internal/config"
	"goclaw/tool"
)

func TestWritable(t *testing.T) {
	home := t.TempDir()
	repo := filepath.Join(home, "repo", "sub")
	if err := os.MkdirAll(filepath.Join(home, "repo", ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := &config.Loaded{Config: config.Default()}
	c.Workspace, c.Tools.Mode, c.Tools.Network, c.Tools.Writable = repo, "all", "off", []string{"~/more", "/srv/out", "beside"}
	getenv := func(name string) string {
		return map[string]string{"HOME": home, "GOCACHE": "/fast/cache", "GOPATH": "/go:/other"}[name]
	}
	got, err := Sandbox(c, getenv)
	if err != nil || got.Use != tool.SandboxAuto || !got.NoNetwork {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range []string{
		filepath.Join(home, "repo/.git"), filepath.Join(home, ".cache"), "/fast/cache", "/go/pkg", filepath.Join(home, ".npm"),
		filepath.Join(home, "more"), "/srv/out", filepath.Join(repo, "beside"),
	} {
		if !slices.Contains(got.Writable, want) {
			t.Errorf("%s is not among %v", want, got.Writable)
		}
	}
	if slices.Contains(got.Writable, home) || slices.Contains(got.Writable, filepath.Join(home, "repo")) {
		t.Errorf("too much: %v", got.Writable)
	}
	if _, err := os.Stat(filepath.Join(home, ".cache")); err != nil {
		t.Error(err)
	}
}
