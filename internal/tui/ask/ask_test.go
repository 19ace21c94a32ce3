package ask

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/tool"
)

var (
	st     = transcript.Style{Colour: true}
	update = flag.Bool("update", false, "write the golden views")
)

func key(k string) tea.KeyPressMsg {
	named := map[string]tea.Key{
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "left": {Code: tea.KeyLeft},
		"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "end": {Code: tea.KeyEnd}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	if k, ok := named[k]; ok {
		return tea.KeyPressMsg(k)
	}
	return tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
}

type overlay interface {
	Update(msg tea.Msg) (bool, tea.Cmd)
}

func press(v overlay, keys ...string) (done bool) {
	for _, k := range keys {
		if done {
			return false
		}
		done, _ = v.Update(key(k))
	}
	return done
}

// golden compares a view with a file: its text, and then the rows that have
// styles.
func golden(t *testing.T, name, view string, width, height int) {
	t.Helper()
	rows := strings.Split(view, "\n")
	if len(rows) > height {
		t.Errorf("%s has %d rows of %d", name, len(rows), height)
	}
	got := ansi.Strip(view) + "\n\n"
	for i, row := range rows {
		if bare := ansi.Strip(row); ansi.StringWidth(bare) > width || strings.ContainsFunc(bare, terminal.Hidden) {
			t.Errorf("%s: %q has %d columns of %d", name, row, ansi.StringWidth(bare), width)
		}
		if row != ansi.Strip(row) {
			got += fmt.Sprintf("%d %q\n", i+1, row)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s\n got\n%s\nwant\n%s", name, got, want)
	}
}

func bash(command string, words ...string) tool.Request {
	r := tool.Request{Tool: "bash", Command: command, Dir: "/work/greeter", Rule: tool.Exactly(command)}
	if len(words) > 0 {
		r.Rule = tool.Rule{Tool: "bash", Words: words}
	}
	return r
}

func change(lines int) tool.Request {
	var b strings.Builder
	fmt.Fprintf(&b, "--- a\n+++ b\n@@ -1,%d +1,%d @@\n", lines, lines)
	for i := range lines {
		fmt.Fprintf(&b, "-old line %d\n+new line %d, which is a little longer than the old one was\n", i+1, i+1)
	}
	return tool.Request{Tool: "edit_file", Path: "greet.go", Dir: "/work/greeter", Diff: b.String(), Rule: tool.Rule{Tool: "edits"}}
}

func TestViews(t *testing.T) {
	private := bash("cat ~/.goclaw/config.json")
	private.Private = true
	for name, req := range map[string]tool.Request{
		"simple":  bash("go test ./...", "go", "test"),
		"pipe":    bash("cd src && go test ./... 2>&1 | tail -5; rm -rf build"),
		"wrapped": bash("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo \"step  $i of a long  loop\" >>a/very/long/path/without/any/space/in/it/that/goes/on; done; 日本語日本語日本語日本語日本語日本語日本語日本語"),
		"hostile": bash("echo \u202eevil\x1b[2J"),
		"change":  change(1),
		"long":    change(40),
		"private": private,
		"fetch":   {Tool: "fetch", URL: "https://example.com/a", Host: "example.com", Rule: tool.Rule{Tool: "fetch", Host: "example.com"}},
		"mcp":     {Tool: "mcp__db__query", Command: `{"sql":"drop table x"}`, Dir: "/work", Rule: tool.Rule{Tool: "mcp__db__query"}},
	} {
		for _, size := range [][2]int{{80, 20}, {40, 16}} { // of 80x24 and 40x20, what the rest leaves
			p := NewPermission(req, st)
			golden(t, fmt.Sprintf("%s-%d", name, size[0]), p.View(size[0], size[1]), size[0], size[1])
		}
	}
	p := NewPermission(change(40), st)
	golden(t, "low-80", p.View(80, 9), 80, 9)
	p.View(80, 20)
	press(p, "pgdown", "pgdown", "down", "b", "t", "o", "o")
	golden(t, "because-80", p.View(80, 20), 80, 20)
	if c := p.Cursor(); c == nil || c.X != len("  because too") || c.Y != strings.Count(p.View(80, 20), "\n") {
		t.Errorf("the cursor is at %+v", c)
	}
	for _, enter := range []bool{true, false} {
		y := NewYes("Continue the session \x1b[2J\"About things\", which was interrupted?", enter, st)
		golden(t, fmt.Sprint("yes-", enter), y.View(40, 10), 40, 10)
	}
}

func TestAnswers(t *testing.T) {
	private := bash("x")
	private.Private = true
	for _, c := range []struct {
		req  tool.Request
		keys string
		want tool.Decision
		err  error
	}{
		{bash("x"), "y", tool.Once, nil},
		{bash("x"), "Y", tool.Once, nil},
		{bash("x"), "s", tool.Session, nil},
		{bash("x"), "a", tool.Always, nil},
		{bash("x"), "n", tool.No, nil},
		{bash("x"), "esc", tool.No, nil},
		{bash("x"), "enter", tool.No, nil},
		{bash("x"), "up enter", tool.Always, nil},
		{bash("x"), "up up up enter", tool.Once, nil},
		{bash("x"), "down down enter", tool.Once, nil}, // it goes round
		{bash("x"), "ctrl+c", tool.No, line.ErrInterrupt},
		{bash("x"), "x q 1 pgdown y", tool.Once, nil},
		{bash("x"), "b y e s enter", tool.No, tool.Because("yes")},
		{bash("x"), "b enter", tool.No, nil},
		{bash("x"), "b y esc esc", tool.No, nil},
		{bash("x"), "b y esc y", tool.Once, nil},
		{bash("x"), "b y ctrl+c", tool.No, line.ErrInterrupt},
		{bash("x"), "down enter n o enter", tool.No, tool.Because("no")},
		{private, "s a y", tool.Once, nil},
		{private, "up enter", tool.Once, nil},
	} {
		p := NewPermission(c.req, st)
		p.View(80, 20)
		if !press(p, strings.Fields(c.keys)...) {
			t.Errorf("%q does not answer", c.keys)
		}
		if d, err := p.Answer(); d != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %v, %v, want %v, %v", c.keys, d, err, c.want, c.err)
		}
	}
	for keys, want := range map[string]bool{"y": true, "n": false, "enter": true, "esc": false, "left enter": false, "ctrl+c": false, "x y": true} {
		y := NewYes("sure?", true, st)
		if !press(y, strings.Fields(keys)...) {
			t.Errorf("%q does not answer", keys)
		}
		if got, err := y.Answer(); got != want || (err != nil) != (keys == "ctrl+c") {
			t.Errorf("%q: %v, %v, want %v", keys, got, err, want)
		}
	}
}

