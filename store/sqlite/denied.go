package sqlite

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3/vfs"
)

// readVFS is the VFS for databases without write permission. It opens their
// write-ahead log for reading, which SQLite's own VFS does not.
const readVFS = "goclaw-read"

func init() {
	if os, ok := vfs.Find("").(vfs.VFSFilename); ok {
		vfs.Register(readVFS, reading{os})
	}
}

type reading struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename.
func (r reading) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := r.VFSFilename.OpenFilename(name, flags)
	if err != nil && flags&vfs.OPEN_WAL != 0 && denied(err) {
		return r.VFSFilename.OpenFilename(name, flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE)|vfs.OPEN_READONLY)
	}
	return f, got, err
}

// denied reports whether err means that there is no permission to write.
func denied(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
