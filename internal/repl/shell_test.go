package repl

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"goclaw/internal/repl/line"
	"goclaw/llm"
	"goclaw/llm/llmtest"
	"goclaw/tool"
)

// withShell lets a chat run real commands.
func withShell(t *testing.T) func(*Options) {
	dir := t.TempDir()
	return func(o *Options) {
		o.Shell = func(ctx context.Context, command string, output io.Writer) (llm.ToolResult, error) {
			return tool.Shell(ctx, dir, []string{"PATH=/usr/bin:/bin", "ANSWER=42"}, command, output)
		}
	}
}

// A command of the user runs at once. What it prints goes with the next message,
// unless it has two exclamation marks.
func TestShell(t *testing.T) {
	b := newBench(llmtest.Say("seen"), llmtest.Say("again"))
	got := b.person(t, "!echo $ANSWER; printf '\\033[31mred\\033[0m\\n'; exit 3\n!!echo only me\nwhy?\n !not a command\n/quit\n", withShell(t))
	for _, part := range []string{"> 42\nred\n", "[exit code 3]", "> only me\n", "its output goes with your next message; !!echo $ANSWER"} {
		if !strings.Contains("\n"+got, part) {
			t.Errorf("%q is not shown in\n%s", part, got)
		}
	}
	reqs := b.model.Requests()
	want(t, "the first message", reqs[0].Messages[0].Text(), "why?\n<shell command=\"echo $ANSWER; printf '\\\\033[31mred\\\\033[0m\\\\n'; exit 3\">\n42\nred\n[exit code 3]\n</shell>")
	want(t, "the second", reqs[1].Messages[2].Text(), " !not a command")
}

// Nobody is there to run commands in a pipe: a line is a message, whatever it
// begins with.
func TestNoShellInAPipe(t *testing.T) {
	b := newBench()
	out, _, err := b.pipe(t, "!echo hi\n", withShell(t))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the answer", out, "echo: !echo hi\n")
}

// bearer is an Input whose first line has a file, and which keeps what commands
// print.
type bearer struct {
	Input
	blocks []llm.Block
	ran    []string
}

func (b *bearer) Attached() []llm.Block {
	blocks := b.blocks
	b.blocks = nil
	return blocks
}

func (b *bearer) Ran(command, output string) { b.ran = append(b.ran, command+": "+output) }

func TestAttached(t *testing.T) {
	b := newBench(llmtest.Say("one"))
	var all strings.Builder
	o := b.options(&all, &all)
	o.Interactive = true
	withShell(t)(&o)
	in := &bearer{Input: line.NewPlain(strings.NewReader("!echo a; echo b\nlook\n"), nil), blocks: []llm.Block{llm.Text{Text: "<file path=\"f\">\nx\n</file>"}}}
	if err := New(o).Run(context.Background(), in); err != nil {
		t.Fatal(err)
	}
	want(t, "the message", b.model.Requests()[0].Messages[0].Text(), "look\n<file path=\"f\">\nx\n</file>")
	want(t, "what is kept", strings.Join(in.ran, "|"), "echo a; echo b: a\nb\n[exit code 0]")
}

// Of a flood, the beginning and the end are shown.
func TestShellOutput(t *testing.T) {
	var shown []string
	o := &shellOutput{print: func(s string) { shown = append(shown, strings.Split(s, "\n")...) }}
	for i := range 5000 {
		fmt.Fprintf(o, "line %d\n", i)
	}
	fmt.Fprintf(o, "10%%\r20%%\r30%%\ntab\tand \x07bell\n%s\nlast", strings.Repeat("x", 10_000))
	o.close()
	want(t, "the number of lines", fmt.Sprint(len(shown)), fmt.Sprint(shownFirst+1+shownLast))
	want(t, "what is left out", shown[shownFirst], "[... 3984 lines left out ...]")
	want(t, "the last lines", strings.Join(shown[len(shown)-4:], "|"), "30%|tab    and \uFFFDbell|"+strings.Repeat("x", maxShown)+"|last")
}

func TestCompletions(t *testing.T) {
	b := newBench()
	b.seed(t, "s1", "main:cli:trip", talk...)
	var all strings.Builder
	o := b.options(&all, &all)
	o.Models = func() []string { return []string{"test/one", "test/two", "test/one"} }
	o.Shortcuts = func() []Shortcut {
		return []Shortcut{{Name: "review", Args: "FILE", Help: "look at it"}, {Name: "new"}}
	}
	o.Interactive = true
	c := New(o)
	c.offer()
	r := Remote{c}
	arguments := func(command string) []Completion {
		now, later := r.Arguments(command)
		if later != nil {
			return later()
		}
		return now
	}
	find := func(list []Completion, text string) string {
		for _, o := range list {
			if o.Text == text {
				return fmt.Sprintf("%s|%s|%v", o.Args, o.Help, o.Runs)
			}
		}
		return "none"
	}
	all1 := r.Completions()
	want(t, "/new", find(all1, "/new"), "[label]|start a new session|true")
	want(t, "/delete", find(all1, "/delete"), "KEY|move a session to the trash|false")
	want(t, "/review", find(all1, "/review"), "FILE|look at it|false")
	want(t, "/prompts:new", find(all1, "/prompts:new"), "||true")
	want(t, "models", fmt.Sprint(len(arguments("model"))), "2")
	want(t, "sessions", find(arguments("switch"), "main:cli:trip")[:1], "|")
	want(t, "nothing", fmt.Sprint(len(arguments("quit"))+len(arguments("nonsense"))), "0")
	c.o.Shortcuts = func() []Shortcut { t.Error("the chat's own state is used by another goroutine"); return nil }
	want(t, "/review later", find(r.Completions(), "/review"), "FILE|look at it|false")
}
