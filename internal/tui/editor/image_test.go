package editor

import (
	"bytes"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"goclaw/llm"
)

func picture(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func put(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file that is dropped on a terminal is pasted as its path, each terminal in
// its own way.
func TestPastedImages(t *testing.T) {
	dir := t.TempDir()
	one := put(t, filepath.Join(dir, "one.png"), string(picture(t, 120, 80)), 0o644)
	spaced := put(t, filepath.Join(dir, "my shot.PNG"), string(picture(t, 10, 20)), 0o644)
	broken := put(t, filepath.Join(dir, "broken.png"), string(picture(t, 10, 20)[:40]), 0o644)
	env := func(name string) string { return map[string]string{"HOME": dir}[name] }
	for _, c := range []struct{ pasted, want string }{
		{one, "[image #1, 120x80 PNG]"},
		{one + " ", "[image #1, 120x80 PNG]"},
		{"'" + spaced + "'", "[image #1, 10x20 PNG]"},
		{`"` + spaced + `"`, "[image #1, 10x20 PNG]"},
		{strings.ReplaceAll(spaced, " ", `\ `), "[image #1, 10x20 PNG]"},
		{spaced, "[image #1, 10x20 PNG]"},
		{"file://" + strings.ReplaceAll(spaced, " ", "%20"), "[image #1, 10x20 PNG]"},
		{"~/one.png", "[image #1, 120x80 PNG]"},
		{one + " '" + spaced + "'", "[image #1, 120x80 PNG][image #2, 10x20 PNG]"},
		{"see " + one, "see " + one},
		{filepath.Join(dir, "none.png"), filepath.Join(dir, "none.png")},
		{"one.png", "one.png"},
		{broken, broken},
		{one + "\n" + one, one + "\n" + one},
	} {
		h := newHand(t, Options{Getenv: env}).paste(c.pasted)
		if got := h.Value(); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.pasted, got, c.want)
		}
		if c.pasted == broken && !strings.Contains(h.note, "damaged") {
			t.Errorf("nothing tells that the image is damaged: %q", h.note)
		}
	}
	h := newHand(t, Options{Getenv: env}).write("what is ").paste(one).write("?")
	h.golden("image")
	h.keys("left", "ctrl+_", "ctrl+_").want("what is "+one+"|").keys("alt+/", "alt+/", "enter")
	m := h.sent[0]
	if m.Text != "what is [image #1, 120x80 PNG]?" || len(m.Blocks) != 1 || m.Blocks[0].(llm.Image).MIME != "image/png" {
		t.Errorf("sent %q with %d blocks", m.Text, len(m.Blocks))
	}
	h.Restore(Message{Text: m.Text}) // as /rewind does
	if h.keys("enter"); len(h.sent[1].Blocks) != 1 {
		t.Error("the image is not there again")
	}
}

func TestClipboard(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "shot.png"), string(picture(t, 30, 40)), 0o644)
	script := "#!/bin/sh\ncase \"$*\" in *list-types*|*TARGETS*) printf 'text/plain\\nimage/png\\n';; *image/png*) cat \"" + filepath.Join(dir, "shot.png") + "\";; *) exit 1;; esac\n"
	put(t, filepath.Join(dir, "wl-paste"), script, 0o755)
	put(t, filepath.Join(dir, "xclip"), script, 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	env := map[string]string{"WAYLAND_DISPLAY": "wayland-0"}
	h := newHand(t, Options{Getenv: func(s string) string { return env[s] }}).keys("ctrl+v").want("[image #1, 30x40 PNG]|")
	delete(env, "WAYLAND_DISPLAY")
	env["DISPLAY"] = ":0"
	h.keys("alt+v").want("[image #1, 30x40 PNG][image #2, 30x40 PNG]|")
	put(t, filepath.Join(dir, "xclip"), "#!/bin/sh\necho text/plain\n", 0o755)
	if h.keys("ctrl+v"); h.note != errNoImage.Error() {
		t.Errorf("without an image: %q", h.note)
	}
	delete(env, "DISPLAY")
	if h.keys("ctrl+v"); h.note != errNoClipboard.Error() {
		t.Errorf("without a clipboard: %q", h.note)
	}
	h.keys("backspace", "enter")
	if m := h.sent[0]; len(m.Blocks) != 1 {
		t.Errorf("%d images are sent, want the one that is left", len(m.Blocks))
	}
}

// The user's editor gets the text with the labels of its chips, which are chips
// again when they come back.
func TestExternalEditor(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	seen := filepath.Join(dir, "seen")
	good := put(t, filepath.Join(dir, "my editor"), "#!/bin/sh\ncat \"$2\" >"+seen+"\nsed -i 's/draft/better/; s/^/so: /' \"$2\"\n", 0o755)
	env := map[string]string{"EDITOR": "'" + good + "' --wait"}
	h := newHand(t, Options{Getenv: func(s string) string { return env[s] }}).write("draft ").paste(strings.Repeat("x\n", 50))
	edit := func() {
		_, cmd := h.Update(press("ctrl+g"))
		h.do(execute(t, cmd))
	}
	edit()
	h.want("so: better [pasted text #1, 50 lines]|")
	if got, _ := os.ReadFile(seen); string(got) != "draft [pasted text #1, 50 lines]\n" {
		t.Errorf("the editor saw %q", got)
	}
	h.keys("ctrl+_").want("draft [pasted text #1, 50 lines]|")
	env["EDITOR"] = put(t, filepath.Join(dir, "bad"), "#!/bin/sh\nexit 3\n", 0o755)
	edit()
	h.want("draft [pasted text #1, 50 lines]|")
	if !strings.Contains(h.note, "exit status 3; your text is as it was") {
		t.Errorf("the note is %q", h.note)
	}
	env["VISUAL"] = "/nowhere/vim"
	edit()
	if !strings.Contains(h.note, "set EDITOR to one that is installed") || h.Value() == "" {
		t.Errorf("the note is %q", h.note)
	}
	h.keys("enter")
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "goclaw-*", "message.md")); len(left) > 0 {
		t.Errorf("the file is still there: %q", left)
	}
}

// execute runs what a program of Bubble Tea would run.
func execute(t *testing.T, cmd tea.Cmd) tea.Msg {
	t.Helper()
	in, out := &bytes.Buffer{}, &bytes.Buffer{}
	var got tea.Msg
	p := tea.NewProgram(executor{cmd: cmd, got: &got}, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignals(), tea.WithWindowSize(80, 24))
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	return got
}

type executor struct {
	cmd tea.Cmd
	got *tea.Msg
}

func (x executor) Init() tea.Cmd  { return x.cmd }
func (x executor) View() tea.View { return tea.NewView("") }
func (x executor) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	if e, ok := msg.(edited); ok {
		*x.got = e
		return x, tea.Quit
	}
	return x, nil
}
