package main

import (
	"fmt"
	"runtime/debug"
	"strings"
)

// release is the version in CHANGELOG.md that this source belongs to.
const release = "v0.7.0"

// version says which release this is, and the commit and its date where the
// build recorded them (go run records none).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	return describe(info.Settings)
}

func describe(settings []debug.BuildSetting) string {
	vcs := map[string]string{}
	for _, s := range settings {
		vcs[strings.TrimPrefix(s.Key, "vcs.")] = s.Value
	}
	commit, date := vcs["revision"], vcs["time"]
	if commit == "" {
		return release + " (commit unknown)"
	}
	commit = commit[:min(12, len(commit))]
	if vcs["modified"] == "true" {
		commit += ", modified"
	}
	return fmt.Sprintf("%s (commit %s, %s)", release, commit, date[:min(len("2006-01-02"), len(date))])
}
