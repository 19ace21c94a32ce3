package tool

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadable: folders besides the workspace can be read, and nothing else: not
// written, not left by a link, and not what lies next to them.
func TestReadable(t *testing.T) {
	home := t.TempDir()
	skill := filepath.Join(home, "skills", "pdf")
	put(t, filepath.Join(skill, "SKILL.md"), "Read scripts/run.sh.\n")
	put(t, filepath.Join(skill, "scripts", "run.sh"), "echo secret word\n")
	put(t, filepath.Join(home, "config.json"), "the key\n")
	for from, to := range map[string]string{"out": "../../config.json", "in": "SKILL.md"} {
		if err := os.Symlink(to, filepath.Join(skill, from)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Options{Fence: Fence{Private: []string{home}}, Mode: ModeAll}, map[string]string{"a": "A\n"})
	file := filepath.Join(skill, "SKILL.md")
	fails(t, s, "read_file", o{"path": file}, "is outside the workspace")

	s.SetReadable([]string{skill})
	if got := ok(t, s, "read_file", o{"path": file}); got != "Read scripts/run.sh.\n" {
		t.Errorf("the file is %q", got)
	}
	ok(t, s, "read_file", o{"path": filepath.Join(skill, "in")})
	contains(t, ok(t, s, "list_directory", o{"path": skill}), "scripts/", "SKILL.md")
	contains(t, ok(t, s, "grep", o{"path": skill, "pattern": "word"}), filepath.Join(skill, "scripts/run.sh")+":1: echo secret word")
	contains(t, ok(t, s, "glob", o{"path": skill, "pattern": "**/*.sh"}), filepath.Join(skill, "scripts/run.sh"))
	if got := ok(t, s, "read_file", o{"path": "a"}); got != "A\n" {
		t.Errorf("the workspace has %q", got)
	}

	fails(t, s, "read_file", o{"path": filepath.Join(skill, "out")}, "out")
	fails(t, s, "read_file", o{"path": filepath.Join(skill, "../../config.json")}, "is outside the workspace")
	fails(t, s, "list_directory", o{"path": filepath.Join(home, "skills")}, "is outside the workspace")
	fails(t, s, "write_file", o{"path": filepath.Join(skill, "new"), "content": "x"}, "is outside the workspace")
	fails(t, s, "edit_file", o{"path": file, "old_string": "Read", "new_string": "Do not read"}, "is outside the workspace")
	if got := get(t, file); got != "Read scripts/run.sh.\n" {
		t.Errorf("the file was changed: %q", got)
	}

	// Another folder in its place is read as it is now.
	if err := os.Rename(skill, skill+".old"); err != nil {
		t.Fatal(err)
	}
	put(t, file, "Another.\n")
	if got := ok(t, s, "read_file", o{"path": file}); got != "Another.\n" {
		t.Errorf("the new file is %q", got)
	}
	s.SetReadable(nil)
	fails(t, s, "read_file", o{"path": file}, "is outside the workspace")
}
