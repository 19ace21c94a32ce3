//go:build unix

package jsonl

import (
	"errors"
	"io/fs"
	"syscall"
)

// openFlags: open does not follow a link, and does not block on a pipe in the
// place of a log.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

func statOf(fi fs.FileInfo) stat {
	s := stat{size: fi.Size(), mtime: fi.ModTime().UnixNano(), mode: fi.Mode()}
	if sys, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.ino = uint64(sys.Ino)
	}
	return s
}

// alive reports whether there is a process pid.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// readOnly reports whether err says that nothing can be written there.
func readOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
