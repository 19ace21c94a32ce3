package main

import (
	"time"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
)

// slowVFS is the operating system's file system, with syncs that take slowSync
// longer, as on the disks that clouds rent out.
const (
	slowVFS  = "slow"
	slowSync = 5 * time.Millisecond
)

func init() {
	if os, ok := vfs.Find("").(vfs.VFSFilename); ok {
		vfs.Register(slowVFS, slow{os})
	}
}

type slow struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename.
func (s slow) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := s.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, got, err
	}
	return slowFile{f}, got, nil
}

type slowFile struct{ vfs.File }

// Sync implements vfs.File.
func (f slowFile) Sync(flags vfs.SyncFlag) error {
	time.Sleep(slowSync)
	return f.File.Sync(flags)
}

// A write-ahead log needs these methods of the wrapped file.
func (f slowFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f slowFile) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f slowFile) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }
