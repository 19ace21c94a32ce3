package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Problem is something that could not be read, or does not fit.
type Problem struct {
	Path string
	Line int // 0: none
	What string
	// Unread: there may be sessions in it that were not seen; otherwise all
	// were seen and this is informational.
	Unread bool
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.What)
	}
	return p.Path + ": " + p.What
}

// Unreadable says why what is at path could not be read, and what can be done.
func Unreadable(path string, err error) Problem {
	out := Problem{Path: path, What: err.Error(), Unread: true}
	var p *fs.PathError
	if errors.As(err, &p) {
		out.What = p.Err.Error()
		if p.Path == path+"-wal" {
			out.Path = p.Path
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		out.What = "permission denied: " + allow(out.Path)
	}
	return out
}

// allow says how path, or the folder above it that is closed, can be opened.
func allow(path string) string {
	if real, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(real) {
			real = filepath.Join(filepath.Dir(path), real)
		}
		path = real
	}
	fi, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		fi, err = os.Stat(path)
	}
	if err != nil {
		return "it is closed to you"
	}
	bits := "r"
	if fi.IsDir() {
		bits = "rx"
	}
	if uid, ok := owner(fi); ok && uid != os.Geteuid() {
		return fmt.Sprintf("it belongs to another user (%d): run goclaw as that user, or have them do: chmod o+%s %s", uid, bits, path)
	}
	return fmt.Sprintf("to read it, do: chmod u+%s %s", bits, path)
}
