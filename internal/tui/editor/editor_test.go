package editor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/repl/history"
)

// codes are the keys with a name.
var codes = map[string]rune{
	"enter": tea.KeyEnter, "tab": tea.KeyTab, "backspace": tea.KeyBackspace, "delete": tea.KeyDelete, "esc": tea.KeyEscape,
	"up": tea.KeyUp, "down": tea.KeyDown, "left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
}

// press returns the message of a key such as "ctrl+a".
func press(name string) tea.KeyPressMsg {
	var k tea.KeyPressMsg
	for rest := true; rest; {
		rest = false
		for prefix, mod := range map[string]tea.KeyMod{"ctrl+": tea.ModCtrl, "alt+": tea.ModAlt, "shift+": tea.ModShift} {
			if strings.HasPrefix(name, prefix) && len(name) > len(prefix) {
				k.Mod |= mod
				name, rest = name[len(prefix):], true
			}
		}
	}
	if code, ok := codes[name]; ok {
		k.Code = code
		return k
	}
	k.Code = []rune(name)[0]
	if k.Mod&(tea.ModCtrl|tea.ModAlt) == 0 {
		k.Text = name
	}
	return k
}

// hand is somebody at an editor.
type hand struct {
	t *testing.T
	*Editor
	sent []Message
}

func newHand(t *testing.T, o Options) *hand {
	e := New(o)
	t.Cleanup(e.Close)
	return &hand{t: t, Editor: e}
}

// do hands over a message, and what follows from it.
func (h *hand) do(msg tea.Msg) {
	h.t.Helper()
	if batch, ok := msg.(tea.BatchMsg); ok {
		for _, cmd := range batch {
			h.run(cmd)
		}
		return
	}
	ev, cmd := h.Update(msg)
	if ev == Send {
		h.sent = append(h.sent, h.Take())
	}
	h.run(cmd)
}

func (h *hand) run(cmd tea.Cmd) {
	h.t.Helper()
	if cmd != nil {
		h.do(cmd())
	}
}

// keys presses keys, given by their names.
func (h *hand) keys(names ...string) *hand {
	h.t.Helper()
	for _, name := range names {
		h.do(press(name))
	}
	return h
}

