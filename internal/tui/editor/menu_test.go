package editor

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"goclaw/llm"
)

func menuOptions() Options {
	return Options{
		Commands: func() []Option {
			return []Option{
				{Text: "/new", Args: "[label]", Help: "start a new session", Runs: true},
				{Text: "/sessions", Args: "[--all] [text|all]", Help: "list the sessions, most recently used first; --all: subagents' as well", Runs: true},
				{Text: "/switch", Args: "KEY", Help: "switch to another session: its number in the last list, or a part of its key or title"},
				{Text: "/context", Help: "show what fills the model's window", Runs: true},
				{Text: "/compact", Args: "[--dry-run] [focus]", Help: "replace earlier turns with a summary; focus says what to stress", Runs: true},
				{Text: "/model", Args: "[name|N|all]", Help: "list the models that can be used, or change to one", Runs: true},
				{Text: "/mode", Args: "[ask|edits|plan|all]", Help: "show or change what is done without asking", Runs: true},
				{Text: "/undo", Help: "undo the last compaction", Runs: true},
				{Text: "/think", Args: "[level]", Help: "show or change how much the model thinks (off, low, high ...)", Runs: true},
				{Text: "/quit", Help: "leave", Runs: true},
				{Text: "/review", Help: "hostile \x1b[31mhelp\u202e", Runs: true},
			}
		},
		Arguments: func(command string) (now []Option, later func() []Option) {
			switch command {
			case "mode":
				return []Option{{Text: "ask", Runs: true}, {Text: "edits", Help: "edits are not asked about", Runs: true}, {Text: "plan", Runs: true}, {Text: "all", Runs: true}}, nil
			case "switch":
				return nil, func() []Option { return []Option{{Text: "main:cli:trip", Runs: true}} }
			}
			return nil, nil
		},
		Files: testFiles("README.md", "cmd/", "cmd/goclaw/", "cmd/goclaw/chat.go", "cmd/goclaw/chat_test.go", "internal/", "internal/tui/", "internal/tui/editor/",
			"internal/tui/editor/editor.go", "internal/repl/", "internal/repl/repl.go", "docs/", "docs/with space.md", "a\nb", "Makefile"),
		Read: testRead(map[string]string{"README.md": "# Hello\n", "docs/with space.md": "text", "big.log": strings.Repeat("x", 70<<10), "prog": "\x7fELF\x00\x01"}),
	}
}

func TestCommands(t *testing.T) {
	h := newHand(t, menuOptions()).write("/")
	h.golden("commands")
	h.keys("down", "down", "up", "up", "up").golden("commands-last")
	h.keys("ctrl+u").write("/mo").golden("commands-some")
	h.keys("down", "tab").want("/mode |")
	h.keys("ctrl+u").write("/comp").keys("enter")
	h.write("/cmpt").keys("enter").want("/compact |").keys("ctrl+u") // a guess is not run
	h.write("/swi").keys("enter").want("/switch |").write("x").keys("enter")
	h.write("/mode").keys("tab").golden("arguments")
	h.write("pl").keys("enter") // nothing is chosen: as it is typed
	h.write("/mode ").keys("down", "down", "enter")
	h.write("/mode ").keys("tab").want("/mode ask |").keys("enter")
	h.write("/quit").keys("enter")
	h.write("/nothing").keys("enter").write("//quit").keys("enter")
	h.write("/switch tr").keys("tab").want("/switch main:cli:trip |").keys("ctrl+u")
	var got []string
	for _, m := range h.sent {
		got = append(got, m.Text)
	}
	if want := `["/compact" "/switch x" "/mode pl" "/mode edits" "/mode ask " "/quit" "/nothing" "//quit"]`; fmt.Sprintf("%q", got) != want {
		t.Errorf("sent %q, want %s", got, want)
	}
}

// Escape closes the list for this word, and Tab opens it again.
func TestMenuIsDismissed(t *testing.T) {
	h := newHand(t, menuOptions()).write("/m")
	if !h.Wants("esc") {
		t.Fatal("no list is open")
	}
	if h.Wants("ctrl+s") {
		t.Error("the list wants keys that it does not know")
	}
	if h.keys("esc").Wants("esc") {
		t.Error("Escape did not close the list")
	}
	if h.write("o").Wants("esc") {
		t.Error("the list is open again for the same word")
	}
	if h.keys("tab"); !h.Wants("esc") {
		t.Error("Tab did not open the list")
	}
	if h.keys("ctrl+u").write("text").Wants("esc") {
		t.Error("a list is open where there is nothing to complete")
	}
}

