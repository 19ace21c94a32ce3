package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A copy of this very tree builds under another path.
func TestAnotherPath(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Skip("not a clone: ", err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const path = "example.org/you/claw"
	n, err := rewrite(dir, path)
	if err != nil || n < 100 {
		t.Fatalf("%d files changed, %v", n, err)
	}
	goCommand := func(args ...string) string {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	// Every import of every package and test is found, and none is the old one.
	for _, imp := range strings.Fields(goCommand("list", "-test", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./...")) {
		if imp == "goclaw" || strings.HasPrefix(imp, "goclaw/") {
			t.Errorf("%s is still imported", imp)
		}
	}
	// The program compiles. It is not linked, for no cache would keep that;
	// -trimpath lets the cache serve every copy.
	goCommand("list", "-export", "-deps", "-trimpath", "-buildvcs=false", "-f", "{{.Export}}", "./cmd/goclaw")
	if again, err := rewrite(dir, path); err != nil || again != 0 {
		t.Errorf("a second time %d files changed, %v", again, err)
	}
}

func TestRewrite(t *testing.T) {
	for path, c := range map[string]struct{ in, want string }{
		"go.mod":          {"module goclaw\n\ngo 1.26\n\nrequire goclawish v1\n", "module h/me/x\n\ngo 1.26\n\nrequire goclawish v1\n"},
		"examples/go.mod": {"module examples\n\nrequire goclaw v0.0.0\n\nreplace goclaw => ../\n", "module examples\n\nrequire h/me/x v0.0.0\n\nreplace h/me/x => ../\n"},
		"llm/a.go":        {"package llm\n\nimport \"goclaw/llm/llmtest\"\n\nvar s = []string{\"goclaw/config.json\", \"goclaw\", `goclaw/llm`, \"goclaw/\"}\n", "package llm\n\nimport \"h/me/x/llm/llmtest\"\n\nvar s = []string{\"goclaw/config.json\", \"goclaw\", `h/me/x/llm`, \"h/me/x/\"}\n"},
		"README.md":       {"run goclaw; import `\"goclaw/llm\"`, see ~/.goclaw/llm\n", "run goclaw; import `\"h/me/x/llm\"`, see ~/.goclaw/llm\n"},
	} {
		t.Run(path, func(t *testing.T) {
			dir := t.TempDir()
			put := func(name, text string) {
				t.Helper()
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			put("go.mod", "module goclaw\n")
			put("llm/b.go", "package llm\n")
			put(path, c.in)
			if _, err := rewrite(dir, "h/me/x"); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(got) != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"", "a b", "/x", "x/", "http://host/x", `x"y`} {
		if _, err := rewrite(t.TempDir(), bad); err == nil || !strings.Contains(err.Error(), "is no module path") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
