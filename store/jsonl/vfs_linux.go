package jsonl

import (
	"io/fs"
	"os"
	"syscall"
)

// lstat calls the system directly: a list does so for every log.
func (osDisk) lstat(name string) (stat, error) {
	var st syscall.Stat_t
	err := syscall.Lstat(name, &st)
	for err == syscall.EINTR {
		err = syscall.Lstat(name, &st)
	}
	if err != nil {
		return stat{}, &fs.PathError{Op: "lstat", Path: name, Err: err}
	}
	m := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFREG:
	case syscall.S_IFDIR:
		m |= fs.ModeDir
	case syscall.S_IFLNK:
		m |= fs.ModeSymlink
	case syscall.S_IFIFO:
		m |= fs.ModeNamedPipe
	default:
		m |= fs.ModeIrregular
	}
	return stat{ino: st.Ino, size: st.Size, mtime: st.Mtim.Nano(), mode: m}, nil
}

// datasync makes the bytes and the length of f durable, but not its times. That
// is less work than fsync.
func datasync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var sync error
	if err := c.Control(func(fd uintptr) {
		sync = syscall.Fdatasync(int(fd))
		for sync == syscall.EINTR {
			sync = syscall.Fdatasync(int(fd))
		}
	}); err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", sync)
}
