package instructions

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFrontmatter(t *testing.T) {
	for name, c := range map[string]struct {
		text, problem, body string
		want                map[string]string
	}{
		"none":             {text: "# Title\n", body: "# Title\n"},
		"plain":            {text: "---\nname: a\ndescription: b c # not this\n---\nrest\n", want: map[string]string{"name": "a", "description": "b c"}, body: "rest\n"},
		"a colon":          {text: "---\ndescription: Use when: the user asks\n---\n", want: map[string]string{"description": "Use when: the user asks"}},
		"quotes":           {text: "---\na: \"x: \\\"y\\\" # z\"\nb: 'it''s' # no\n---\n", want: map[string]string{"a": `x: "y" # z`, "b": "it's"}},
		"folded":           {text: "---\na: >-\n  one\n  two\n\n  three\nb: |\n  x\n  y\n---\n", want: map[string]string{"a": "one two\nthree", "b": "x\ny"}},
		"plain over lines": {text: "---\na: one\n  two\nb:\n  three\n---\n", want: map[string]string{"a": "one two", "b": "three"}},
		"nested":           {text: "---\nmetadata:\n  author: me\n  tags: [a, b]\nallowed-tools:\n- Bash\nname: x\n---\n", want: map[string]string{"metadata": "", "allowed-tools": "", "name": "x"}},
		"a list":           {text: "---\nargument-hint: [file] [line]\n---\n", want: map[string]string{"argument-hint": "[file] [line]"}},
		"windows":          {text: "\uFEFF---\r\nname: x\r\n---\r\nrest", want: map[string]string{"name": "x"}, body: "rest"},
		"no end":           {text: "---\nname: x\n", problem: "its frontmatter has no end: a line of three dashes is missing"},
		"no field":         {text: "---\nname: x\nwhat is this\n---\n", problem: "line 3 of it is not a field"},
		"open":             {text: "---\nname: \"x\n---\n", problem: "its field name has a quote that is not closed"},
	} {
		got, body, err := frontmatter(c.text)
		if err != nil || c.problem != "" {
			if err == nil || err.Error() != c.problem {
				t.Errorf("%s: the problem is %v, want %s", name, err, c.problem)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || body != c.body {
			t.Errorf("%s: the rest is %q, the fields (-want +got)\n%s", name, body, diff)
		}
	}
}

func skill(name, description string) string {
	return fmt.Sprintf("---\nname: %s\ndescription: %s\n---\nDo it.\n", name, description)
}

// TestFindSkills: the nearest of a name counts, wherever it is, and what is wrong
// with one is a line that hides no other.
func TestFindSkills(t *testing.T) {
	root := t.TempDir()
	home, repo := filepath.Join(root, "home"), filepath.Join(root, "repo")
	put(t, filepath.Join(repo, ".git/HEAD"), "ref: refs/heads/main")
	put(t, filepath.Join(repo, ".agents/skills/pdf/SKILL.md"), skill("pdf", "Reads PDF files."))
	put(t, filepath.Join(repo, "a/.claude/skills/pdf/SKILL.md"), skill("pdf", "Reads them here."))
	put(t, filepath.Join(repo, "a/.claude/skills/pdf/references/SKILL.md"), skill("inner", "Not a skill: it is inside one."))
	put(t, filepath.Join(home, "skills/group/deploy/SKILL.md"), "---\ndescription: >\n  Deploys\n  things.\ndisable-model-invocation: true\n---\n")
	put(t, filepath.Join(home, "skills/Odd_Name/SKILL.md"), skill("Odd_Name", "Works all the same."))
	put(t, filepath.Join(home, "skills/other/SKILL.md"), skill("another", "Has another name."))
	put(t, filepath.Join(home, "skills/bad/SKILL.md"), skill("no way", "Its name cannot be typed."))
	put(t, filepath.Join(home, "skills/mute/SKILL.md"), "---\nname: mute\n---\n")
	put(t, filepath.Join(home, "skills/text/SKILL.md"), "only text")
	put(t, filepath.Join(home, "skills/two\nlines/SKILL.md"), skill("lines", "Would be two lines."))
	put(t, filepath.Join(home, "skills/.system/hidden/SKILL.md"), skill("hidden", "In a hidden folder."))
	put(t, filepath.Join(home, "outside/out/SKILL.md"), skill("out", "Outside."))
	for from, to := range map[string]string{
		".claude/skills/pdf": "../../.agents/skills/pdf", // as installers make them
		".claude/skills/out": filepath.Join(home, "outside/out"),
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(repo, from)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(repo, from)); err != nil {
			t.Fatal(err)
		}
	}
	found := FindSkills(append(Project(filepath.Join(repo, "a"), ".agents/skills", ".claude/skills"), Places(filepath.Join(home, "skills"), filepath.Join(home, "none"))...), Skills{})
	var got []string
	for _, s := range found.List {
		got = append(got, fmt.Sprint(strings.ReplaceAll(s.Line(), root+"/", ""), s.Hidden))
	}
	want := []string{
		"- pdf: Reads them here. (repo/a/.claude/skills/pdf/SKILL.md)false",
		"- Odd_Name: Works all the same. (home/skills/Odd_Name/SKILL.md)false",
		"- deploy: Deploys things. (home/skills/group/deploy/SKILL.md)true",
		"- another: Has another name. (home/skills/other/SKILL.md)false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("skills (-want +got)\n%s", diff)
	}
	problems := []string{
		"repo/.agents/skills/pdf/SKILL.md: not used: repo/a/.claude/skills/pdf/SKILL.md is nearer and has the same name",
		"repo/.claude/skills/out/SKILL.md: it is a link that leads out of the repository, and is not followed",
		"repo/.claude/skills/pdf/SKILL.md: not used: repo/a/.claude/skills/pdf/SKILL.md is nearer and has the same name",
		`home/skills/Odd_Name/SKILL.md: used, but its name "Odd_Name" is not of a-z, 0-9 and single -`,
		"home/skills/bad/SKILL.md: not used: its name must be 1 to 64 of a-z, 0-9 and -",
		"home/skills/mute/SKILL.md: not used: it has no description, by which the model would know when to read it",
		`home/skills/other/SKILL.md: used, but its name "another" is not that of its folder`,
		"home/skills/text/SKILL.md: not used: it does not begin with name and description between two lines of three dashes",
		"home/skills/two", "lines/SKILL.md: not used: its path has control characters", // as a terminal shows it
	}
	if diff := cmp.Diff(problems, strings.Split(strings.ReplaceAll(strings.Join(found.Problems, "\n"), root+"/", ""), "\n")); diff != "" {
		t.Errorf("problems (-want +got)\n%s", diff)
	}
	listed, left := found.Listed(len(found.List[0].Line()) + 1)
	if len(listed) != 1 || listed[0].Name != "pdf" || left != 2 {
		t.Errorf("with little room: %v and %d more", listed, left)
	}
}

// TestNews: what comes, goes and changes is told, unless it is hidden.
func TestNews(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name, "SKILL.md") }
	find := func(old Skills) Skills { return FindSkills(Places(dir), old) }
	put(t, at("one"), skill("one", "First."))
	put(t, at("two"), skill("two", "Second."))
	was := find(Skills{})
	if news := find(was).News(was); len(news) > 0 {
		t.Errorf("nothing has changed: %q", news)
	}
	put(t, at("three"), skill("three", "Third."))
	put(t, at("secret"), "---\nname: secret\ndescription: x\ndisable-model-invocation: true\n---\n")
	put(t, at("one"), skill("one", "Another."))
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(at("one"), later, later); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	want := []string{"this skill has changed: one: Another. (one)", "a new skill: three: Third. (three)", "the skill two is gone"}
	got := strings.NewReplacer(dir+"/", "", "/SKILL.md", "").Replace(strings.Join(find(was).News(was), "\n"))
	if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSkillExpand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pdf/SKILL.md")
	put(t, file, "---\nname: pdf\ndescription: x\n---\nRun scripts/read.sh $1.\n")
	s, _ := FindSkills(Places(filepath.Dir(filepath.Dir(file))), Skills{}).Named("PDF")
	got, err := s.Expand("a.pdf, please")
	want := "Use the skill pdf: a.pdf, please\n\n# " + file + " (paths in it are relative to its folder)\nRun scripts/read.sh $1."
	if err != nil || got != want {
		t.Errorf("%v, %s", err, got)
	}
	put(t, file, "---\nname: pdf\ndescription: x\n---\nRead $ARGUMENTS[0] of $ARGUMENTS.\n")
	if got, err := s.Expand(`"a b" c`); err != nil || !strings.HasSuffix(got, "\nRead a b of \"a b\" c.") {
		t.Errorf("%v, %s", err, got)
	}
}
