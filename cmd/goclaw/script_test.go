package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// testPatience is how long a test waits for what must happen. It only ends a test that
// hangs: a busy machine is slow.
const testPatience = 90 * time.Second

func TestMain(m *testing.M) {
	testscript.Main(program{m}, map[string]func(){"goclaw": main})
}

// program runs tests with the real goclaw in PATH, built once as users get it,
// except for the ports where it looks for model servers.
// Scripts start it some 600 times, and a copy of the test binary, with the race
// detector, would take ten times as long.
type program struct{ *testing.M }

func (p program) Run() int {
	bin, err := exec.LookPath("goclaw") // the copy that testscript.Main has made
	if err == nil {
		build := exec.Command("go", "build", "-buildvcs=false", "-ldflags="+portFlags(), "-o", bin, ".")
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goclaw could not be built:", err)
		return 1
	}
	code := p.M.Run()
	for _, f := range atEnd {
		f()
	}
	return code
}

// atEnd are called when all tests have run.
var atEnd []func()

// goclawBin returns where the program is.
func goclawBin(t *testing.T) string {
	t.Helper()
	bin, err := exec.LookPath("goclaw")
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// TestScript runs what a user could have typed.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("GOCLAW_HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("GOCLAW_NO_LOCAL", "1")
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TZ", "UTC")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"setid":     setID,
			"oneline":   oneLineOf,
			"exit2":     exit2,
			"fakewire":  fakeWire,
			"webserver": webServer,
			"limitwire": limitWire,
			"slipwire":  slipWire,
			"lines":     countLines,
			"append":    catOnto,
			"mode":      fileMode,
		},
		RequireUniqueNames: true,
	})
}

// setid NAME takes the first session id on the last standard output.
func setID(ts *testscript.TestScript, neg bool, args []string) {
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`).FindString(ts.ReadFile("stdout"))
	if neg || len(args) != 1 || id == "" {
		ts.Fatalf("setid NAME: no session id on standard output")
	}
	ts.Setenv(args[0], id)
}

// oneline checks that the last command's error is one clear line, a hint and
// the word that a session was begun aside.
func oneLineOf(ts *testscript.TestScript, neg bool, args []string) {
	lines := strings.Split(strings.TrimRight(ts.ReadFile("stderr"), "\n"), "\n")
	if strings.HasPrefix(lines[0], "a new session, ") {
		lines = lines[1:]
	}
	for i, l := range lines {
		if i == 0 && !strings.HasPrefix(l, "goclaw: ") || i == 1 && !strings.HasPrefix(l, "  ") || i > 1 {
			ts.Fatalf("the error is not one line and a hint: %q", lines)
		}
	}
}

// exit2 COMMAND ... checks that a command fails as one that is used wrongly.
func exit2(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec(args[0], args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !neg {
		ts.Fatalf("%v ends with %v, want exit code 2 (and write ! exit2)", args, err)
	}
}

// lines N FILE checks how many lines a file has.
func countLines(ts *testscript.TestScript, neg bool, args []string) {
	if got := strings.Count(ts.ReadFile(args[1]), "\n"); args[0] != fmt.Sprint(got) {
		ts.Fatalf("%s has %d lines, want %s", args[1], got, args[0])
	}
}

// mode OCTAL FILE checks a file's permissions.
func fileMode(ts *testscript.TestScript, neg bool, args []string) {
	st, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%03o", st.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[0])
	}
}

// append FILE MORE appends MORE to FILE.
func catOnto(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("append FILE MORE")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteString(ts.ReadFile(args[1]))
	ts.Check(err)
	ts.Check(f.Close())
}
