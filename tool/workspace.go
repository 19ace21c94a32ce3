package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"goclaw/internal/memoryfiles"
)

// workspace is the directory that files are reached in. Whatever a path says,
// it is the os.Root that keeps it inside; the checks before it only give
// better messages.
type workspace struct {
	root  *os.Root
	dir   string
	bases []string // dir, and what it resolves to: absolute paths may begin with either
	fence Fence
	// memory is where the memory files are, whatever the workspace; it may be
	// this one.
	memory *workspace
	beside *readable
	prefix string // of names that are shown; "": they are relative to the workspace

	// writing is held by whoever changes a file. One lock for all files,
	// since two paths may be the same file (links, letter case).
	writing  chan struct{}
	patience time.Duration // how long to wait for another process
}

// find returns where path leads: to the memory files, or to the workspace
// itself; and its name there.
func (w *workspace) find(path string) (*workspace, string, error) {
	if !filepath.IsAbs(filepath.FromSlash(path)) || w.memory.holds(path) {
		if rel, err := w.memory.rel(path); err == nil && (memoryfiles.Is(filepath.ToSlash(rel)) || rel == memoryfiles.Dir) {
			return w.memory, rel, nil
		}
	}
	rel, err := w.rel(path)
	return w, rel, err
}

// holds reports whether an absolute path is below the workspace.
func (w *workspace) holds(path string) bool {
	_, err := w.rel(path)
	return err == nil
}

// isMemory reports whether the file target is a memory file.
func (w *workspace) isMemory(target string) bool {
	return w.memory == w && memoryfiles.Is(filepath.ToSlash(filepath.Clean(target)))
}

func (w *workspace) close() error {
	w.beside.close()
	if w.memory != w {
		w.memory.root.Close()
	}
	return w.root.Close()
}

// rel returns path relative to the workspace.
func (w *workspace) rel(path string) (string, error) {
	switch {
	case path == "":
		return "", errors.New("the path is empty")
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("%q is not a path: it holds a NUL byte", path)
	case path == "~" || strings.HasPrefix(path, "~/"):
		return "", fmt.Errorf("%s: ~ is not expanded; give a path relative to the workspace", quoted(path))
	}
	p := filepath.Clean(filepath.FromSlash(path))
	if filepath.IsAbs(p) {
		for _, base := range w.bases {
			if r, err := filepath.Rel(base, p); err == nil && filepath.IsLocal(r) {
				return r, nil
			}
		}
		return "", w.outside(path)
	}
	if !filepath.IsLocal(p) {
		return "", w.outside(path)
	}
	return p, nil
}

// permit refuses what rel leads to if it is private, whether it exists or not.
func (w *workspace) permit(rel string) error {
	if w.fence.Check(w.at(rel)) != nil {
		return refusal(rel)
	}
	return nil
}

// at returns the place of rel. It is not cleaned: see target.
func (w *workspace) at(rel string) string { return w.dir + string(filepath.Separator) + rel }

func (w *workspace) outside(path string) error {
	return fmt.Errorf("%s is outside the workspace %s; only files below it can be reached", quoted(path), w.dir)
}