func TestFiles(t *testing.T) {
	h := newHand(t, menuOptions()).write("see @")
	h.golden("files")
	h.write("chgo").golden("files-some")
	h.keys("enter").want("see @cmd/goclaw/chat.go |")
	h.write("and @int").keys("tab").want("see @cmd/goclaw/chat.go and @internal/|").write("edi").keys("tab").want("see @cmd/goclaw/chat.go and @internal/tui/editor/|")
	h.keys("down", "enter").want("see @cmd/goclaw/chat.go and @internal/tui/editor/editor.go |")
	h.keys("ctrl+u").write("@spac").keys("enter").want(`@"docs/with space.md" |`)
	h.keys("ctrl+u").write("me@example.org").want("me@example.org|")
	if h.Wants("esc") {
		t.Error("an address opens the list of files")
	}
	h.keys("ctrl+u").write("@README.md").keys("enter")
	if len(h.sent) != 1 {
		t.Error("a name that is typed in full is not sent with Enter")
	}
}

// Keys that are faster than the ranking of files complete what was typed, and not
// what was shown.
func TestFastFingers(t *testing.T) {
	h := newHand(t, menuOptions()).write("@")
	for _, r := range "chat_t" {
		h.Update(press(string(r))) // what follows from it comes too late
	}
	h.Update(press("tab"))
	h.want("@cmd/goclaw/chat_test.go |")
}

// In a shell command, Tab completes the names of files.
func TestPaths(t *testing.T) {
	h := newHand(t, menuOptions()).write("!cat chat_")
	if h.Wants("esc") {
		t.Error("a list is open that nobody asked for")
	}
	h.keys("tab", "tab").want("!cat cmd/goclaw/chat_test.go |")
	h.write("spac").keys("tab", "enter").want("!cat cmd/goclaw/chat_test.go 'docs/with space.md' |")
	h.write("re").keys("tab").write("ad").keys("enter").want("!cat cmd/goclaw/chat_test.go 'docs/with space.md' README.md |")
	h.keys("enter")
	if len(h.sent) != 1 {
		t.Errorf("%q is not sent", h.at())
	}
}

func TestAttached(t *testing.T) {
	h := newHand(t, menuOptions()).write(`(@README.md), @README.md. @"docs/with space.md" @big.log @prog @nobody x@README.md`).keys("esc", "enter")
	m := h.sent[0]
	var texts []string
	for _, b := range m.Blocks {
		texts = append(texts, b.(llm.Text).Text)
	}
	want := []string{"<file path=\"README.md\">\n# Hello\n\n</file>", "<file path=\"docs/with space.md\">\ntext\n</file>"}
	if fmt.Sprintf("%q", texts) != fmt.Sprintf("%q", want) {
		t.Errorf("attached %q, want %q", texts, want)
	}
	notes := "attached README.md (1 line)\nattached docs/with space.md (1 line)\n" +
		"big.log is named, not attached: it has 70.0 KB, and the model can read it in pieces\n" +
		"prog cannot be attached: it is neither text nor a PNG, JPEG, GIF or WebP picture (application/octet-stream, 6 bytes); convert it to text first"
	if got := strings.Join(m.Notes, "\n"); got != notes {
		t.Errorf("the notes are\n%s\nwant\n%s", got, notes)
	}
	h.paste("@README.md" + strings.Repeat("\nx", 20)).keys("enter")
	if len(h.sent[1].Blocks) != 0 {
		t.Error("a file that a large paste names is attached")
	}
}

func TestShellHint(t *testing.T) {
	h := newHand(t, menuOptions()).write("!git log @")
	h.golden("shell")
	h.keys("enter")
	h.Ran("git log", "one\ntwo\x1b[0m\n")
	h.write("what is this?").golden("shell-chip")
	h.keys("enter")
	if got, want := h.sent[1].Text, "what is this?"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	if got, want := h.sent[1].Blocks[0].(llm.Text).Text, "<shell command=\"git log\">\none\ntwo\n</shell>"; got != want {
		t.Errorf("attached %q, want %q", got, want)
	}
	h.keys("up", "enter")
	if len(h.sent[2].Blocks) != 1 {
		t.Error("what was sent before is not attached again")
	}
	h.Ran("true", "(no output)")
	h.keys("enter")
	if got, want := h.sent[3].Text, "[!true, 1 line] "; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	h.Ran("ls", "a")
	if h.keys("backspace"); !h.Empty() {
		t.Errorf("one backspace leaves %q", h.at())
	}
}

// TestTabAtOnce: keys that come in one read with the beginning of a command do
// not have to wait for the list.
func TestTabAtOnce(t *testing.T) {
	e := New(menuOptions())
	for _, r := range "/rev" {
		e.Update(tea.KeyPressMsg{Code: r, Text: string(r)}) // and nothing that it asks for is done
	}
	e.Update(press("tab"))
	if got := e.Value(); got != "/review" {
		t.Errorf("the input is %q, want /review", got)
	}
}