// All of a long change can be seen, and the view says that there is more.
func TestScroll(t *testing.T) {
	p := NewPermission(change(40), st)
	seen := ""
	for range 20 {
		view := ansi.Strip(p.View(80, 20))
		if !strings.Contains(view, "of 80: PgDn") {
			t.Fatal(view)
		}
		seen += view
		press(p, "pgdown")
	}
	for i := range 40 {
		if !strings.Contains(seen, fmt.Sprintf("- old line %d\n", i+1)) || !strings.Contains(seen, fmt.Sprintf("+ new line %d,", i+1)) {
			t.Errorf("line %d was not shown", i+1)
		}
	}
	if press(p, "end"); !strings.Contains(ansi.Strip(p.View(80, 20)), "new line 40") {
		t.Error("End does not go to the end")
	}
}

// Whatever the command and the width, all of it is shown.
func TestWholeCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab  ;|&\n\"日é")), 1, 200, -1).Draw(t, "command")
		width := rapid.IntRange(6, 60).Draw(t, "width")
		shown := ""
		for _, row := range indented(text, width) {
			if ansi.StringWidth(row) > width {
				t.Fatalf("%q is too wide", row)
			}
			shown += row
		}
		bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if bare(shown) != bare(text) {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}

// TestTiny: in a tiny terminal there is something of what is asked, the rest of
// it is scrolled to, and the keys of the answers are there.
func TestTiny(t *testing.T) {
	p := NewPermission(bash("rm -rf /tmp/nothing/at/all; echo done"), transcript.Style{})
	got := p.View(20, 5)
	if lines := strings.Split(got, "\n"); len(lines) > 5 || !strings.Contains(lines[1], "rm -rf") || lines[len(lines)-1] != "y yes  s  a  n no  b" {
		t.Errorf("it shows\n%s", got)
	}
	press(p, "b")
	if got := p.View(20, 5); !strings.Contains(got, "because") || !strings.Contains(got, "rm -rf") {
		t.Errorf("it shows\n%s", got)
	}
}
