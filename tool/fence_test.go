//go:build unix

package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const apiKey = "sk-the-key-of-the-user"

// fenced makes a workspace with a program's home somewhere below it, and ways
// around the fence.
func fenced(t *testing.T) (ws string, f Fence) {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(ws, "cfg", "claw")
	put(t, filepath.Join(home, "config.json"), apiKey)
	put(t, filepath.Join(home, "logs", "deep", "a.jsonl"), apiKey)
	put(t, filepath.Join(home, "workspace", "notes.md"), "a note")
	put(t, filepath.Join(ws, "elsewhere", "sessions.db"), apiKey)
	put(t, filepath.Join(ws, "elsewhere", "mine.txt"), "mine")
	for link, to := range map[string]string{
		"to-home":        "cfg/claw",
		"to-config":      "cfg/claw/config.json",
		"elsewhere/up":   "../cfg",
		"to-new":         "cfg/claw/allowed", // there is none yet
		"cfg/claw/open":  "workspace",
		"elsewhere/open": "../cfg/claw/workspace",
	} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(home, "config.json"), filepath.Join(ws, "twin.txt")); err != nil {
		t.Fatal(err)
	}
	db := filepath.Join(ws, "elsewhere", "sessions.db")
	return ws, Fence{Private: []string{home, db, db + "-wal"}, Open: []string{filepath.Join(home, "workspace")}}
}

func TestFence(t *testing.T) {
	ws, f := fenced(t)
	s := open(t, Options{Workspace: ws, Fence: f, DisableBash: true}, nil)
	for _, path := range []string{
		"cfg/claw", "cfg/claw/", "cfg/claw/config.json", "cfg/claw/nothing-there", "cfg/claw/new/dir/file", "cfg/claw/logs/deep/a.jsonl",
		"elsewhere/../cfg/claw/config.json", "elsewhere/sessions.db", "elsewhere/sessions.db-wal", "elsewhere/SESSIONS.db", "cfg/Claw", "./cfg//claw/./config.json",
		"to-home/config.json", "to-home/allowed", "to-config", "to-new", "elsewhere/up/claw/config.json", "twin.txt",
		"cfg/claw/workspace/../config.json", "cfg/claw/open/../allowed",
		ws + "/cfg/claw/config.json",
	} {
		for _, call := range []struct {
			tool string
			args o
		}{
			{"read_file", o{"path": path}},
			{"list_directory", o{"path": path}},
			{"write_file", o{"path": path, "content": "x"}},
			{"write_file", o{"path": path, "content": "x", "append": true}},
			{"edit_file", o{"path": path, "old_string": apiKey, "new_string": "x"}},
		} {
			r := run(t, s, call.tool, call.args)
			if !r.IsError || strings.Contains(r.Text(), apiKey) || strings.Contains(r.Text(), "config.json") && !strings.Contains(path, "config.json") {
				t.Errorf("%s %s: %v %q", call.tool, path, r.IsError, r.Text())
			}
			if want := "private to the program"; call.tool != "list_directory" && !strings.Contains(r.Text(), want) {
				t.Errorf("%s %s says %q, want %q", call.tool, path, r.Text(), want)
			}
		}
	}
	if got := get(t, filepath.Join(ws, "cfg/claw/config.json")); got != apiKey {
		t.Errorf("the configuration is now %q", got)
	}
	for _, name := range []string{"cfg/claw/allowed", "cfg/claw/new", "cfg/claw/nothing-there", "elsewhere/sessions.db-wal"} {
		if _, err := os.Lstat(filepath.Join(ws, name)); err == nil {
			t.Errorf("%s was made", name)
		}
	}

	// What is not private works as before, in an open folder as well.
	for _, path := range []string{"cfg/claw/workspace/notes.md", "cfg/claw/open/notes.md", "to-home/workspace/notes.md", "elsewhere/open/notes.md"} {
		if got := ok(t, s, "read_file", o{"path": path}); got != "a note" {
			t.Errorf("%s: %q", path, got)
		}
	}
	ok(t, s, "write_file", o{"path": "cfg/claw/workspace/memory/new.md", "content": "x"})
	ok(t, s, "edit_file", o{"path": "elsewhere/mine.txt", "old_string": "mine", "new_string": "yours"})

	got := ok(t, s, "list_directory", o{"depth": 20})
	contains(t, got, "claw/  refused: private\n", "sessions.db  refused: private\n", "mine.txt  5 B\n")
	for _, secret := range []string{"config.json\n", "logs", "deep", "a.jsonl", "notes.md"} {
		if strings.Contains(strings.ReplaceAll(got, "-> cfg/claw/config.json", ""), secret) {
			t.Errorf("a listing shows %q:\n%s", secret, got)
		}
	}
}

