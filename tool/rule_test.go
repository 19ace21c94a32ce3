package tool

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/shell"
)

// TestPermissions goes through a table of command lines, hostile ones among
// them: which of them a rule lets run unasked.
func TestPermissions(t *testing.T) {
	data, err := os.ReadFile("testdata/permissions.txt")
	if err != nil {
		t.Fatal(err)
	}
	real := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\0`, "\x00", `\e`, "\x1b")
	var rule Rule
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "== "); ok {
			if rule, err = ParseRule(text); err != nil {
				t.Fatal(err)
			}
			if again, err := ParseRule(rule.String()); err != nil || again.String() != rule.String() {
				t.Errorf("%s is written as %s, which is read as %v, %v", text, rule, again, err)
			}
			continue
		}
		want, command, ok := strings.Cut(line, " ")
		if !ok || want != "run" && want != "ask" {
			continue
		}
		n++
		command = real.Replace(command)
		q := Request{Tool: "bash", Command: command}
		if host, ok := strings.CutPrefix(command, "fetch: "); ok {
			q = Request{Tool: "fetch", Host: host}
		}
		if got := rule.Covers(q); got != (want == "run") {
			t.Errorf("%s: %q: want %s", rule, command, want)
		}
	}
	if n < 200 {
		t.Errorf("only %d command lines", n)
	}
}

func TestParseRule(t *testing.T) {
	for _, bad := range []string{"", "bash", "bash()", "bash( )", "bash(a;b)", "bash(a", "bash a", "bash($x)", "bash(a > b)", "bash(*)", "bash(git *)", "bash(git status:*)", "a b", "fetch()", "fetch(a b)", "fetch(https://example.com)", "fetch(example.com/x)", "fetch(*)", "fetch(*.)", "fetch(a*.com)", "fetch(x", "fetch(u@x)", "fetch(.x)", "read_file(x)", "edits(x)", `bash("`} {
		if r, err := ParseRule(bad); err == nil {
			t.Errorf("%q is read as %v", bad, r)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line: %v", bad, err)
		}
	}
}

func TestRuleFor(t *testing.T) {
	for command, want := range map[string]string{
		"git status -s":      "bash(git status)",
		"go test ./...":      "bash(go test)",
		"npm run build":      `bash("npm run build")`,
		"git config a.b c":   `bash("git config a.b c")`,
		"go env -w A=b":      `bash("go env -w A=b")`,
		"docker exec a sh":   `bash("docker exec a sh")`,
		"git -C x status":    `bash("git -C x status")`,
		"git":                `bash("git")`,
		"make all":           `bash("make all")`,
		"rm -rf build":       `bash("rm -rf build")`,
		"go test | tail":     `bash("go test | tail")`,
		"git $(x)":           `bash("git $(x)")`,
		"A=b git status":     `bash("A=b git status")`,
		"git ./x":            `bash("git ./x")`,
		"python3 -c 'print'": `bash("python3 -c 'print'")`,
	} {
		got := ruleFor(command)
		if got.String() != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
		if !got.Covers(Request{Tool: "bash", Command: command}) {
			t.Errorf("%s does not cover %s, which it was made from", got, command)
		}
	}
}

// FuzzRuleFor: a rule covers the command it was made from, and one with words
// covers only commands that are nothing but words.
func FuzzRuleFor(f *testing.F) {
	f.Add("git status")
	f.Add("go test ./... ; rm x")
	f.Fuzz(func(t *testing.T, command string) {
		r := ruleFor(command)
		if command != "" && !r.Covers(Request{Tool: "bash", Command: command}) {
			t.Errorf("%s does not cover %q", r, command)
		}
		if _, simple := shell.Words(command); !simple && r.Exact != command {
			t.Errorf("%q has the rule %s", command, r)
		}
		if again, err := ParseRule(r.String()); command != "" && (err != nil || !again.Covers(Request{Tool: "bash", Command: command})) {
			t.Errorf("%s is read as %v, %v", r, again, err)
		}
	})
}

