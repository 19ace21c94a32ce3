package main

import (
	"time"

	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"

	"goclaw/store/storetest"
)

// slowVFS is the operating system with syncs that take longer.
const slowVFS = "slow"

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
	time.Sleep(storetest.SlowSync)
	return f.File.Sync(flags)
}

// A write-ahead log needs these of the file below.
func (f slowFile) SharedMemory() vfs.SharedMemory { return vfsutil.WrapSharedMemory(f.File) }
func (f slowFile) PersistWAL() bool               { return vfsutil.WrapPersistWAL(f.File) }
func (f slowFile) SetPersistWAL(keep bool)        { vfsutil.WrapSetPersistWAL(f.File, keep) }