// write types text.
func (h *hand) write(text string) *hand {
	h.t.Helper()
	for _, r := range text {
		if r == '\n' {
			h.do(press("alt+enter"))
			continue
		}
		h.do(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
	return h
}

func (h *hand) paste(text string) *hand {
	h.do(tea.PasteMsg{Content: text})
	return h
}

// at returns the text with the cursor as a bar.
func (h *hand) at() string {
	return h.chips.shown(h.buf.text[:h.buf.pos]) + "|" + h.chips.shown(h.buf.text[h.buf.pos:])
}

// want checks the text with the cursor as a bar.
func (h *hand) want(want string) *hand {
	h.t.Helper()
	if got := h.at(); got != want {
		h.t.Errorf("the text is %q, want %q", got, want)
	}
	return h
}

// seen returns what is drawn, with the cursor as a bar.
func (h *hand) seen(width, height int) string {
	h.t.Helper()
	text, x, y := h.View(width, height)
	lines := strings.Split(ansi.Strip(text), "\n")
	for i, l := range lines {
		if w := columns(l); w > width {
			h.t.Errorf("line %d is %d columns wide, at most %d: %q", i, w, width, l)
		}
	}
	if y < 0 || y >= len(lines) || x < 0 || x >= width {
		h.t.Fatalf("the cursor is at %d,%d, outside of\n%s", x, y, text)
	}
	left := ansi.Truncate(lines[y], x, "")
	left += strings.Repeat(" ", x-columns(left))
	lines[y] = left + "|" + strings.TrimPrefix(lines[y], left)
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// golden compares what is drawn at 80x24 and 40x20 with a file.
// UPDATE_GOLDEN=1 writes the file.
func (h *hand) golden(name string) {
	h.t.Helper()
	got := ""
	for _, size := range [][2]int{{80, 24}, {40, 20}} {
		got += fmt.Sprintf("-- %dx%d --\n%s", size[0], size[1], h.seen(size[0], size[1]))
	}
	path := filepath.Join("testdata", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			h.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if got != string(want) {
		h.t.Errorf("%s differs; UPDATE_GOLDEN=1 writes it. Got:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, typed string
		keys        []string
		want        string
	}{
		{"start and end", "one two", []string{"ctrl+a", "right", "ctrl+e", "left"}, "one tw|o"},
		{"words", "one two-three", []string{"alt+b", "alt+b", "alt+f"}, "one two|-three"},
		{"backspace and delete", "abcd", []string{"left", "backspace", "delete"}, "ab|"},
		{"the word before", "git commit -m", []string{"ctrl+w", "ctrl+w"}, "git |"},
		{"the rest, and back", "one two", []string{"alt+b", "ctrl+k", "ctrl+a", "ctrl+y"}, "two|one "},
		{"the line before the cursor", "one\ntwo", []string{"ctrl+u"}, "one\n|"},
		{"lines joined", "one\ntwo", []string{"up", "ctrl+e", "ctrl+k"}, "one|two"},
		{"undo a word", "one two", []string{"ctrl+_"}, "one|"},
		{"undo and redo", "one two", []string{"ctrl+_", "ctrl+_", "alt+/"}, "one|"},
		{"a new line", "one", []string{"alt+enter", "a", "ctrl+j", "b", "shift+enter", "c"}, "one\na\nb\nc|"},
		{"a line after a backslash", `one\`, []string{"enter", "a"}, "one\na|"},
		{"a whole emoji", "a👩‍👧e\u0301", []string{"left", "left"}, "a|👩‍👧e\u0301"},
		{"a whole letter", "e\u0301", []string{"backspace"}, "|"},
		{"up and down keep the column", "long line\nx\nlong line", []string{"up", "up"}, "long line|\nx\nlong line"},
		{"the ends of the text", "a\nb", []string{"alt+<", "x", "alt+>", "y"}, "xa\nby|"},
		{"the word after", "one two", []string{"ctrl+a", "alt+d"}, "| two"},
	} {
		h := newHand(t, Options{}).write(c.typed).keys(c.keys...)
		if got := h.at(); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSend(t *testing.T) {
	h := newHand(t, Options{}).keys("enter").write("  ").keys("enter", "ctrl+u").write("hello").keys("enter")
	if len(h.sent) != 1 || h.sent[0].Text != "hello" || !h.Empty() {
		t.Errorf("sent %+v, and %q is left", h.sent, h.at())
	}
}

// A draft is never lost: not in the history, not by Ctrl-C.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	past, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	past.Add("older")
	past.Add("two\nlines")
	h := newHand(t, Options{History: past}).write("draft")
	h.keys("up").want("two\nlines|").keys("up", "up").want("older|").write("!").want("older!|")
	h.keys("up").want("older!|").keys("down").want("two\nlines|").keys("down").want("draft|").keys("down").want("draft|")
	h.keys("up", "ctrl+_").want("draft|") // undo works as well
	h.Clear()
	h.want("|").keys("up").want("draft|").keys("enter")
	h.write(" a secret").keys("enter").keys("up").want("draft|")
	again, err := history.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(again.Lines()), "[older two\nlines draft]"; got != want {
		t.Errorf("the file holds %s, want %s", got, want)
	}
}

func TestHistorySearch(t *testing.T) {
	past := &history.History{}
	for _, s := range []string{"go test ./tool", "make lint", "go test ./llm", "go vet", "Go test ./llm"} {
		past.Add(s)
	}
	h := newHand(t, Options{History: past}).write("draft").keys("ctrl+r").write("test")
	h.want("Go test| ./llm").keys("ctrl+r").want("go test| ./llm").keys("ctrl+r").want("go test| ./tool")
	h.golden("search")
	h.keys("down").want("go test| ./llm")
	h.write("xx").golden("search-nothing")
	h.keys("esc").want("draft|")
	h.keys("ctrl+r").write("lint").keys("enter").want("make lint|")
	h.keys("ctrl+_").want("draft|").keys("ctrl+r").write("vet").keys("home").want("|go vet")
}

func TestChips(t *testing.T) {
	long := strings.Repeat("a line\n", 312)
	h := newHand(t, Options{}).write("see ").paste(long).write(" please")
	h.want("see [pasted text #1, 312 lines] please|").golden("chip")
	h.keys("alt+b", "left", "backspace").want("see | please").keys("ctrl+_").want("see [pasted text #1, 312 lines]| please")
	h.paste(strings.Repeat("x", 5000)).want("see [pasted text #1, 312 lines][pasted text #2, 5000 characters]| please")
	h.paste("small\npaste").keys("enter")
	if want := "see " + long + strings.Repeat("x", 5000) + "small\npaste please"; h.sent[0].Text != want {
		t.Errorf("sent %d bytes, want %d", len(h.sent[0].Text), len(want))
	}
	h.keys("up").want("see [pasted text #1, 312 lines][pasted text #2, 5000 characters]small\npaste please|")
}

// What is sent is what was shown: nothing invisible comes in by a paste.
func TestPasteIsClean(t *testing.T) {
	for _, c := range []struct{ pasted, want string }{
		{"a\r\nb\rc", "a\nb\nc"},
		{"\x1b[31mred\x1b[0m \x1b]0;title\x07", "red "},
		{"a\x00b\x07\x7f\u0085", "ab"},
		{"\x1b]0;no end\nand more", "]0;no end\nand more"},
		{"\u202eevil\u2066", "evil"},
		{"x\U000E0041\U000E0042y", "xy"},
		{"zero\u200bwidth\ufeff", "zerowidth"},
		{"👩\u200d👧 ✌\ufe0f 葛\U000E0100", "👩\u200d👧 ✌\ufe0f 葛\U000E0100"},
		{"a\ufe01\ufe02\ufe03", "a\ufe01"},
		{"\U000F0000", "\uFFFD"},
		{"bad \xff", "bad \uFFFD"},
		{"tab\tin", "tab\tin"},
	} {
		if got := newHand(t, Options{}).paste(c.pasted).buf.text; got != c.want {
			t.Errorf("%q becomes %q, want %q", c.pasted, got, c.want)
		}
	}
}

// A paste of 5 MB is one chip; drawing and typing do not depend on its length.
func TestHugePaste(t *testing.T) {
	huge := strings.Repeat("0123456789abcde\n", 5<<16)
	h := newHand(t, Options{}).paste(huge).write("x")
	h.want("[pasted text #1, 327680 lines]x|")
	n := testing.AllocsPerRun(10, func() { h.keys("y", "backspace"); h.View(80, 24) })
	if n > 500 {
		t.Errorf("a key press takes %v allocations", n)
	}
	h.keys("enter")
	if got := h.sent[0].Text; got != huge+"x" {
		t.Errorf("%d bytes were sent, want %d", len(got), len(huge)+1)
	}
}

func TestGrowsAndScrolls(t *testing.T) {
	h := newHand(t, Options{Placeholder: "Ask anything; / commands, @ files, ! shell, ? keys"})
	h.golden("empty")
	h.write("A line that is longer than the terminal is wide wraps between its words, as 文字 and 👩‍👧 do.")
	h.golden("wrapped")
	for i := range 12 {
		h.write(fmt.Sprintf("\nline %d", i))
	}
	h.golden("scrolled")
	h.keys("up", "up", "up", "up", "up", "up", "up", "up", "up", "up", "up")
	h.golden("scrolled-up")
}

func testFiles(paths ...string) func(context.Context, func(string, bool) error) error {
	return func(_ context.Context, visit func(string, bool) error) error {
		for _, p := range paths {
			name, dir := strings.CutSuffix(p, "/")
			if err := visit(name, dir); err != nil {
				return err
			}
		}
		return nil
	}
}

func testRead(files map[string]string) func(string, int) ([]byte, error) {
	return func(path string, max int) ([]byte, error) {
		text, ok := files[path]
		switch {
		case !ok:
			return nil, fs.ErrNotExist
		case len(text) > max:
			return nil, errors.New("it is too long")
		}
		return []byte(text), nil
	}
}

// An answer to a question is text; the question may be longer than a line.
func TestQuestion(t *testing.T) {
	long := strings.Repeat("x\n", 20)
	h := newHand(t, Options{Prompt: "Continue it? [Y/n] ", Plain: true}).write("no")
	h.golden("question")
	h.Reset()
	if h.paste(long).Value() != long {
		t.Errorf("the answer is %q", h.Value())
	}
	newHand(t, Options{Prompt: "The session has been open in another program since yesterday: what shall become of it? ", Plain: true}).write("wait").golden("question-long")
}
