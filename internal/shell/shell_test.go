package shell_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"goclaw/internal/shell"
)

func TestWords(t *testing.T) {
	for command, want := range map[string][]string{
		`git status`:               {"git", "status"},
		`  git   "status" -s `:     {"git", "status", "-s"},
		`git 'sta'tus`:             {"git", "status"},
		`git\ status`:              {"git status"},
		`g\it status`:              {"git", "status"},
		`grep "a\.b" 'c\d' e\\f`:   {"grep", `a\.b`, `c\d`, `e\f`},
		`echo "say \"hi\" \$HOME"`: {"echo", `say "hi" $HOME`},
		`ls *.go ~/x {a,b}`:        {"ls", "*.go", "~/x", "{a,b}"},
		`echo ''`:                  {"echo", ""},
		`echo a#b "#c"`:            {"echo", "a#b", "#c"},
		`echo "a;b|c>d&e"`:         {"echo", "a;b|c>d&e"},
		`go test ./...`:            {"go", "test", "./..."},
		`echo [ab] ?`:              {"echo", "[ab]", "?"},
	} {
		got, ok := shell.Words(command)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", command, got, ok, want)
		}
		if again, _ := shell.Words(shell.Quote(want)); !slices.Equal(again, want) {
			t.Errorf("%q is quoted as %s", want, shell.Quote(want))
		}
		// A real shell sees the same words. It expands patterns, braces and ~,
		// which is switched off here.
		out, err := exec.Command("bash", "-f", "+B", "-c", `HOME='~'; printf '%s\0' `+command).Output()
		if err != nil {
			t.Fatal(err)
		}
		if real := strings.TrimSuffix(string(out), "\x00"); real != strings.Join(want, "\x00") {
			t.Errorf("%s: bash sees %q", command, real)
		}
	}
	for _, command := range []string{
		"", " ", "#", "# git status", "git status # and more", "git status;", "git status; ls", "git status && ls", "git status || ls",
		"git status | cat", "git status |& cat", "git status &", "git status\nls", "git status\n", "\ngit status", "git status\r", "git \\\nstatus", "git 'a\nb'",
		"git status > f", "git status >> f", "git status < f", "git status 2>&1", "git status &> f", "git status <<< x", "git status << X", ">f git status",
		"$(git status)", "git $(ls)", "git `ls`", "git \"$(ls)\"", "git \"`ls`\"", "git $HOME", "git ${HOME}", "git \"$HOME\"", "git $((1+1))", "git $'a'", "git $\"a\"",
		"git <(ls)", "git >(ls)", "(git status)", "{ git status; }", "! git status", "time git status", "A=b git status", "A=b", "A[0]=b", "export A=b", "declare x",
		"if true; then git status; fi", "for i in a; do git status; done", "while true; do ls; done", "case a in a) ls;; esac", "f() { ls; }", "[[ a = b ]]", "((1+1))", "let a=1",
		"coproc ls", "git status &!", "git 'unclosed", "git \"unclosed", "git )", "git @(a|b)", "git \x00", "git \x1b", "git status\x7f", "git \xff",
	} {
		if got, ok := shell.Words(command); ok {
			t.Errorf("%q is taken for the simple command %q", command, got)
		}
	}
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"git status", "a;b", "a 'b' \"c\"", "a $(b)", "a\\ b", "a <<X\nX"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words, ok := shell.Words(s)
		if ok != (len(words) > 0) {
			t.Errorf("%q: %q, %v", s, words, ok)
		}
	})
}

func TestParts(t *testing.T) {
	for command, want := range map[string][]string{
		"ls":                               {"ls"},
		"cd a && go test ./... | tail -5":  {"cd a", "&& go test ./...", "| tail -5"},
		"a; b & c\nd || e":                 {"a;", "b &", "c", "d", "|| e"},
		"for f in *; do rm $f; done; x":    {"for f in *; do rm $f; done;", "x"},
		"(a; b) | c":                       {"(a; b)", "| c"},
		"echo $(rm -r x; y) && z":          {"echo $(rm -r x; y)", "&& z"},
		"cat <<E | grep x\nbody; |\nE\nls": {"cat <<E", "| grep x\nbody; |\nE", "ls"},
		"a |& b":                           {"a", "|& b"},
		"! a | b":                          {"! a | b"},
		"{ a; } > f || b":                  {"{ a; } > f", "|| b"},
		"a # comment\nb":                   {"a # comment", "b"},
		"if":                               {"if"},
		"":                                 nil,
	} {
		if got := shell.Parts(command); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

// No byte of a command is lost but the space between its parts.
func FuzzParts(f *testing.F) {
	f.Add("cd a && go test ./... | tail -5; (x; y) & cat <<E\nz\nE\n")
	f.Fuzz(func(t *testing.T, command string) {
		bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
		if got := strings.Join(shell.Parts(command), " "); bare(got) != bare(command) {
			t.Errorf("%q is shown as %q", command, got)
		}
	})
}
