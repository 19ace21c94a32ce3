//go:build unix

package wholefile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// odd makes what is no file, by the word that errors use for it.
func odd(t *testing.T) map[string]string {
	t.Helper()
	dir, err := os.MkdirTemp("", "odd") // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	fifo, sock, link := filepath.Join(dir, "fifo"), filepath.Join(dir, "sock"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", sock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if err := os.Symlink("/dev/zero", link); err != nil {
		t.Fatal(err)
	}
	return map[string]string{fifo: "a FIFO", sock: "a socket", "/dev/zero": "a device", link: "a device", dir: "a folder"}
}

func TestOnlyRegularFiles(t *testing.T) {
	for path, kind := range odd(t) {
		_, err := Read(path, 10)
		if err == nil || !strings.Contains(err.Error(), kind+", not a file") || !strings.Contains(err.Error(), path) {
			t.Errorf("Read(%s): got %v, want an error that names it and says %s", path, err, kind)
		}
		if err := Append(path, []byte("x")); err == nil || !strings.Contains(err.Error(), kind) {
			t.Errorf("Append(%s): got %v, want an error that says %s", path, err, kind)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v, want %v", err, fs.ErrNotExist)
	}
}

// A history or a configuration that is a link to /dev/null is an empty one.
func TestNullDevice(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(os.DevNull, link); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(link, 10); err != nil || len(got) > 0 {
		t.Errorf("got %q (%v), want nothing", got, err)
	}
	if err := Append(link, []byte("x")); err != nil {
		t.Error(err)
	}
}

func TestLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, part := range []string{"12345", "67890"} {
		if err := Append(path, []byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Read(path, 10); err != nil || string(got) != "1234567890" {
		t.Errorf("got %q (%v), want ten bytes", got, err)
	}
	if got, err := Read(path, 9); err == nil || got != nil || !strings.Contains(err.Error(), "larger than 9 bytes") {
		t.Errorf("got %q (%v), want an error", got, err)
	}
	if err := os.Truncate(path, 1<<34); err != nil { // it takes no space
		t.Fatal(err)
	}
	if _, err := Read(path, Small); err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Errorf("a huge file: got %v, want an error", err)
	}
}
