package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGrep(t *testing.T) {
	s := open(t, Options{Fence: Fence{}}, map[string]string{
		"main.go":         "package main\n\nfunc main() {\n\trun()\n}\n",
		"lib/run.go":      "package lib\n\n// Run runs.\nfunc Run() {}\n",
		"lib/run_test.go": "package lib\n\nfunc TestRun() { Run() }\n",
		"vendor/x.go":     "func Run() {}\n",
		"binary":          "func Run\x00",
		".git/config":     "func Run\n",
		".gitignore":      "vendor/\n",
		"sub/.gitignore":  "*.log\n!keep.log\n",
		"sub/a.log":       "func Run\n",
		"sub/keep.log":    "func Run\n",
		"sub/deep/b.log":  "func Run\n",
		"long.txt":        strings.Repeat("x", 5000) + "needle\n",
		"many.txt":        strings.Repeat("again\n", 500),
		"a b.txt":         "spaced Run\n",
	})
	if err := os.Symlink("/etc", filepath.Join(s.ws.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args o
		want string
	}{
		"all":       {o{"pattern": `func \(?Run`}, "lib/run.go:4: func Run() {}\nsub/keep.log:1: func Run\n"},
		"case":      {o{"pattern": "(?i)FUNC run", "glob": "*.go"}, "lib/run.go:4: func Run() {}\n"},
		"a folder":  {o{"pattern": "Run", "path": "lib", "glob": "*_test.go"}, "lib/run_test.go:3: func TestRun() { Run() }\n"},
		"a path":    {o{"pattern": "Run", "glob": "lib/**/*.go"}, "lib/run.go:3: // Run runs.\nlib/run.go:4: func Run() {}\nlib/run_test.go:3: func TestRun() { Run() }\n"},
		"a file":    {o{"pattern": "run", "path": "main.go", "context": 1}, "main.go:3- func main() {\nmain.go:4: \trun()\nmain.go:5- }\n"},
		"ignored":   {o{"pattern": "Run", "path": "vendor/x.go"}, "vendor/x.go:1: func Run() {}\n"},
		"deep":      {o{"pattern": "Run", "path": "sub/deep"}, "no line matches\n"},
		"nothing":   {o{"pattern": "nowhere at all"}, "no line matches\n"},
		"long line": {o{"pattern": "needle"}, "long.txt:1: " + strings.Repeat("x", 400) + "…\n"},
	} {
		if diff := cmp.Diff(c.want, ok(t, s, "grep", c.args)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	contains(t, ok(t, s, "grep", o{"pattern": "again"}), "many.txt:200: again", "[the first 200 matches, in 1 files; narrow the pattern")
	fails(t, s, "grep", o{"pattern": "("}, "pattern is not a regular expression")
	fails(t, s, "grep", o{"pattern": "x", "path": "../x"}, "outside")
	fails(t, s, "grep", o{"pattern": "x", "path": "gone"}, "does not exist")
	fails(t, s, "grep", o{"pattern": "x", "glob": "["}, "is not a valid pattern")
}

func TestGlob(t *testing.T) {
	s := open(t, Options{}, map[string]string{"a.go": "", "b/c.go": "", "b/d/e.go": "", "b/d/e.txt": "", "x/y.go": "", ".gitignore": "/x\n"})
	list := func(args o) []string {
		t.Helper()
		got := strings.Split(strings.TrimSpace(ok(t, s, "glob", args)), "\n")
		slices.Sort(got)
		return got
	}
	for name, c := range map[string]struct {
		args o
		want []string
	}{
		"names":     {o{"pattern": "*.go"}, []string{"a.go", "b/c.go", "b/d/e.go"}},
		"all":       {o{"pattern": "**/*.go"}, []string{"a.go", "b/c.go", "b/d/e.go"}},
		"one level": {o{"pattern": "b/*.go"}, []string{"b/c.go"}},
		"a folder":  {o{"pattern": "d/*", "path": "b"}, []string{"b/d/e.go", "b/d/e.txt"}},
		"braces":    {o{"pattern": "**/*.{txt,md}"}, []string{"b/d/e.txt"}},
		"none":      {o{"pattern": "*.rs"}, []string{"no file matches"}},
	} {
		if diff := cmp.Diff(c.want, list(c.args)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	fails(t, s, "glob", o{"pattern": "["}, "is not a valid pattern")
}

// TestIgnoreAsGit compares what is left out with what git leaves out.
func TestIgnoreAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	files := []string{
		"a.log", "keep.log", "build/x", "src/build/x", "src/a.o", "src/deep/a.o", "doc/a.txt", "doc/b/a.txt", "foo/bar/baz", "foo/x/bar/baz",
		"# odd", "!bang", "space ", "abc", "abd", "x/abc/y", "one/two/three.txt", "node_modules/m/index.js", "deep/node_modules/m/i.js", "tmp/keep/me", "tmp/other",
	}
	for _, ignore := range []string{
		"*.log\n!keep.log\n", "build/\n", "/build\n", "build\n", "*.o\n", "src/*.o\n", "src/**/*.o\n", "**/build\n", "foo/**/bar\n", "foo/*/bar\n", "doc/**\n!doc/b/\n",
		"\\# odd\n", "\\!bang\n", "# a comment\n\n", "space\\ \n", "ab[cd]\n", "ab?\n", "x/abc\n", "/x/abc/\n", "one/\n!one/two/three.txt\n", "node_modules\n",
		"tmp/*\n!tmp/keep\n", "*\n!*/\n!*.txt\n", "**/\n", "a.log \n", "A.LOG\n",
	} {
		dir := t.TempDir()
		for _, f := range files {
			put(t, filepath.Join(dir, f), "x")
		}
		put(t, filepath.Join(dir, ".gitignore"), ignore)
		for _, args := range [][]string{{"init", "-q"}, {"config", "core.quotepath", "off"}} {
			if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
		out, err := exec.Command("git", "-C", dir, "ls-files", "-z", "-o", "--exclude-standard").Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		slices.Sort(want)
		s := open(t, Options{Workspace: dir}, nil)
		var got []string
		if err := s.ws.walk(t.Context(), ".", func(path string) error { got = append(got, path); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-git +ours)\n%s", ignore, diff)
		}
	}
}

// TestSearchSeesNothingPrivate: neither tool shows what the fence protects.
func TestSearchSeesNothingPrivate(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "home/config.json"), "needle\n")
	put(t, filepath.Join(dir, "notes.txt"), "needle\n")
	s := open(t, Options{Workspace: dir, Fence: Fence{Private: []string{filepath.Join(dir, "home")}}}, nil)
	if got := ok(t, s, "grep", o{"pattern": "needle"}); got != "notes.txt:1: needle\n" {
		t.Error(got)
	}
	if got := ok(t, s, "glob", o{"pattern": "**"}); got != "notes.txt\n" {
		t.Error(got)
	}
	fails(t, s, "grep", o{"pattern": "needle", "path": "home"}, "private")
	fails(t, s, "grep", o{"pattern": "needle", "path": "home/config.json"}, "private")
	fails(t, s, "glob", o{"pattern": "*", "path": "home"}, "private")
}
