package sqlite

import (
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/store/sqlite/internal/files"
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
	if err != nil && flags&vfs.OPEN_WAL != 0 && files.Denied(err) {
		return r.VFSFilename.OpenFilename(name, flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE)|vfs.OPEN_READONLY)
	}
	return f, got, err
}
