package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// texts returns what was found, by its path below root.
func texts(t *testing.T, root string, files Files) (out []string) {
	t.Helper()
	for _, f := range files {
		rel, err := filepath.Rel(root, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, filepath.ToSlash(rel)+": "+f.Text)
	}
	return out
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	home, repo := filepath.Join(root, "home"), filepath.Join(root, "src/repo")
	put(t, filepath.Join(root, "src/AGENTS.md"), "above the repository")
	put(t, filepath.Join(repo, ".git/HEAD"), "ref: refs/heads/main")
	put(t, filepath.Join(repo, "AGENTS.md"), "the repository\n")
	put(t, filepath.Join(repo, "CLAUDE.md"), "not read: there is an AGENTS.md")
	put(t, filepath.Join(repo, "a/CLAUDE.md"), "a")
	put(t, filepath.Join(repo, "a/b/AGENTS.md"), " \n")
	put(t, filepath.Join(repo, "a/b/c/AGENTS.md"), "c")
	put(t, filepath.Join(repo, "other/AGENTS.md"), "beside")
	put(t, filepath.Join(home, ".claude/CLAUDE.md"), "mine")

	check := func(what, folder string, most int, want ...string) {
		t.Helper()
		files, err := Find(folder, home, most)
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if diff := cmp.Diff(want, texts(t, root, files)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	mine, all := "home/.claude/CLAUDE.md: mine", 1000
	check("below", filepath.Join(repo, "a/b/c"), all, mine, "src/repo/AGENTS.md: the repository", "src/repo/a/CLAUDE.md: a", "src/repo/a/b/c/AGENTS.md: c")
	check("the root", repo, all, mine, "src/repo/AGENTS.md: the repository")
	check("no repository", filepath.Join(root, "src"), all, mine, "src/AGENTS.md: above the repository")
	check("nothing", root, all, mine)
	check("little room", filepath.Join(repo, "a"), 8, "home/.claude/CLAUDE.md: ", "src/repo/AGENTS.md: the rep", "src/repo/a/CLAUDE.md: a")
	put(t, filepath.Join(home, "AGENTS.md"), "mine too")
	check("home", home, all, "home/AGENTS.md: mine too") // once

	// What cannot be read does not hide the rest.
	if err := os.MkdirAll(filepath.Join(repo, "odd/AGENTS.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := Find(filepath.Join(repo, "odd"), "", all)
	if err == nil || !strings.Contains(err.Error(), "odd/AGENTS.md cannot be read") || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestFindHostile: a repository may come from somebody else.
func TestFindHostile(t *testing.T) {
	root := t.TempDir()
	home, repo := filepath.Join(root, "home"), filepath.Join(root, "repo")
	put(t, filepath.Join(repo, ".git/HEAD"), "ref: refs/heads/main")
	put(t, filepath.Join(home, "private"), "a key")
	put(t, filepath.Join(home, "shared"), "mine")
	put(t, filepath.Join(repo, "docs/agents.md"), "inside")
	put(t, filepath.Join(repo, "a/AGENTS.md"), "\x7fELF\x00\x01")
	put(t, filepath.Join(repo, "a/b/AGENTS.md"), strings.Repeat("rule\n", 1<<18))
	for link, to := range map[string]string{
		filepath.Join(home, "AGENTS.md"):       "shared", // one's own links lead anywhere
		filepath.Join(repo, "AGENTS.md"):       "../home/private",
		filepath.Join(repo, "a/b/c/CLAUDE.md"): "../../../docs/agents.md",
	} {
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Find(filepath.Join(repo, "a/b/c"), home, 17)
	want := []string{"home/AGENTS.md: ", "repo/a/b/AGENTS.md: rule\nrule\nr", "repo/a/b/c/CLAUDE.md: inside"}
	if diff := cmp.Diff(want, texts(t, root, files)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := files[1].Whole; n != 5<<18 {
		t.Errorf("the large file has %d bytes", n)
	}
	for _, want := range []string{"repo/AGENTS.md cannot be read: it is a link that leads out of the repository", "repo/a/AGENTS.md cannot be read: it is not text"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	// What is not used is not announced as new, either.
	if now, _ := Paths(filepath.Join(repo, "a/b/c"), home); len(files.Changed(now)) > 0 {
		t.Errorf("changed: %v", files.Changed(now))
	}
}

func TestChanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "AGENTS.md")
	now := func() []string { paths, _ := Paths(dir, ""); return paths }
	none, err := Find(dir, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, "one")
	if diff := cmp.Diff([]string{path}, none.Changed(now())); diff != "" {
		t.Errorf("a new file: %s", diff)
	}
	files, err := Find(dir, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := files.Changed(now()); len(got) > 0 {
		t.Errorf("nothing has changed: %v", got)
	}
	put(t, path, "two")
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path}, files.Changed(now())); diff != "" {
		t.Errorf("another text: %s", diff)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{path}, files.Changed(now())); diff != "" {
		t.Errorf("it is gone: %s", diff)
	}
}

func TestBranch(t *testing.T) {
	dir := t.TempDir()
	if got := Branch(dir); got != "" {
		t.Errorf("no repository: %q", got)
	}
	put(t, filepath.Join(dir, ".git/HEAD"), "ref: refs/heads/fix/it\n")
	if got := Branch(filepath.Join(dir, "a/b")); got != "fix/it" {
		t.Errorf("below a repository: %q", got)
	}
	tree := t.TempDir()
	put(t, filepath.Join(dir, ".git/worktrees/w/HEAD"), "ref: refs/heads/other\n")
	put(t, filepath.Join(tree, ".git"), "gitdir: "+filepath.Join(dir, ".git/worktrees/w")+"\n")
	if got := Branch(tree); got != "other" {
		t.Errorf("a worktree: %q", got)
	}
	put(t, filepath.Join(dir, ".git/HEAD"), "0123456789012345678901234567890123456789\n")
	if got := Branch(dir); got != "" {
		t.Errorf("no branch: %q", got)
	}
}

// TestRead: of a long file the model gets the beginning and the end, and of all
// only so much.
// TestGitDirs: git's folders are found from below the repository and in a
// worktree, but not because some file says so.
func TestGitDirs(t *testing.T) {
	root := t.TempDir()
	repo, tree, fake := filepath.Join(root, "repo"), filepath.Join(root, "tree"), filepath.Join(root, "fake")
	own := filepath.Join(repo, ".git/worktrees/tree")
	put(t, filepath.Join(repo, "sub/f"), "")
	put(t, filepath.Join(own, "gitdir"), filepath.Join(tree, ".git")+"\n")
	put(t, filepath.Join(own, "commondir"), "../..\n")
	put(t, filepath.Join(tree, ".git"), "gitdir: "+own+"\n")
	put(t, filepath.Join(fake, ".git"), "gitdir: "+own+"\n")
	for folder, want := range map[string][]string{
		filepath.Join(repo, "sub"): {filepath.Join(repo, ".git")},
		tree:                       {own, filepath.Join(repo, ".git")},
		fake:                       nil,
		filepath.Join(root, "no"):  nil,
	} {
		if diff := cmp.Diff(want, GitDirs(folder)); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	put(t, path("a"), strings.Repeat("ä", 10)+"bc")
	put(t, path("b"), "short")
	put(t, path("c"), "too much")
	files, err := Read([]string{path("a"), path("none"), path("b"), path("c")}, 10, 54)
	want := []string{"a: äääääää\n[... 3 characters left out ...]\nbc", "b: short", "c: "}
	if diff := cmp.Diff(want, texts(t, dir, files)); diff != "" || err != nil || !files[0].Cut || files[1].Cut {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
