package look

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/transcript"
)

var (
	st     = transcript.Style{Colour: true}
	update = flag.Bool("update", false, "write the golden views")
)

// press presses keys: names of keys, or characters.
func press(v *Viewer, keys ...string) (done bool) {
	named := map[string]tea.Key{
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight},
		"pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown}, "enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
		"backspace": {Code: tea.KeyBackspace}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, k := range keys {
		key, ok := named[k]
		if !ok {
			key = tea.Key{Code: []rune(k)[0], Text: k}
		}
		var cmd tea.Cmd
		done, cmd = v.Update(tea.KeyPressMsg(key))
		if cmd != nil {
			v.Update(cmd())
		}
	}
	return done
}

func search(v *Viewer, query string) {
	press(v, "/")
	for _, r := range query {
		press(v, string(r))
	}
	press(v, "enter")
}

// golden compares a view with a file: its text, and then the rows that have
// styles.
func golden(t *testing.T, name, view string) {
	t.Helper()
	got := ansi.Strip(view) + "\n"
	for i, row := range strings.Split(view, "\n") {
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

func docs() []Doc {
	var long strings.Builder
	for i := range 312 {
		fmt.Fprintf(&long, "line %d of the output, which is long enough to be wrapped where the window is narrow\n", i+1)
	}
	return []Doc{
		{Title: "bash make all", Text: long.String()},
		{Title: "edit_file greet.go", Text: "edited greet.go\n@@ -2,4 +2,4 @@\n \n func Greet(name string) string {\n-\treturn \"Hello \" + name\n+\treturn \"Hello, \" + name + \"!\"\n }\n", Diff: true},
	}
}

func TestViews(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 20}} {
		at := func(name string) string { return fmt.Sprintf("%s-%dx%d", name, size[0], size[1]) }
		ds := docs()
		v := New(st, len(ds), 0, func(i int) Doc { return ds[i] })
		golden(t, at("first"), v.View(size[0], size[1]))
		press(v, "pgdown", "down")
		golden(t, at("scrolled"), v.View(size[0], size[1]))
		search(v, "line 300")
		golden(t, at("found"), v.View(size[0], size[1]))
		press(v, "/", "x", "y")
		golden(t, at("typing"), v.View(size[0], size[1]))
		press(v, "esc", "right")
		golden(t, at("diff"), v.View(size[0], size[1]))
	}
}

func TestKeys(t *testing.T) {
	ds := docs()
	v := New(st, len(ds), 0, func(i int) Doc { return ds[i] })
	first := func() string { return ansi.Strip(strings.Split(v.View(100, 12), "\n")[1]) }
	title := func() string { return ansi.Strip(strings.Split(v.View(100, 12), "\n")[0]) }
	want := func(what, got, want string) {
		t.Helper()
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	v.View(100, 12)
	press(v, "G")
	want("the end", first(), "line 303 of")
	press(v, "down", "pgdown")
	want("there is nothing below the end", first(), "line 303 of")
	press(v, "pgup")
	want("a page up", first(), "line 293 of")
	press(v, "g")
	want("the beginning", first(), "line 1 of")
	press(v, "up")
	want("there is nothing above the beginning", first(), "line 1 of")
	press(v, "n")
	want("n without a search", title(), "edit_file greet.go  2 of 2")
	press(v, "n", "p")
	want("p without a search", title(), "bash make all  1 of 2")
	search(v, "LINE 2")
	want("capitals are meant", v.said, "not found")
	search(v, "line 20 ")
	want("found", first(), "line 17 of")
	press(v, "n")
	want("there is one: found again from the top", v.said, "found after wrapping around")
	search(v, "line 200")
	press(v, "N")
	want("and backwards", v.said, "found after wrapping around")
	if press(v, "/", "q") {
		t.Error("a q that is typed leaves")
	}
	press(v, "backspace", "backspace")
	if v.typing || !press(v, "q") || !press(v, "esc") || !press(v, "ctrl+c") {
		t.Error("q, Esc and Ctrl-C leave")
	}
	if got := New(st, 0, 0, nil).View(40, 5); !strings.Contains(got, "nothing to show") {
		t.Error(got)
	}
}

// The first row stays where it is when the window changes.
func TestResize(t *testing.T) {
	ds := docs()
	v := New(st, len(ds), 0, func(i int) Doc { return ds[i] })
	v.View(80, 24)
	press(v, "pgdown", "pgdown", "pgdown")
	for _, size := range [][2]int{{80, 24}, {40, 20}, {20, 10}, {120, 50}, {80, 24}} {
		if got := ansi.Strip(strings.Split(v.View(size[0], size[1]), "\n")[1]); !strings.HasPrefix(got, "line 34 of") {
			t.Errorf("%v: %q", size, got)
		}
	}
}
