package main

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		want     string
		settings []debug.BuildSetting
	}{
		{release + " (commit unknown)", []debug.BuildSetting{{Key: "GOOS", Value: "linux"}}},
		{release + " (commit 0123456789ab, 2026-11-15)", []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-15T10:00:00Z"}, {Key: "vcs.modified", Value: "false"}}},
		{release + " (commit 0123456789ab, modified, 2026-11-15)", []debug.BuildSetting{
			{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-11-15T10:00:00Z"}, {Key: "vcs.modified", Value: "true"}}},
	} {
		if got := describe(c.settings); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// The newest version in the changelog is the one that the program says.
func TestVersionIsInChangelog(t *testing.T) {
	data, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "\n## ")
	if got, _, _ := strings.Cut(rest, " "); got != release {
		t.Errorf("CHANGELOG.md begins with %s, the program is %s", got, release)
	}
}
