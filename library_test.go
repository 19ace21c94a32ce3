package goclaw_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"goclaw/session"
	"goclaw/store/sqlite"
)

// goIn runs a command of the go tool in dir, and returns what it prints.
func goIn(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GOWORK=off", "ANTHROPIC_API_KEY=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestLibrary does what docs/guide/library.md says, in a module of its own.
func TestLibrary(t *testing.T) {
	page, err := os.ReadFile("docs/guide/library.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:go)?\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("docs/guide/library.md has %d blocks of code, want 2", len(blocks))
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(blocks[1][1]), 0o644); err != nil {
		t.Fatal(err)
	}
	goIn(t, dir, "", "mod", "init", "example.org/mine")
	for line := range strings.Lines(blocks[0][1]) {
		args := strings.Fields(strings.ReplaceAll(line, "../goclaw", here))
		goIn(t, dir, "", args[1:]...)
	}
	for i, want := range []string{"not a language model", "Hello!"} { // a greeting is explained once
		if out := goIn(t, dir, "", "run", "."); !strings.Contains(out, want) {
			t.Errorf("run %d says\n%s\nwant %q", i+1, out, want)
		}
		st, err := sqlite.Open(filepath.Join(dir, "sessions.db"))
		if err != nil {
			t.Fatal(err)
		}
		for in, err := range st.List(t.Context(), session.Query{}) {
			if err != nil || in.Key != "main:telegram:42" || in.Turns != i+1 {
				t.Errorf("run %d leaves %d turns in %q (%v)", i+1, in.Turns, in.Key, err)
			}
		}
		st.Close()
	}
	if imports := strings.Count(blocks[1][1], `"goclaw/`); imports > 3 {
		t.Errorf("the first program needs %d imports of goclaw, want 3 at most", imports)
	}
}

// TestExamples builds, tests and runs the programs in examples.
func TestExamples(t *testing.T) {
	goIn(t, "examples", "", "test", "-count=1", "./...")
	dir := t.TempDir()
	bot := filepath.Join(dir, "bot")
	goIn(t, "examples", "", "build", "-o", bot, "./bot")
	for _, want := range []string{"[Ana, turn 1]", "[Ana, turn 2]"} {
		cmd := exec.Command(bot)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader("Ana: hello\n")
		cmd.Env = append(os.Environ(), "ANTHROPIC_API_KEY=")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("the bot says (%v)\n%s\nwant %s", err, out, want)
		}
	}
}

// Every public package has an example that runs.
func TestPublicPackagesHaveExamples(t *testing.T) {
	for _, pkg := range strings.Fields(goIn(t, ".", "", "list", "./...")) {
		dir, ok := strings.CutPrefix(pkg, "goclaw/")
		if !ok || strings.HasPrefix(dir, "cmd/") || slices.Contains(strings.Split(dir, "/"), "internal") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && regexp.MustCompile(`(?s)\nfunc Example.*\n\t// Output:`).Match(text)
		}) {
			t.Errorf("%s has no example that runs", dir)
		}
	}
}
