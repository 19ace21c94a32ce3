//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"

	"goclaw/internal/tui/tuitest"
)

var update = flag.Bool("update", false, "write the golden screens")

// screens are what a person sees, held against testdata/screens.
type screens struct {
	*tuitest.Person
	t    *testing.T
	size string
	rows int
}

// vary is what differs from run to run: times, spinners, and the tokens and prices
// of requests that name the folder.
var vary = []struct {
	is   *regexp.Regexp
	then string
}{
	{regexp.MustCompile(`[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]`), "⠋"},
	{regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`), "0s"},
	{regexp.MustCompile(`(?m)^(✓ .*?),? +0s$`), "$1"}, // only what takes a while says so
	{regexp.MustCompile(`(?m)^(⠋ .{20}).*$`), "$1…"},  // how long it takes is shown after a while
	{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d|\b\d\d:\d\d\b`), "00:00"},
	{regexp.MustCompile(`\$0\.\d+`), "$$0.01"},
	{regexp.MustCompile(` +\d[\d.]*k?( +<?\d+%)`), " N$1"},
	{regexp.MustCompile(`\d[\d.]*k?( of \d+k)?( |\n)tokens`), "N$1${2}tokens"},
	{regexp.MustCompile(`(?m)^((?:goes|stays|    ) .*) \d+$`), "$1 N"},
	{regexp.MustCompile(`, \d+ out`), ", N out"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:0"},
	{regexp.MustCompile(`\d[\d.]*k? → about`), "N → about"},
	{regexp.MustCompile(`\b(\d+ s|\d+ min|a moment|just now|now)( ago)?\b`), "now"},
	{regexp.MustCompile(`(?m)   \dm$`), "  now"}, // in a column
	{regexp.MustCompile(`(?m)\b\d+m(,|$)`), "now$1"},
}

// normal is what the terminal shows without what varies. Where the input stands
// on the screen depends on how high the answer was while it came, so the last
// lines are taken, as many as fit.
func (s *screens) normal() string {
	text, whole := s.Text(), false
	s.Look(func(v *vt.Emulator) { whole = v.IsAltScreen() })
	if whole {
		text = s.Screen()
	}
	lines := strings.Split(text, "\n")
	text = strings.Join(lines[max(len(lines)-s.rows, 0):], "\n")
	for _, v := range vary {
		text = v.is.ReplaceAllString(text, v.then)
	}
	return text + "\n"
}

// golden waits until the screen is that of the file with that name.
func (s *screens) golden(name string) {
	s.t.Helper()
	path := filepath.Join("testdata", "screens", name+"-"+s.size+".txt")
	if *update {
		for last := ""; ; { // until it stands still
			time.Sleep(500 * time.Millisecond)
			if now := s.normal(); now == last {
				break
			} else {
				last = now
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			s.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(s.normal()), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if !s.Until(testPatience, func(string, int, int) bool { return s.normal() == string(want) }) {
		s.t.Errorf("%s is not as in %s (-update writes it):\n%s", name, path, cmp.Diff(string(want), s.normal()))
	}
}

// TestScreens holds every view of the real program against what it looked like,
// at two sizes.
func TestScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 20}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			open := func(env []string, dir string) *screens {
				s := &screens{Person: tuitest.New(t, size[0], size[1]), t: t, size: fmt.Sprintf("%dx%d", size[0], size[1]), rows: size[1]}
				cmd := exec.Command("goclaw")
				cmd.Env, cmd.Dir = append(env, "TERM=xterm-256color"), dir
				s.Run(cmd)
				return s
			}
			fresh := t.TempDir()
			s := open(keyless(fresh, "GOCLAW_NO_LOCAL=1"), fresh)
			s.Rests()
			s.golden("first-start")

			c := newCast(t)
			s = open(c.env, c.repo)
			s.Rests()
			s.Press("describe the fleet\r")
			s.See("東京")
			s.Rests()
			s.golden("answer")
			s.Press("/")
			s.golden("completion")
			s.Press("\x15")
			s.Rests()
			s.Press("?")
			s.golden("help")
			s.Press("q")
			s.Rests()

			s.Press("run seq 30; while [ ! -e go ]; do sleep 0.05; done\r")
			s.golden("permission-command")
			s.Press("y")
			s.See("  30\n")
			s.golden("running")
			s.Press("and then rest\r")
			s.golden("queued")
			s.Press("\x1b[A") // takes it back
			s.See("> and then rest")
			s.Press("\x15")
			s.golden("running")
			put(t, c.repo, "go", "")
			s.See("It said")
			s.Rests()
			s.golden("ran")
			s.Press("edit it\r")
			s.golden("permission-diff")
			s.Press("y")
			s.Await("the result", func(text string, _, _ int) bool { return regexp.MustCompile(`(?s)It said.*It said`).MatchString(text) })
			s.Rests()
			s.golden("edited")
			s.Press("\x0f")
			s.golden("output")
			s.Press("q")
			s.Rests()
			s.Press("\x12flee")
			s.golden("history")
			s.Press("\x1b")
			s.Await("no search", func(text string, _, _ int) bool { return !strings.Contains(text, "search:") })
			s.Press("\x15")
			s.Rests()
			s.Press("see @fle")
			s.golden("files")
			s.Press("\x15")
			s.Rests()

			for _, v := range [][2]string{{"/model", "models"}, {"/think", "levels"}, {"/sessions", "sessions"}, {"/tree", "tree"}, {"/search fleet", "search"}, {"/context", "context"}, {"/compact --dry-run", "compact"}} {
				s.Press(v[0] + "\r")
				s.golden(v[1])
				s.Press("\x1b")
				s.Rests()
				s.Press("\x15") // the next key is not the second of a sequence
			}
			s.Press("/search\r")
			s.Await("the search", func(string, int, int) (alt bool) {
				s.Look(func(v *vt.Emulator) { alt = v.IsAltScreen() })
				return alt
			})
			s.Press("dock")
			s.golden("search-view")
		})
	}
}
