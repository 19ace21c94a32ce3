package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindTemplates(t *testing.T) {
	root := t.TempDir()
	home, repo := filepath.Join(root, "home"), filepath.Join(root, "repo")
	put(t, filepath.Join(repo, ".git/HEAD"), "ref: refs/heads/main")
	put(t, filepath.Join(repo, ".claude/commands/review.md"), "---\ndescription: Reviews\nargument-hint: [file]\n---\nReview $1.\n")
	put(t, filepath.Join(repo, ".claude/commands/web/button.md"), "# Makes a button\nMake one.\n")
	put(t, filepath.Join(repo, ".claude/commands/notes.txt"), "no template")
	put(t, filepath.Join(home, "prompts/review.md"), "Mine.")
	put(t, filepath.Join(home, "prompts/two words.md"), "Cannot be typed.")
	put(t, filepath.Join(home, "prompts/odd.md"), "---\nnot a field\n---\nStill a prompt.")
	put(t, filepath.Join(home, "prompts/large.md"), strings.Repeat("x", maxBody+1))
	put(t, filepath.Join(home, "secret.md"), "a secret")
	if err := os.Symlink(filepath.Join(home, "secret.md"), filepath.Join(repo, ".claude/commands/steal.md")); err != nil {
		t.Fatal(err)
	}
	list, problems := FindTemplates(append(Project(repo, ".claude/commands"), Places(filepath.Join(home, "prompts"))...))
	want := []Template{
		{Name: "review", Description: "Reviews", Hint: "[file]", Path: filepath.Join(repo, ".claude/commands/review.md")},
		{Name: "button", Group: "web", Description: "Makes a button", Path: filepath.Join(repo, ".claude/commands/web/button.md")},
		{Name: "odd", Path: filepath.Join(home, "prompts/odd.md")},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("templates (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		filepath.Join(repo, ".claude/commands/steal.md") + ": it is a link that leads out of the repository, and is not followed",
		filepath.Join(home, "prompts/large.md") + ": not used: it is larger than 64 KiB",
	}, problems); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
	for name, want := range map[string]string{"Review": "review", "button": "button", "web:button": "button", "prompts:odd": "odd", "web": "", "x:review": ""} {
		if got, ok := FindTemplate(list, name); got.Name != want || ok != (want != "") {
			t.Errorf("%s is %q, want %q", name, got.Name, want)
		}
	}
}

func TestTemplateExpand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.md")
	put(t, file, "---\ndescription: x\n---\n\nNo place.\n")
	for args, want := range map[string]string{" for this ": "No place.\n\nARGUMENTS: for this", " ": "No place."} {
		if got, err := (Template{Path: file}).Expand(args); got != want || err != nil {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct{ body, args, want string }{
		{"Fix $ARGUMENTS now", `the "big" bug`, `Fix the "big" bug now`},
		{"Fix $@ now", "it", "Fix it now"},
		{"$1 and $2, not $3.", `a "b c"`, "a and b c, not ."},
		{"It costs $100, $$1 or $0.", "", "It costs $100, $$1 or $0."},
		{"First $1, then ${@:2}; two: ${@:2:1}", "a b c", "First a, then b c; two: b"},
		{"${1:-main} ${2:-src}", "trunk", "trunk src"},
		{"$ARGUMENTS[1] of $HOME/$FILE", "FILE=a.go b", "b of $HOME/a.go"},
		{"No place.", "for this", "No place."},
		{"Say $1", "$ARGUMENTS", "Say $ARGUMENTS"}, // not filled in again
		{"Say $1|$2", "it's 'two words'", "Say it's|two words"},
	} {
		got, used := fill(c.body, c.args, anyArgument)
		if places := strings.Contains(c.body, "$") && c.args != ""; got != c.want || used != places {
			t.Errorf("%q with %q: %q (%t), want %q (%t)", c.body, c.args, got, used, c.want, places)
		}
	}
}
