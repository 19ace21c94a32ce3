package tool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUsersFiles(t *testing.T) {
	s := open(t, Options{}, map[string]string{
		"a.go": "package a\n", "sub/b.go": "b", "sub/deep/c.txt": "c", "build/out.o": "x", ".gitignore": "build/\n*.log\n", "x.log": "x",
	})
	var got []string
	err := s.Files(context.Background(), func(path string, folder bool) error {
		if folder {
			path += "/"
		}
		got = append(got, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{".gitignore", "a.go", "sub/", "sub/b.go", "sub/deep/", "sub/deep/c.txt"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	stop := errors.New("stop")
	if err := s.Files(context.Background(), func(string, bool) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a visit that fails ends with %v", err)
	}

	if data, err := s.ReadFile("sub/b.go", 10); string(data) != "b" || err != nil {
		t.Errorf("sub/b.go: %q, %v", data, err)
	}
	if _, err := s.ReadFile("nowhere/x", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := s.ReadFile("a.go", 3); err == nil || err.Error() != "it has 10 B" {
		t.Errorf("a file that is too long: %v", err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(outside, []byte("x"), 0o600), os.Symlink(outside, filepath.Join(s.ws.dir, "link"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{outside, "../x", "~/x", "link", "sub"} {
		if data, err := s.ReadFile(path, 10); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}

// A command of the user has the user's environment, and ends when it is told to.
func TestUsersShell(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	res, err := Shell(context.Background(), dir, append(os.Environ(), "MY_API_KEY=sk-own"), "echo $MY_API_KEY; pwd; exit 2", &out)
	if want := "sk-own\n" + dir + "\n"; err != nil || out.String() != want || !res.IsError || !strings.HasSuffix(res.Text(), "[exit code 2]") {
		t.Errorf("%q, %v, printed %q, want %q", res.Text(), err, out.String(), want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	res, err = Shell(ctx, dir, os.Environ(), "echo begun; sleep 1000", &out)
	if !errors.Is(err, context.Canceled) || !strings.Contains(res.Text(), "interrupted") {
		t.Errorf("stopped: %q, %v", res.Text(), err)
	}
}
