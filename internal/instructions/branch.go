package instructions

import (
	"os"
	"path/filepath"
	"strings"
)

// Branch returns the git branch that folder is on, "" if it is on none.
func Branch(folder string) string {
	git := filepath.Join(above(folder)[0], ".git")
	if data, err := os.ReadFile(git); err == nil { // a worktree: a file that names the folder
		dir := strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir:"))
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(git), dir)
		}
		git = dir
	}
	data, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: refs/heads/")
	if !ok || len(branch) > 200 || strings.ContainsFunc(branch, func(r rune) bool { return r < ' ' }) {
		return ""
	}
	return branch
}
