package wholefile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	path := filepath.Join(dir, "file")
	for _, want := range []string{"first", "second", ""} {
		if err := Write(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got %v (%v), want mode 0600", fi.Mode(), err)
	}

	taken := filepath.Join(dir, "taken", "inside")
	if err := os.MkdirAll(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Dir(taken), nil); err == nil {
		t.Error("a folder was replaced")
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("there are %v, want no temporary files", files)
	}
}

func TestMkdir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := Mkdir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if fi, err := os.Stat(filepath.Dir(dir)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("got %v (%v), want mode 0700", fi.Mode(), err)
	}
	if err := SyncDir(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder was synced")
	}
	file := filepath.Join(dir, "file")
	if err := Write(file, nil); err != nil {
		t.Fatal(err)
	}
	if err := Mkdir(filepath.Join(file, "inside")); err == nil {
		t.Error("a folder was made in a file")
	}
}
