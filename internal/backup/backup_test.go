package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func make2(t *testing.T, path string, names ...string) {
	t.Helper()
	w, err := Create(path)
	must(t, err)
	w.Store = "jsonl"
	for _, name := range names {
		must(t, w.Add(t.Context(), name, strings.NewReader("the content of "+name)))
	}
	if size, err := w.Finish(t.Context()); err != nil || size == 0 {
		t.Fatalf("finish: %d bytes, %v", size, err)
	}
}

// An archive holds what was added, and appears only when it is whole.
func TestArchive(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b.zip")
	w, err := Create(path)
	must(t, err)
	must(t, w.Add(t.Context(), "x", strings.NewReader("x")))
	if _, err := os.Lstat(path); err == nil {
		t.Error("it has its name before it is finished")
	}
	w.Drop()
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("given up, it leaves %v", files)
	}
	make2(t, path, Logs+"a/b.jsonl", Memory+"MEMORY.md")
	if _, err := Create(path); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("created again: %v", err)
	}
	a, err := Open(path)
	must(t, err)
	defer a.Close()
	must(t, a.Verify(t.Context()))
	files, err := a.Below(Logs)
	if len(files) != 1 || err != nil {
		t.Fatalf("logs are %v, %v", files, err)
	}
	to := filepath.Join(dir, "new", "b.jsonl")
	must(t, a.Extract(t.Context(), files[0], to))
	if got, err := os.ReadFile(to); err != nil || string(got) != "the content of "+Logs+"a/b.jsonl" {
		t.Errorf("extracted %q, %v", got, err)
	}
	if same, err := a.Same(t.Context(), files[0], to); !same || err != nil {
		t.Errorf("what was extracted is the same: %v, %v", same, err)
	}
	if err := a.Extract(t.Context(), files[0], to); err == nil {
		t.Error("a file was overwritten")
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("got %v (%v), want mode 0600", fi.Mode(), err)
	}
}

// A path that leads out of its folder is refused.
func TestNoWayOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.zip")
	w, err := Create(path)
	must(t, err)
	defer w.Drop()
	must(t, w.Add(t.Context(), Memory+"x", strings.NewReader("x")))
	a := &Archive{Manifest: Manifest{Files: []File{{Name: Memory + "../../x"}}}}
	if files, err := a.Below(Memory); err == nil {
		t.Errorf("files are %v", files)
	}
}

// Whichever byte is changed or cut off: the archive is refused, or it holds the
// same content.
func TestEveryByteDamaged(t *testing.T) {
	dir := t.TempDir()
	path, bad := filepath.Join(dir, "b.zip"), filepath.Join(dir, "bad.zip")
	make2(t, path, Memory+"MEMORY.md")
	whole, err := os.ReadFile(path)
	must(t, err)
	verify := func(b []byte) error {
		must(t, os.WriteFile(bad, b, 0o600))
		a, err := Open(bad)
		if err != nil {
			return err
		}
		defer a.Close()
		return a.Verify(t.Context())
	}
	must(t, verify(whole))
	refused := 0
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		if verify(b) != nil {
			refused++
		}
		if i%10 > 0 {
			continue
		}
		if err := verify(whole[:i]); err == nil {
			t.Errorf("cut at byte %d of %d, it is accepted", i, len(whole))
		}
	}
	if refused < len(whole)/2 {
		t.Errorf("%d of %d damaged bytes were noticed", refused, len(whole))
	}
}
