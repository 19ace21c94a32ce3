package tool

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/shell"
)

// edits is the name that stands for every tool that changes files.
const edits = "edits"

// Rule allows calls without a question. The zero Rule allows none.
//
//	bash(git status)    simple commands whose first words are these
//	bash("a | b")       this command line, exactly as written
//	edits               every change of a file in the workspace
//	fetch(example.com)  addresses of this host; *.example.com are those below it
//	fetch               every call of the tool fetch
//
// The words are those that a shell would pass to the program. A command that is
// more than one simple command, or of which that cannot be said, is covered
// only by a rule that has it exactly: separators, redirections, substitutions,
// variables, assignments and line breaks are no part of any rule with words.
type Rule struct {
	Tool  string
	Words []string // the first words of a command
	Exact string   // a whole command line; goes before Words
	Host  string   // of an address; with its port if that is not the usual one
}

// hostName is a host in a rule: a name, the names below one, or an address; with
// a port if it is not the usual one.
var hostName = regexp.MustCompile(`^((\*\.)?[\pL\pN]([\pL\pN._-]*[\pL\pN])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// Exactly is the rule for one command line.
func Exactly(command string) Rule { return Rule{Tool: "bash", Exact: command} }

// ParseRule reads a rule as String writes it.
func ParseRule(text string) (Rule, error) {
	name, rest, has := strings.Cut(strings.TrimSpace(text), "(")
	if !has {
		switch {
		case name == "bash":
			return Rule{}, fmt.Errorf(`the rule %q would allow every command: name some, such as "bash(go test)", or use the mode all`, text)
		case name != edits && !toolName.MatchString(name):
			return Rule{}, badRule(text)
		}
		return Rule{Tool: name}, nil
	}
	inside, closed := strings.CutSuffix(rest, ")")
	switch {
	case closed && name == "fetch" && hostName.MatchString(inside):
		return Rule{Tool: name, Host: strings.ToLower(inside)}, nil
	case closed && name == "fetch":
		return Rule{}, fmt.Errorf("the rule %q must have a host between the brackets, such as fetch(example.com), fetch(*.example.com) or fetch(localhost:8080)", text)
	case !closed || name != "bash":
		return Rule{}, badRule(text)
	}
	var exact string
	if _, err := fmt.Sscanf(inside, "%q", &exact); err == nil && fmt.Sprintf("%q", exact) == inside {
		return Exactly(exact), nil
	}
	words, ok := shell.Words(inside)
	if !ok {
		return Rule{}, fmt.Errorf("the rule %q must have the first words of one simple command between the brackets, without separators, variables or redirections", text)
	}
	// Other programs write git:* or git * for what git means here.
	if last := words[len(words)-1]; last == "*" || strings.HasSuffix(last, ":*") {
		return Rule{}, fmt.Errorf("the rule %q would cover nothing: write the first words alone, whatever follows them is allowed", text)
	}
	return Rule{Tool: name, Words: words}, nil
}

func badRule(text string) error {
	return fmt.Errorf(`%q is not a rule: write "bash(go test)" for commands that begin with these words, "edits", "fetch(example.com)", or the name of a tool`, text)
}

// String returns the rule as ParseRule reads it.
func (r Rule) String() string {
	switch {
	case r.Exact != "":
		return fmt.Sprintf("%s(%q)", r.Tool, r.Exact)
	case r.Host != "":
		return r.Tool + "(" + r.Host + ")"
	case len(r.Words) > 0:
		return r.Tool + "(" + shell.Quote(r.Words) + ")"
	}
	return r.Tool
}

// Covers reports whether the rule allows what is asked.
func (r Rule) Covers(q Request) bool {
	switch {
	case r.Tool == edits:
		return q.Path != ""
	case r.Tool == "" || r.Tool != q.Tool:
		return false
	case r.Exact != "":
		return r.Exact == q.Command
	case r.Host != "":
		above, below := strings.CutPrefix(r.Host, "*")
		return r.Host == q.Host || below && strings.HasSuffix(q.Host, above)
	case len(r.Words) == 0:
		return r.Tool != "bash"
	}
	words, ok := shell.Words(q.Command)
	return ok && len(words) >= len(r.Words) && slices.Equal(words[:len(r.Words)], r.Words)
}

// subcommands are programs whose first argument says what they do. A rule for
// both words says enough; of other programs only the whole command does.
var subcommands = map[string]bool{
	"bundle": true, "cargo": true, "docker": true, "dotnet": true, "gh": true, "git": true, "go": true, "gradle": true,
	"helm": true, "kubectl": true, "mvn": true, "npm": true, "pip": true, "pip3": true, "pnpm": true, "poetry": true,
	"systemctl": true, "terraform": true, "uv": true, "yarn": true,
}

// runners are subcommands that run whatever follows them, or set what the program
// runs from then on (git config core.fsmonitor).
var runners = map[string]bool{
	"exec": true, "run": true, "x": true, "dlx": true, "tool": true,
	"config": true, "env": true, "alias": true, "bisect": true, "submodule": true, "filter-branch": true,
}

// ruleFor returns the rule that an "always" for a command stands for: its first
// two words if those say what it does, otherwise the command as it is.
func ruleFor(command string) Rule {
	words, ok := shell.Words(command)
	if ok && len(words) > 1 && subcommands[words[0]] && plain(words[1]) && !runners[words[1]] {
		return Rule{Tool: "bash", Words: words[:2]}
	}
	return Exactly(command)
}

// plain reports whether a word is the name of a subcommand: no flag, no path.
func plain(word string) bool {
	return word != "" && word[0] != '-' && !strings.ContainsFunc(word, func(r rune) bool {
		return r != '-' && r != '_' && r != ':' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
}
