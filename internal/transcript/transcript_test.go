package transcript_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"goclaw/internal/attach"
	"goclaw/internal/transcript"
	"goclaw/llm"
	"goclaw/session"
	. "goclaw/session/sessiontest"
)

// conversation has one of everything that people see.
func conversation(t *testing.T) *session.Session {
	failed := Failed("c2", "no such file\x1b[2J")
	return Replay(t, Title("Tides"), User("when is <high> tide?"), Call("c1", "read_file", `{"path":"tides.md"}`),
		Result("c1", "1\n2\n3\n4\n5\n6\n```\nfence"), Call("c2", "read_file"), failed, Answer("At six."),
		Compaction("We spoke of tides.", "e2"), User("thanks"), Stopped(llm.StopAborted, Answer("you are")))
}

func TestPlain(t *testing.T) {
	var b strings.Builder
	s := conversation(t)
	transcript.Plain(&b, s.Branch, transcript.Style{}, false, 0)
	got := b.String()
	for _, want := range []string{
		"user  2026-11-15", "when is <high> tide?", "→ read_file tides.md", "← read_file: 1\n2\n3\n… 5 more lines",
		"failed: no such file\uFFFD[2J", "At six.", "compaction  We spoke of tides.", "you are\n[stopped]",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.ContainsRune(got, '\x1b') {
		t.Error("an escape character of the log reaches the terminal")
	}
	b.Reset()
	transcript.Plain(&b, s.Branch, transcript.Style{}, true, 0)
	if !strings.Contains(b.String(), "6\n```\nfence") {
		t.Errorf("in full, the tool's output is cut:\n%s", b.String())
	}
	b.Reset()
	transcript.Plain(&b, Replay(t, User("write it"), Call("c1", "write_file"), Failed("c1", "not done: the user did not allow this")).Branch, transcript.Style{}, false, 30)
	if want := "\n← write_file: failed: not\ndone: the user did not allow\nthis\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
}

// Of a file that is attached to a message, the beginning is shown.
func TestPlainAttached(t *testing.T) {
	file, _, err := attach.File("a.txt", []byte("1\n2\n3\n4\n5\n"))
	if err != nil {
		t.Fatal(err)
	}
	m := session.Message{Message: attach.Message("what is this?", []llm.Block{file})}
	var b strings.Builder
	transcript.Plain(&b, Replay(t, m, Answer("A list.")).Branch, transcript.Style{}, false, 0)
	if want := "what is this?\n<file path=\"a.txt\">\n1\n2\n… 5 more lines\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
	b.Reset()
	transcript.Plain(&b, Replay(t, m).Branch, transcript.Style{}, true, 0)
	if !strings.Contains(b.String(), "5") {
		t.Errorf("in full, the file is cut:\n%s", b.String())
	}
}

func TestMarkdown(t *testing.T) {
	var b strings.Builder
	if err := transcript.Markdown(&b, conversation(t)); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for _, want := range []string{
		"# Tides\n", "- Session: `main:cli:user`", "## User (2026-11-15 00:00)\n\nwhen is <high> tide?", "<details><summary>call read_file</summary>",
		"````\n1\n2\n3\n4\n5\n6\n```\nfence\n````", "<summary>failed read_file</summary>", "> We spoke of tides.", "## Assistant",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestLine(t *testing.T) {
	for _, r := range conversation(t).Branch {
		l := transcript.Line(r, transcript.Style{}, 60)
		if strings.Contains(l, "\n") || utf8.RuneCountInString(l) > 80 || strings.TrimSpace(l) == "" {
			t.Errorf("not one line: %q", l)
		}
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "\x1b[31m": "\uFFFD[31m", "\x07\x7f\u009b": "\uFFFD\uFFFD\uFFFD", "evil \u202etxt": "evil \uFFFDtxt", "你好 🦀": "你好 🦀",
	} {
		if got := transcript.Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}