// A second hard link is found out in a private folder of any depth, and one
// between two files that are not private is none of the fence's business.
func TestFenceHardLinks(t *testing.T) {
	ws, f := fenced(t)
	for from, to := range map[string]string{"cfg/claw/logs/deep/a.jsonl": "log.txt", "elsewhere/mine.txt": "also-mine.txt", "cfg/claw/workspace/notes.md": "note.md"} {
		if err := os.Link(filepath.Join(ws, from), filepath.Join(ws, to)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, Options{Workspace: ws, Fence: f, DisableBash: true}, nil)
	fails(t, s, "read_file", o{"path": "log.txt"}, "private")
	if got := ok(t, s, "read_file", o{"path": "also-mine.txt"}) + ok(t, s, "read_file", o{"path": "note.md"}); got != "minea note" {
		t.Errorf("got %q", got)
	}
}

func TestFenceAroundTheWorkspace(t *testing.T) {
	ws, f := fenced(t)
	home := f.Private[0]
	for _, dir := range []string{home, filepath.Join(home, "logs"), filepath.Join(ws, "to-home"), home + "/workspace/.."} {
		if s, err := New(Options{Workspace: dir, Fence: f, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "cannot be the workspace") {
			if err == nil {
				s.Close()
			}
			t.Errorf("%s: %v", dir, err)
		}
	}
	s := open(t, Options{Workspace: f.Open[0], Fence: f, DisableBash: true}, nil)
	if got := ok(t, s, "read_file", o{"path": "notes.md"}); got != "a note" {
		t.Errorf("got %q", got)
	}
}

// The environment of this process holds keys, and /proc shows it.
func TestFenceProc(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc here")
	}
	s := open(t, Options{Workspace: "/", DisableBash: true}, nil)
	for _, path := range []string{"/proc/self/environ", "/proc/1/environ", fmt.Sprintf("proc/%d/environ", os.Getpid()), "/proc/self/mem", "/proc"} {
		fails(t, s, "read_file", o{"path": path}, "private")
	}
	fails(t, s, "read_file", o{"path": "/proc/self/root/etc/passwd"})
	if got := ok(t, s, "list_directory", o{"path": "/"}); !strings.Contains(got, "proc/  refused: private\n") {
		t.Errorf("the root is listed as %q", got)
	}
}

// TestFenceAsks: no remembered "always" runs a command that names something
// private, however it is written; others it does run.
func TestFenceAsks(t *testing.T) {
	ws, f := fenced(t)
	private := []string{
		"cat cfg/claw/config.json", "cat ./cfg/claw/../claw/config.json", `cat "cfg/claw/config.json"`, `cat cfg/"claw"/conf\ig.json`, "echo x>cfg/claw/allowed",
		"cat to-home/config.json", "cat < to-config", "cat twin.txt", "cd cfg && cat claw/config.json", "cd cfg; cd claw; ls",
		"cat ~/cfg/claw/allowed", "cat $HOME/cfg/claw/allowed", "cat ${HOME}/cfg/claw/allowed", "cat ${X:-cfg/claw}/allowed", "d=cfg/claw; cat $d/allowed",
		"d=cfg; cat $d/claw/allowed", "cat $CLAW/config.json", "tar -Ccfg/claw -c .", "grep -r key cfg/claw", "cat cfg/*/config.json", "cat c?g/cl*/a*",
		"sqlite3 elsewhere/sessions.db", "cat elsewhere/sessions.db-wal", "ls cfg/CLAW", "cat " + ws + "/cfg/claw/config.json", "cat /proc/self/environ",
		"cat `echo cfg/claw/config.json`", "x=$(cat cfg/claw/config.json)", "python3 -c 'print(open(\"cfg/claw/config.json\").read())'",
		strings.Repeat("true;", maxWords+1),
	}
	plain := []string{"ls", "cat elsewhere/mine.txt", "cat cfg/claw/workspace/notes.md", "cd cfg && ls", "make test", "echo x > /dev/stdout 2> /dev/stderr < /dev/stdin", "git commit -m 'claw: config.json is read'", "echo $HOME"}
	asked := 0
	s := open(t, Options{
		Workspace: ws, Fence: f, Allowed: slices.Concat(private, plain), Shell: "/bin/true", Env: []string{"HOME=" + ws, "CLAW=" + f.Private[0], "PATH=/usr/bin:/bin"},
		Ask: ApproverFunc(func(_ context.Context, r Request) (Decision, error) {
			asked++
			if !r.Private {
				t.Errorf("%q is asked about as any other", r.Command)
			}
			return Always, nil
		}),
	}, nil)
	for _, command := range private {
		asked = 0
		for range 2 { // an "always" is no answer for the next time
			ok(t, s, "bash", o{"command": command})
		}
		if asked != 2 {
			t.Errorf("%q: asked %d times of 2", command, asked)
		}
	}
	asked = 0
	for _, command := range plain {
		ok(t, s, "bash", o{"command": command})
	}
	if asked != 0 {
		t.Errorf("asked %d times about plain commands", asked)
	}
	nobody := open(t, Options{Workspace: ws, Fence: f, Allowed: private, Shell: "/bin/true"}, nil)
	fails(t, nobody, "bash", o{"command": private[0]}, "private", "each time")
}

func TestFenceCheck(t *testing.T) {
	_, f := fenced(t)
	if err := f.Check(filepath.Join(f.Private[0], "allowed")); !errors.Is(err, errPrivate) {
		t.Errorf("got %v", err)
	}
	if err := f.Check(f.Open[0]); err != nil {
		t.Errorf("got %v", err)
	}
}