// explain puts an error about the file rel into words for the model.
func (w *workspace) explain(rel string, err error) string {
	name := quoted(filepath.ToSlash(rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text := name + " does not exist"
		if near := w.similar(rel); near != "" {
			text += fmt.Sprintf("; did you mean %s?", near)
		}
		return text
	case errors.Is(err, fs.ErrPermission):
		return name + ": permission denied"
	case errors.Is(err, errChanged):
		return fmt.Sprintf("%s: %v: read it again", name, err)
	case errors.Is(err, syscall.ENOTDIR):
		return name + ": a part of the path is not a directory"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		// This is also how os.Root refuses a link that leads out.
		return fmt.Sprintf("%s: %v (only files below the workspace can be reached)", name, pe.Err)
	}
	return err.Error()
}

// similar looks for a name like rel's in its directory, or in the nearest one
// above it that exists.
func (w *workspace) similar(rel string) string {
	for rel != "." {
		dir, base := filepath.Split(rel)
		dir = filepath.Clean(dir)
		if info, err := w.root.Stat(dir); err == nil && info.IsDir() {
			f, err := w.root.OpenFile(dir, os.O_RDONLY|nonblock, 0)
			if err != nil {
				return ""
			}
			defer f.Close()
			names, err := f.Readdirnames(1000)
			if err != nil && err != io.EOF {
				return ""
			}
			near := nearest(base, names)
			if near == "" {
				return ""
			}
			return quoted(filepath.ToSlash(filepath.Join(dir, near)))
		}
		rel = dir
	}
	return ""
}

// open opens a regular file for reading. It asks what the file is before it
// opens it, since opening a device can have effects of its own; and it never
// waits for the other end of a FIFO, should one be put in the file's place.
func (w *workspace) open(rel string) (*os.File, fs.FileInfo, error) {
	if err := w.permit(rel); err != nil {
		return nil, nil, err
	}
	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(rel, info); err != nil {
		return nil, nil, err
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(rel, info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func regular(rel string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a directory; list_directory shows its entries", quoted(filepath.ToSlash(rel)))
	}
	return fmt.Errorf("%s is a %s, not a file", quoted(filepath.ToSlash(rel)), kind(info.Mode()))
}

// kind names a file that is neither a regular one nor a directory.
func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// lock waits until this process changes no other file.
func (w *workspace) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case w.writing <- struct{}{}:
		return func() { <-w.writing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// hold returns the file that rel leads to, see writable, and keeps other
// changes away from it until unlock is called: those of this process, and those
// of other processes that hold it too. With mkdir it creates missing folders.
//
// What is locked is the folder of the file. The lock needs no file of its own
// there, it outlasts a rename of the file, and the kernel releases it when the
// process ends, however it ends. The error is ctx's if that is done.
func (w *workspace) hold(ctx context.Context, rel string, mkdir bool) (target string, info fs.FileInfo, unlock func(), err error) {
	release, err := w.lock(ctx)
	if err != nil {
		return "", nil, nil, err
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	for range maxLinks {
		if target, info, err = w.writable(rel); err != nil {
			return "", nil, nil, err
		}
		dir, err := w.folder(target, mkdir)
		if errors.Is(err, fs.ErrNotExist) {
			return target, nil, release, nil // there is nothing to protect
		}
		if err != nil {
			return "", nil, nil, err
		}
		if err := w.lockFolder(ctx, rel, dir); err != nil {
			dir.Close()
			return "", nil, nil, err
		}
		// Another process may have changed the file, or the way to it, until
		// now.
		now, nowInfo, err := w.writable(rel)
		if err == nil && now == target && w.leadsTo(target, dir) {
			return target, nowInfo, func() { dir.Close(); release() }, nil
		}
		dir.Close()
		if err != nil {
			return "", nil, nil, err
		}
	}
	return "", nil, nil, fmt.Errorf("%s keeps moving", quoted(filepath.ToSlash(rel)))
}

// folder opens the folder of the file rel.
func (w *workspace) folder(rel string, mkdir bool) (*os.File, error) {
	dir := dirOf(rel)
	if mkdir {
		if err := w.root.MkdirAll(filepath.Clean(dir), 0o755); err != nil {
			return nil, err
		}
	}
	if info, err := w.root.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", quoted(filepath.ToSlash(dir)))
	}
	return w.root.OpenFile(dir, os.O_RDONLY|nonblock, 0)
}

// dirOf returns the folder of the file rel. It is not cleaned: see target.
func dirOf(rel string) string {
	if dir, _ := filepath.Split(rel); dir != "" {
		return dir
	}
	return "."
}

// leadsTo reports whether dir is still the folder of the file rel.
func (w *workspace) leadsTo(rel string, dir *os.File) bool {
	there, err := w.root.Stat(dirOf(rel))
	if err != nil {
		return false
	}
	here, err := dir.Stat()
	return err == nil && os.SameFile(here, there)
}

// lockFolder locks dir against other processes until it is closed. Where
// folders cannot be locked (Windows, some network file systems) it does nothing.
func (w *workspace) lockFolder(ctx context.Context, rel string, dir *os.File) error {
	const step = time.Millisecond
	for left := w.patience; ; left -= step {
		if taken := flock(dir); !taken {
			return nil
		}
		if left <= 0 {
			return fmt.Errorf("%s: another process has been changing files in its folder for %s; try again later", quoted(filepath.ToSlash(rel)), w.patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(step):
		}
	}
}

const maxLinks = 40

// target follows rel while it is a symbolic link, so that a write goes to the
// file a link names and leaves the link alone. The info is nil if there is no
// such file yet.
func (w *workspace) target(rel string) (string, fs.FileInfo, error) {
	for range maxLinks {
		info, err := w.root.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) {
			return rel, nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return rel, info, nil
		}
		to, err := w.root.Readlink(rel)
		if err != nil {
			return "", nil, err
		}
		if filepath.IsAbs(to) {
			return "", nil, fmt.Errorf("%s is a link to an absolute path, which is not followed", quoted(filepath.ToSlash(rel)))
		}
		// Not cleaned: what `..` means depends on the links before it, and
		// the root resolves those.
		dir, _ := filepath.Split(rel)
		rel = dir + to
	}
	return "", nil, fmt.Errorf("%s: more than %d links", quoted(filepath.ToSlash(rel)), maxLinks)
}

// temps tells the temporary files of this process apart.
var temps atomic.Int64

// errChanged: the file is not the one that was read.
var errChanged = errors.New("the file was changed by another program in the meantime")

// replace writes data to the file rel, which has the given info or, if nil,
// does not exist yet. Readers see the old file or the new one, never a part.
// An existing file keeps its mode and, where that is allowed, its owner. The
// caller holds the file. If the file is not as info says any more, because a
// program that does not know the lock wrote to it, the error is errChanged.
func (w *workspace) replace(rel string, info fs.FileInfo, data []byte) error {
	dir, base := dirOf(rel), filepath.Base(rel)
	if err := w.root.MkdirAll(filepath.Clean(dir), 0o755); err != nil {
		return err
	}
	// Both names live in one open directory: swapping a directory for a link
	// in the meantime changes nothing.
	if di, err := w.root.Stat(dir); err != nil {
		return err
	} else if !di.IsDir() {
		return fmt.Errorf("%s is not a directory", quoted(filepath.ToSlash(dir)))
	}
	d, err := w.root.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer d.Close()

	mode := fs.FileMode(0o644)
	if info != nil {
		mode = 0o600 // until it has the old file's mode
	}
	tmp, f, err := create(d, mode)
	if err != nil {
		return err
	}
	err = fill(f, info, data)
	if err == nil && !same(d, base, info) {
		err = errChanged
	}
	if err == nil {
		err = d.Rename(tmp, base)
	}
	if err != nil {
		d.Remove(tmp)
		return err
	}
	syncDir(d)
	return nil
}

// same reports whether the file base in d is as info says, or, if that is nil,
// whether there is none.
func same(d *os.Root, base string, info fs.FileInfo) bool {
	now, err := d.Lstat(base)
	if err != nil || info == nil {
		return info == nil && errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(now, info) && now.Size() == info.Size() && now.ModTime().Equal(info.ModTime())
}

// extend adds data at the end of the file rel, on a line of its own, in one
// write that no other appender can come between. It returns the size of the
// file before and after; before is -1 if there was none. A file that has
// several names is not written to but replaced, since the others may lie
// outside the workspace. The caller holds the file.
func (w *workspace) extend(rel string, info fs.FileInfo, data string) (before, after int64, err error) {
	if info != nil && links(info) > 1 {
		old, _, err := w.readAll(rel)
		if err != nil {
			return 0, 0, err
		}
		all := append(old, separate(old, data)...)
		return int64(len(old)), int64(len(all)), w.replace(rel, info, all)
	}
	flag := os.O_RDWR | os.O_APPEND | nonblock
	if before = -1; info == nil {
		flag |= os.O_CREATE | os.O_EXCL
	}
	f, err := w.root.OpenFile(rel, flag, 0o644)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	last := make([]byte, 1)
	if info != nil {
		if !os.SameFile(info, now) || links(now) > 1 {
			return 0, 0, errChanged
		}
		if before = now.Size(); before > 0 {
			if _, err := f.ReadAt(last, before-1); err != nil {
				return 0, 0, err
			}
			data = separate(last, data)
		}
	}
	n, err := io.WriteString(f, data)
	if err == nil {
		err = f.Sync()
	} else if now, serr := f.Stat(); serr == nil && n > 0 && now.Size() == max(before, 0)+int64(n) {
		f.Truncate(max(before, 0)) // a full disk leaves no half of a note
	}
	return before, max(before, 0) + int64(n), err
}

// separate returns data as it follows text: on a new line.
func separate(text []byte, data string) string {
	if n := len(text); n > 0 && text[n-1] != '\n' {
		return "\n" + data
	}
	return data
}

func create(d *os.Root, mode fs.FileMode) (string, *os.File, error) {
	for {
		name := fmt.Sprintf(".goclaw-%d-%d.tmp", os.Getpid(), temps.Add(1))
		f, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue // left by an earlier process with this number
		}
		return name, f, err
	}
}

func fill(f *os.File, info fs.FileInfo, data []byte) error {
	_, err := f.Write(data)
	if err == nil && info != nil {
		keepOwner(f, info)
		err = f.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// syncDir makes a rename durable, where directories can be synced.
func syncDir(d *os.Root) {
	if f, err := d.Open("."); err == nil {
		f.Sync()
		f.Close()
	}
}
