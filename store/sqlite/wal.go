package sqlite

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3/vfs"
)

// gatherVFS is the operating system with one difference: what SQLite writes
// to a write-ahead log on behalf of one transaction, two writes for each page,
// reaches the file as one write, when SQLite has the log synced.
//
// For that every connection must have synchronous=FULL: then SQLite syncs the
// log at the end of each transaction, before anybody is told that it is there.
// And what was gathered for a transaction that is rolled back must be dropped:
// SQLite does not tell the log, and others may write there next. So each
// connection has a number, and says so to its log by it.
const gatherVFS = "goclaw-gather"

// connParam is the parameter with the number of a connection.
const connParam = "conn"

var (
	conns atomic.Int64
	logs  sync.Map // *walFile by the number of its connection
)

// nextConn returns the number of a new connection.
func nextConn() string { return strconv.FormatInt(conns.Add(1), 10) }

// rolledBack says that the connection has rolled back.
func rolledBack(conn string) {
	if f, ok := logs.Load(conn); ok {
		f.(*walFile).kept = f.(*walFile).kept[:0]
	}
}

func init() {
	if os, ok := vfs.Find("").(vfs.VFSFilename); ok {
		vfs.Register(gatherVFS, gathering{os})
	}
}

type gathering struct{ vfs.VFSFilename }

// OpenFilename implements vfs.VFSFilename.
func (g gathering) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, got, err := g.VFSFilename.OpenFilename(name, flags)
	if conn := name.URIParameter(connParam); err == nil && conn != "" && flags&vfs.OPEN_WAL != 0 && flags&vfs.OPEN_READWRITE != 0 {
		w := &walFile{File: f, conn: conn}
		logs.Store(conn, w)
		f = w
	}
	return f, got, err
}

// walFile is a write-ahead log whose writes are gathered.
type walFile struct {
	vfs.File
	conn string
	at   int64  // where kept belongs
	kept []byte // not yet written
}

// maxKept is how much is gathered.
const maxKept = 256 << 10

// flush writes what was gathered. It is kept no longer, even if that fails:
// SQLite gives the transaction up then.
func (f *walFile) flush() error {
	if len(f.kept) == 0 {
		return nil
	}
	b := f.kept
	f.kept = f.kept[:0]
	_, err := f.File.WriteAt(b, f.at)
	return err
}

// WriteAt implements io.WriterAt.
func (f *walFile) WriteAt(p []byte, off int64) (int, error) {
	if off != f.at+int64(len(f.kept)) || len(f.kept)+len(p) > maxKept {
		if err := f.flush(); err != nil {
			return 0, err
		}
	}
	if len(f.kept) == 0 {
		f.at = off
	}
	f.kept = append(f.kept, p...)
	return len(p), nil
}

// ReadAt implements io.ReaderAt.
func (f *walFile) ReadAt(p []byte, off int64) (int, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, off)
}

// Truncate implements vfs.File.
func (f *walFile) Truncate(size int64) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync implements vfs.File.
func (f *walFile) Sync(flags vfs.SyncFlag) error {
	if err := f.flush(); err != nil {
		return err
	}
	return f.File.Sync(flags)
}

// Size implements vfs.File.
func (f *walFile) Size() (int64, error) {
	if err := f.flush(); err != nil {
		return 0, err
	}
	return f.File.Size()
}

// Close implements vfs.File. What is left belongs to no transaction that was
// ended.
func (f *walFile) Close() error {
	f.kept = nil
	logs.CompareAndDelete(f.conn, f)
	return f.File.Close()
}
