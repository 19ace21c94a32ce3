package instructions

import (
	"os"
	"path/filepath"
	"strings"
)

// gitDir returns the folder in which git keeps the repository of folder, and the
// .git in its root.
func gitDir(folder string) (dir, entry string) {
	entry = filepath.Join(above(folder)[0], ".git")
	data, err := os.ReadFile(entry)
	if err != nil {
		return entry, entry
	}
	return named(data, "gitdir:", filepath.Dir(entry)), entry // a worktree: a file that names the folder
}

// named returns the path that a file of git holds after prefix, relative to base.
func named(data []byte, prefix, base string) string {
	path := strings.TrimSpace(strings.TrimPrefix(string(data), prefix))
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return path
}

// GitDirs returns the folders that git writes in for the repository of folder: its
// own and, of a worktree, the one that it shares. A .git that names a folder which
// does not name it in turn counts for nothing: anyone could have written it.
func GitDirs(folder string) []string {
	dir, entry := gitDir(folder)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	if dir == entry {
		return []string{dir}
	}
	back, err := os.ReadFile(filepath.Join(dir, "gitdir"))
	if err != nil || named(back, "", dir) != entry {
		return nil
	}
	common, err := os.ReadFile(filepath.Join(dir, "commondir"))
	if err != nil {
		return []string{dir}
	}
	return []string{dir, named(common, "", dir)}
}

// Branch returns the git branch that folder is on, "" if it is on none.
func Branch(folder string) string {
	git, _ := gitDir(folder)
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
