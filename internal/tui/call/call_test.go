package call_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/tui/call"
	"goclaw/llm"
)

var (
	st     = transcript.Style{Colour: true}
	update = flag.Bool("update", false, "write the golden views")
)

// golden compares a view with a file: its text, and then the rows that have
// styles.
func golden(t *testing.T, name, view string) {
	t.Helper()
	got := ansi.Strip(view) + "\n\n"
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

func tool(name, args string) llm.ToolCall {
	return llm.ToolCall{ID: "c1", Name: name, Args: json.RawMessage(args)}
}

func ended(c llm.ToolCall, took time.Duration, text string, failed bool) call.Call {
	r := llm.Result(c, text)
	r.IsError = failed
	return call.Call{ToolCall: c, Title: transcript.CallLine(c), Result: r, Took: took}
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "output line %d of many, which is longer than a narrow window\n", i+1)
	}
	return b.String()
}

const diff = "replaced once in greet.go\n@@ -2,5 +2,5 @@\n \n // Greet returns a greeting.\n func Greet(name string) string {\n-\treturn \"Hello \" + name\n+\treturn \"Hello, \" + name + \"!\"\n }\n@@ -90,2 +90,3 @@\n a\n+b\n c\n"

func TestEnded(t *testing.T) {
	calls := []call.Call{
		ended(tool("grep", `{"pattern":"Hello"}`), 0, `greet.go:5: return "Hello " + name`, false),
		ended(tool("read_file", `{"path":"greet.go","offset":10,"limit":31}`), 0, "1\n2\n3\n", false),
		ended(tool("edit_file", `{"path":"greet.go","old_string":"a","new_string":"b"}`), 200*time.Millisecond, diff, false),
		ended(tool("bash", `{"command":"make all"}`), 72*time.Second, numbers(318)+"[exit code 0]", false),
		ended(tool("bash", `{"command":"go test ./...","timeout":60}`), 3400*time.Millisecond, numbers(40)+"FAIL\n[exit code 1]", true),
		ended(tool("bash", `{"command":"true"}`), 0, "(no output)\n[exit code 0]", false),
		ended(tool("bash", `{"command":"rm -r build"}`), 300*time.Millisecond, "not done: the user did not allow this, and says: not today", true),
		ended(tool("write_file", `{"path":"notes.md","content":"# Notes\n\n\tone\n"}`), 0, "made notes.md with 14 bytes", false),
		ended(tool("mcp__db__query", `{"sql":"select 1","limit":5}`), 0, "1", false),
		ended(tool("nope", `{}`), 0, "there is no tool nope", true),
		ended(tool("bash", `{"command":"echo evil"}`), 0, "\x1b[2J\x1b]0;title\a\u202eevil\n10%\r20%\r30%\r\n[exit code 0]", false),
	}
	for _, width := range []int{80, 40} {
		var out []string
		for _, c := range calls {
			out = append(out, call.Ended(c, width, st)...)
		}
		fits(t, out, width)
		golden(t, fmt.Sprint("ended-", width), strings.Join(out, "\n"))
	}
}

func TestLive(t *testing.T) {
	began := time.Date(2026, 11, 16, 11, 0, 0, 0, time.UTC)
	for _, width := range []int{80, 40} {
		var out []string
		for i, c := range []call.Call{
			{ToolCall: tool("bash", `{"command":"go test ./... -run 'TestSomething that has a rather long name'"}`), Began: began},
			{ToolCall: tool("bash", `{"command":"make"}`), Began: began, Tail: numbers(9)},
			{ToolCall: tool("bash", `{"command":"curl"}`), Began: began, Tail: "10%\r20%\r30%\x1b[2J\n\x1b[31mred"},
		} {
			c.Title = transcript.CallLine(c.ToolCall)
			out = append(out, call.Live(c, began.Add(time.Duration(i)*65*time.Second), i, width, st)...)
		}
		fits(t, out, width)
		golden(t, fmt.Sprint("live-", width), strings.Join(out, "\n"))
	}
}

func fits(t *testing.T, rows []string, width int) {
	t.Helper()
	for _, row := range rows {
		if bare := ansi.Strip(row); ansi.StringWidth(bare) > width || strings.ContainsFunc(bare, terminal.Hidden) || strings.ContainsAny(row, "\n\t") {
			t.Errorf("%q has %d columns of %d", row, ansi.StringWidth(bare), width)
		}
	}
}

// A result of any size is drawn from its ends only.
func TestHugeResult(t *testing.T) {
	long := strings.Repeat("x", 10<<20) + "\n" + strings.Repeat("line\n", 4<<20) + strings.Repeat("日本", 1<<20)
	for _, failed := range []bool{false, true} {
		out := call.Ended(ended(tool("bash", `{"command":"cat big"}`), 0, long+"\n[exit code 1]", failed), 80, st)
		fits(t, out, 80)
		if len(out) > 10 || !strings.Contains(strings.Join(out, "\n"), "more lines (Ctrl-O opens)") {
			t.Errorf("%d lines: %.300q", len(out), out)
		}
	}
}

func TestDiffRows(t *testing.T) {
	var out []string
	for _, l := range call.Lines("diff a b\n--- a\n+++ b\n@@ -8,2 +8,2 @@\n same\n-" + strings.Repeat("old ", 12) + "\n+new\x1b[2J\n\\ No newline at end of file\n") {
		out = append(out, l.Rows(30, st)...)
	}
	fits(t, out, 30)
	golden(t, "diff-30", strings.Join(out, "\n"))
}

func TestDoc(t *testing.T) {
	for _, c := range []struct {
		call       call.Call
		title, has string
		diff       bool
	}{
		{ended(tool("edit_file", `{"path":"greet.go"}`), 0, diff, false), "edit_file greet.go", "+\treturn", true},
		{ended(tool("bash", `{"command":"a\nb"}`), 0, "out\n[exit code 0]", false), "bash a ⏎ b", "$ a\nb\n\nout\n[exit code 0]", false},
		{ended(tool("write_file", `{"path":"n","content":"text"}`), 0, "made n with 4 bytes", false), "write_file n", "made n with 4 bytes\n\ntext", false},
	} {
		d := call.Doc(c.call.ToolCall, c.call.Result)
		if d.Title != c.title || !strings.Contains(d.Text, c.has) || d.Diff != c.diff {
			t.Errorf("%+v", d)
		}
	}
}