func TestModes(t *testing.T) {
	calls := []struct {
		what, tool string
		args       o
	}{
		{"read", "read_file", o{"path": "a.txt"}},
		{"edit", "edit_file", o{"path": "a.txt", "old_string": "old", "new_string": "old"}},
		{"edit", "edit_file", o{"path": "a.txt", "old_string": "old", "new_string": "older"}},
		{"write", "write_file", o{"path": "new.txt", "content": "x"}},
		{"note", "write_file", o{"path": "memory/2026-08-02.md", "content": "x", "append": true}},
		{"note", "write_file", o{"path": "MEMORY.md", "content": "x"}},
		{"bash", "bash", o{"command": "echo hi"}},
		{"rule", "bash", o{"command": "git version"}},
		{"git's", "write_file", o{"path": ".git/config", "content": "x"}},
		{"git's", "write_file", o{"path": "link/hooks/pre-commit", "content": "x"}},
		{"not git's", "write_file", o{"path": ".gitignore", "content": "x"}},
	}
	for mode, want := range map[Mode][]string{
		// What is asked about, and what is refused.
		ModeAsk:   {"", "", "ask", "ask", "", "", "ask", "", "ask", "ask", "ask"},
		ModeEdits: {"", "", "", "", "", "", "ask", "", "ask", "ask", ""},
		ModePlan:  {"", "", "refused", "refused", "", "", "refused", "refused", "refused", "refused", "refused"},
		ModeAll:   {"", "", "", "", "", "", "", "", "", "", ""},
	} {
		for i, c := range calls {
			asked := false
			dir := t.TempDir()
			put(t, filepath.Join(dir, "a.txt"), "old\n")
			put(t, filepath.Join(dir, ".git/config"), "[core]\n")
			if err := os.Symlink(".git", filepath.Join(dir, "link")); err != nil {
				t.Fatal(err)
			}
			s, err := New(Options{Workspace: dir, Now: noonClock, Mode: mode, Rules: []Rule{{Tool: "bash", Words: []string{"git", "version"}}},
				Ask: ApproverFunc(func(context.Context, Request) (Decision, error) { asked = true; return No, nil })})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Run(t.Context(), call(c.tool, c.args))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			switch {
			case asked:
				got = "ask"
			case strings.Contains(r.Text(), "chosen to plan"):
				got = "refused"
			}
			if got != want[i] {
				t.Errorf("mode %v, call %d (%s): %q, want %q: %s", mode, i, c.what, got, want[i], r.Text())
			}
			s.Close()
		}
	}
}

// TestEditIsShown: the question about a file shows what would change, and
// nothing changes before the answer.
func TestEditIsShown(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.txt"), "one\ntwo\nthree\n")
	var asked []Request
	answer, because := No, error(nil)
	s, err := New(Options{Workspace: dir, Now: noonClock, Mode: ModeAsk, Ask: ApproverFunc(func(_ context.Context, r Request) (Decision, error) {
		if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); len(asked) < 3 && string(b) != "one\ntwo\nthree\n" {
			t.Errorf("changed before the answer: %q", b)
		}
		asked = append(asked, r)
		return answer, because
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	edit := o{"path": "./a.txt", "old_string": "two", "new_string": "2"}
	fails(t, s, "edit_file", edit, "did not allow")
	because = Because("use words")
	fails(t, s, "edit_file", edit, "says: use words")
	if len(asked) != 2 || asked[0].Path != "a.txt" || asked[0].Rule.String() != "edits" || !strings.Contains(asked[0].Diff, "\n-two\n+2\n") {
		t.Fatalf("%+v", asked)
	}
	fails(t, s, "edit_file", o{"path": "a.txt", "old_string": "four", "new_string": "4"}, "was not found") // not worth a question
	fails(t, s, "edit_file", o{"path": "../a.txt", "old_string": "two", "new_string": "4"}, "outside")
	if len(asked) != 2 {
		t.Errorf("asked about what cannot be done: %+v", asked[2:])
	}
	answer, because = Session, nil
	ok(t, s, "edit_file", edit)
	answer = No
	ok(t, s, "write_file", o{"path": "b.txt", "content": "x"}) // allowed with the first
	if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "one\n2\nthree\n" || len(asked) != 3 {
		t.Errorf("%q, asked %d times", b, len(asked))
	}
	fails(t, s, "bash", o{"command": "ls"}, "did not allow")
}

// TestMemoryElsewhere: the memory files are reached by their names, whatever
// the workspace, and nothing else of their folder is.
func TestMemoryElsewhere(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	put(t, filepath.Join(home, "MEMORY.md"), "mine\n")
	put(t, filepath.Join(home, "other.txt"), "not for tools\n")
	put(t, filepath.Join(dir, "MEMORY.md"), "the project's\n")
	put(t, filepath.Join(dir, "memory/x.md"), "the project's\n")
	s, err := New(Options{Workspace: dir, Memory: home, Now: noonClock, Mode: ModeAsk})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	contains(t, ok(t, s, "read_file", o{"path": "MEMORY.md"}), "mine")
	contains(t, ok(t, s, "read_file", o{"path": "./memory/../MEMORY.md"}), "mine")
	contains(t, ok(t, s, "read_file", o{"path": filepath.Join(home, "MEMORY.md")}), "mine")
	contains(t, ok(t, s, "read_file", o{"path": filepath.Join(dir, "MEMORY.md")}), "the project's")
	ok(t, s, "write_file", o{"path": "memory/2026-08-02.md", "content": "a note"})
	contains(t, ok(t, s, "list_directory", o{"path": "memory"}), "2026-08-02.md")
	if b, err := os.ReadFile(filepath.Join(home, "memory/2026-08-02.md")); err != nil || string(b) != "a note" {
		t.Errorf("%q, %v", b, err)
	}
	fails(t, s, "read_file", o{"path": "other.txt"}, "does not exist")
	fails(t, s, "read_file", o{"path": filepath.Join(home, "other.txt")}, "outside")
	fails(t, s, "write_file", o{"path": "memory/../x.txt", "content": "x"}, "no one to ask")
	// A link does not make a file of another folder a memory file.
	if err := os.Symlink("../other.txt", filepath.Join(home, "memory/link.md")); err != nil {
		t.Fatal(err)
	}
	fails(t, s, "write_file", o{"path": "memory/link.md", "content": "x"}, "no one to ask")
}
