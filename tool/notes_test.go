package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// takeNotes appends 200 notes to MEMORY.md in dir and changes a line of it 50
// times, with the tools.
func takeNotes(dir, name string) error {
	s, err := New(Options{Workspace: dir, Now: time.Now, DisableBash: true})
	if err != nil {
		return err
	}
	defer s.Close()
	do := func(tool string, args o) error {
		r, err := s.Run(context.Background(), call(tool, args))
		if err == nil && r.IsError {
			err = errors.New(r.Text())
		}
		return err
	}
	for i := range 200 {
		if err := do("write_file", o{"path": "MEMORY.md", "content": fmt.Sprintf("- %s wrote note %d.\n", name, i), "append": true}); err != nil {
			return err
		}
		if i%4 != 0 {
			continue
		}
		if err := do("edit_file", o{"path": "MEMORY.md", "old_string": fmt.Sprintf("%s: %d edits", name, i/4), "new_string": fmt.Sprintf("%s: %d edits", name, i/4+1)}); err != nil {
			return err
		}
	}
	return nil
}

// Processes that append to the same notes and edit them at the same time lose
// nothing, one of them through a link.
func TestNotesOfTwoProcesses(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, other := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "MEMORY.md"), "ann: 0 edits\nbob: 0 edits\n")
	if err := os.Chmod(filepath.Join(dir, "MEMORY.md"), 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(other, "ws")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	out := make(chan string)
	for name, dir := range map[string]string{"ann": dir, "bob": link} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "TOOL_NOTES="+dir, "TOOL_NAME="+name)
		go func() {
			text, err := cmd.CombinedOutput()
			if err != nil {
				out <- fmt.Sprintf("%s: %v: %s", name, err, text)
				return
			}
			out <- ""
		}()
	}
	for range 2 {
		if text := <-out; text != "" {
			t.Error(text)
		}
	}
	got := get(t, filepath.Join(dir, "MEMORY.md"))
	for _, name := range []string{"ann", "bob"} {
		lost := 0
		for i := range 200 {
			if strings.Count(got, fmt.Sprintf("- %s wrote note %d.\n", name, i)) != 1 {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("%d of 200 notes by %s are lost", lost, name)
		}
		contains(t, got, name+": 50 edits\n")
	}
	if info, err := os.Stat(filepath.Join(dir, "MEMORY.md")); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v), want 0640", info.Mode(), err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("there are %v, want MEMORY.md alone", files)
	}
}

// A lock that another process keeps for too long is an error that says so, and
// a wait for it ends with its context.
func TestFolderIsLocked(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": "x"})
	s.ws.patience = 5 * time.Millisecond
	d, err := os.Open(s.ws.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if flock(d) {
		t.Fatal("the folder is locked already")
	}
	fails(t, s, "write_file", o{"path": "f", "content": "y"}, "f: another process has been changing files in its folder")
	fails(t, s, "write_file", o{"path": "f", "content": "y", "append": true}, "another process")
	fails(t, s, "edit_file", o{"path": "f", "old_string": "x", "new_string": "y"}, "another process")
	ok(t, s, "write_file", o{"path": "below/f", "content": "y"})

	s.ws.patience = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Run(ctx, call("write_file", o{"path": "f", "content": "y"})); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
	d.Close()
	ok(t, s, "edit_file", o{"path": "f", "old_string": "x", "new_string": "y"})
}

// A program that does not know the lock writes to a file while it is edited:
// what it wrote is kept.
func TestEditKeepsWhatOthersWrote(t *testing.T) {
	s := open(t, Options{}, map[string]string{"f": "x\n"})
	_, info, err := s.ws.readAll("f")
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.ws.dir, "f"), "x\nmore\n")
	if err := s.ws.replace("f", info, []byte("y\n")); !errors.Is(err, errChanged) {
		t.Errorf("replacing a file that was changed: %v, want %v", err, errChanged)
	}
	ok(t, s, "edit_file", o{"path": "f", "old_string": "x", "new_string": "y"})
	if got := get(t, filepath.Join(s.ws.dir, "f")); got != "y\nmore\n" {
		t.Errorf("got %q", got)
	}
	noTemps(t, s.ws.dir)
}

// An appended note does not reach a second name of the file, which may lie
// outside the workspace.
func TestAppendStaysInside(t *testing.T) {
	s := open(t, Options{}, nil)
	outside := filepath.Join(t.TempDir(), "f")
	put(t, outside, "theirs")
	if err := os.Link(outside, filepath.Join(s.ws.dir, "f")); err != nil {
		t.Fatal(err)
	}
	ok(t, s, "write_file", o{"path": "f", "content": "mine", "append": true})
	if in, out := get(t, filepath.Join(s.ws.dir, "f")), get(t, outside); in != "theirs\nmine" || out != "theirs" {
		t.Errorf("inside %q, outside %q", in, out)
	}
}
