//go:build unix

package tool

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const treasure = "the-treasure-outside"

// outside makes a directory that holds a secret and, in it, a workspace with
// links that lead out in every way.
func outside(t testing.TB) (base, ws string) {
	base = t.TempDir()
	ws = filepath.Join(base, "ws")
	put(t, filepath.Join(base, "secret"), treasure)
	put(t, filepath.Join(base, "ws-sibling", "secret"), treasure)
	put(t, filepath.Join(ws, "in", "file"), "inside")
	for link, to := range map[string]string{
		"abs-file":  filepath.Join(base, "secret"),
		"abs-dir":   base,
		"rel-file":  "../secret",
		"rel-dir":   "..",
		"in/up":     "../..",
		"chain":     "rel-dir/secret",
		"dangling":  "../made-outside",
		"proc":      "/proc/self/root",
		"proc-cwd":  "/proc/self/cwd",
		"self-twin": "../ws",
		"etc":       "/etc",
		"null":      "/dev/null",
		"zero":      "/dev/zero",
	} {
		if err := os.Symlink(to, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	return base, ws
}

// surroundings returns what is in base but not in the workspace.
func surroundings(t testing.TB, base, ws string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ws:
			return fs.SkipDir
		case d.Type().IsRegular():
			out[path] = get(t, path)
		default:
			out[path] = d.Type().String()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestNoEscape(t *testing.T) {
	base, ws := outside(t)
	s := open(t, Options{Workspace: ws, DisableBash: true}, nil)
	before := surroundings(t, base, ws)
	paths := []string{
		"..", "../secret", "in/../../secret", "./../secret", "in/file/../../../secret", "../ws-sibling/secret", "..//secret",
		base, filepath.Join(base, "secret"), ws + "/../secret", ws + "-sibling/secret", "/", "/etc/passwd", "//etc/passwd",
		"/proc/self/environ", "/proc/self/root/etc/passwd", "/proc/self/cwd/x", "/dev/zero", "/dev/null",
		"abs-file", "abs-dir", "abs-dir/secret", "rel-file", "rel-dir", "rel-dir/secret", "in/up/secret", "in/up", "chain", "dangling",
		"proc/etc/passwd", "proc-cwd/x", "self-twin/in/file", "etc/passwd", "null", "zero",
		"rel-dir/made/new", "in/up/made/new", "abs-dir/made/new",
		"~", "~/secret", "in\x00file", "in/file\x00", "\x00",
	}
	for _, p := range paths {
		t.Run(strings.ReplaceAll(p, "/", "_"), func(t *testing.T) {
			for name, args := range map[string]o{
				"read_file":      {"path": p},
				"list_directory": {"path": p, "depth": 3},
				"write_file":     {"path": p, "content": "overwritten"},
				"edit_file":      {"path": p, "old_string": "treasure", "new_string": "overwritten"},
			} {
				r := run(t, s, name, args)
				if !r.IsError {
					t.Errorf("%s succeeded: %s", name, r.Text())
				}
				if strings.Contains(r.Text(), treasure) || strings.Contains(r.Text(), "ws-sibling/\n") || strings.Contains(r.Text(), "root:") {
					t.Errorf("%s got out: %s", name, r.Text())
				}
			}
		})
	}
	if diff := cmp.Diff(before, surroundings(t, base, ws)); diff != "" {
		t.Errorf("something outside changed: %s", diff)
	}
	fails(t, s, "read_file", o{"path": "../secret"}, "../secret is outside the workspace "+ws)
	fails(t, s, "read_file", o{"path": "/etc/passwd"}, "/etc/passwd is outside the workspace")
	fails(t, s, "read_file", o{"path": "in\x00file"}, "NUL byte")
	fails(t, s, "read_file", o{"path": "~/x"}, "~ is not expanded")
	fails(t, s, "read_file", o{"path": "rel-file"}, "only files below the workspace")
}

// Absolute paths inside are taken, also where the workspace is reached by a
// link.
func TestAbsoluteInside(t *testing.T) {
	base := t.TempDir()
	put(t, filepath.Join(base, "real", "f"), "text")
	link := filepath.Join(base, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{Workspace: link}, nil)
	for _, p := range []string{"f", filepath.Join(link, "f"), filepath.Join(base, "real", "f"), link + "/./x/../f"} {
		if got := ok(t, s, "read_file", o{"path": p}); got != "text" {
			t.Errorf("%s: got %q", p, got)
		}
	}
	ok(t, s, "list_directory", o{"path": link})
}

// A directory that is swapped for a link to the outside, over and over while
// files in it are used, never lets anything through.
func TestNoEscapeBySwapping(t *testing.T) {
	base, ws := outside(t)
	s := open(t, Options{Workspace: ws, DisableBash: true}, map[string]string{"d/secret": "inside", "spare/secret": "inside"})
	put(t, filepath.Join(base, "target", "secret"), treasure)
	if err := os.Symlink("../target", filepath.Join(ws, "evil")); err != nil {
		t.Fatal(err)
	}
	before := surroundings(t, base, ws)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		at := func(n string) string { return filepath.Join(ws, n) }
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(at("d"), at("aside"))
			os.Rename(at("evil"), at("d"))
			os.Rename(at("d"), at("evil"))
			os.Rename(at("aside"), at("d"))
		}
	}()
	read, wrote := 0, 0
	// Longer where the machine is so busy that nothing has succeeded by then.
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond || (read == 0 || wrote == 0) && time.Since(begin) < time.Minute; {
		if r := run(t, s, "read_file", o{"path": "d/secret"}); !r.IsError {
			read++
			contains(t, r.Text(), "inside")
		}
		if r := run(t, s, "write_file", o{"path": "d/secret", "content": "inside"}); !r.IsError {
			wrote++
		}
		run(t, s, "list_directory", o{"path": "d"})
	}
	close(stop)
	<-stopped
	if read == 0 || wrote == 0 {
		t.Errorf("%d reads and %d writes succeeded: the test shows nothing", read, wrote)
	}
	if diff := cmp.Diff(before, surroundings(t, base, ws)); diff != "" {
		t.Errorf("something outside changed: %s", diff)
	}
}

// What is not a file is neither opened nor waited for.
func TestSpecialFiles(t *testing.T) {
	s := open(t, Options{}, nil)
	at := func(n string) string { return filepath.Join(s.ws.dir, n) }
	if err := syscall.Mkfifo(at("fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fifo", at("to-fifo")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	kinds := map[string]string{"fifo": "FIFO", "to-fifo": "FIFO", "sock": "socket"}
	switch err := mknod(at("dev")); {
	case err == nil:
		kinds["dev"] = "device"
	case !errors.Is(err, syscall.EPERM):
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for path, kind := range kinds {
			want := path + " is a " + kind + ", not a file"
			fails(t, s, "read_file", o{"path": path}, want)
			fails(t, s, "write_file", o{"path": path, "content": "x"}, want)
			fails(t, s, "edit_file", o{"path": path, "old_string": "a", "new_string": "b"}, want)
			fails(t, s, "list_directory", o{"path": path}, "not a directory")
			fails(t, s, "write_file", o{"path": path + "/below", "content": "x"}, "not a directory")
		}
		contains(t, ok(t, s, "list_directory", o{}), "fifo  FIFO\n", "sock  socket\n")
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a call hangs")
	}
	if info, err := os.Lstat(at("fifo")); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Error("the FIFO was replaced")
	}
}

// mknod makes the device that /dev/zero is.
func mknod(path string) error {
	var st syscall.Stat_t
	if err := syscall.Stat("/dev/zero", &st); err != nil {
		return syscall.EPERM
	}
	return syscall.Mknod(path, syscall.S_IFCHR|0o666, int(st.Rdev))
}

// A file that turns into a FIFO between the look and the open is not waited
// for either.
func TestOpenNeverBlocks(t *testing.T) {
	s := open(t, Options{}, nil)
	path := filepath.Join(s.ws.dir, "f")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.WriteFile(path+".file", []byte("x"), 0o644)
			os.Rename(path+".file", path)
			syscall.Mkfifo(path+".fifo", 0o644)
			os.Rename(path+".fifo", path)
		}
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			s.Run(t.Context(), call("read_file", o{"path": "f"}))
			s.Run(t.Context(), call("list_directory", o{"path": "f"}))
		}
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute): // 4000 calls
		t.Error("a call hangs")
	}
	close(stop)
	<-stopped
}

func TestWriteKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	s := open(t, Options{}, map[string]string{"f": "x"})
	path := filepath.Join(s.ws.dir, "f")
	if err := os.Chown(path, 1234, 1235); err != nil {
		t.Skip(err)
	}
	ok(t, s, "write_file", o{"path": "f", "content": "y"})
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if st.Uid != 1234 || st.Gid != 1235 {
		t.Errorf("owner is %d:%d, want 1234:1235", st.Uid, st.Gid)
	}
}

// Whatever the path, nothing outside is read or changed.
func FuzzPath(f *testing.F) {
	for _, p := range []string{"in/file", "../secret", "rel-dir/secret", "in/up/ws/in/file", "/etc/passwd", "a\x00b", "in//./file", "chain", "dangling/x", "~"} {
		f.Add(p)
	}
	base, ws := outside(f)
	s := open(f, Options{Workspace: ws, DisableBash: true}, nil)
	before := surroundings(f, base, ws)
	f.Fuzz(func(t *testing.T, p string) {
		if rel, err := s.ws.rel(p); err == nil && !filepath.IsLocal(rel) {
			t.Errorf("rel(%q) is %q", p, rel)
		}
		for name, args := range map[string]o{
			"read_file":      {"path": p},
			"list_directory": {"path": p},
			"write_file":     {"path": p, "content": "w"},
			"edit_file":      {"path": p, "old_string": "e", "new_string": "E"},
		} {
			r := run(t, s, name, args)
			if strings.Contains(r.Text(), treasure) || strings.Contains(r.Text(), "ws-sibling/\n") {
				t.Errorf("%s %q got out: %s", name, p, r.Text())
			}
		}
		if diff := cmp.Diff(before, surroundings(t, base, ws)); diff != "" {
			t.Errorf("%q: something outside changed: %s", p, diff)
		}
	})
}
