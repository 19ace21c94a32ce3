// Package pages reads the tables of an SQLite file without SQLite: page by page,
// whatever else in the file is damaged. It knows leaf pages of tables, overflow
// pages, the list of free pages and the write-ahead log
// (https://sqlite.org/fileformat2.html).
//
// It believes nothing that it reads: any bytes give rows or no rows, never a
// panic, and no more memory than the file has bytes. Whoever uses a row checks
// that it makes sense.
package pages

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"os"
	"time"

	"goclaw/internal/wholefile"
)

// File is an SQLite file that is read page by page. Nothing is written, locked
// or created.
type File struct {
	// Header is the first 100 bytes of the first page, as the log has it, if they
	// are an SQLite header, else nil.
	Header  []byte
	db, wal *os.File // wal is nil if there is none
	dbSize  int64
	size    int64 // of a page
	log     log
	written [2]stamp // of db and wal, when they were opened
	round   []byte   // the header of wal then
	bounds  map[uint32]bound
}

// stamp is when and how large a file was last written.
type stamp struct {
	size int64
	at   time.Time
}

const (
	magic      = "SQLite format 3\x00"
	headerSize = 100
	minPage    = 512
	maxPage    = 65536
)

// maxPayload is the largest row that is read. A record has at most 32 MiB.
const maxPayload = 64 << 20

// Open opens the file at path and the write-ahead log next to it. One of them may
// be missing.
func Open(path string) (*File, error) {
	f := &File{}
	err := f.open(path)
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *File) open(path string) (err error) {
	missing := error(nil)
	if f.db, missing = wholefile.Open(path); missing != nil && !errors.Is(missing, os.ErrNotExist) {
		return missing
	}
	f.wal, err = wholefile.Open(path + "-wal")
	if err != nil && (missing != nil || !errors.Is(err, os.ErrNotExist)) {
		return cmp.Or(missing, err)
	}
	if f.written, err = f.stamps(); err != nil {
		return err
	}
	f.dbSize = f.written[0].size
	head := f.read(f.db, 0, headerSize)
	f.size = headerPage(head)
	if !bytes.HasPrefix(head, []byte(magic)) || f.size == 0 {
		f.size = 0
		if f.wal != nil {
			f.size = logPage(f.read(f.wal, 0, logHeader))
		}
		if f.size == 0 {
			f.size = f.guess()
		}
	}
	f.round = f.read(f.wal, 0, logHeader)
	if f.wal != nil {
		f.log = f.readLog()
	}
	if first := f.page(1, false); bytes.HasPrefix(first, []byte(magic)) {
		f.Header = first[:headerSize]
	}
	return nil
}

// Close closes the files.
func (f *File) Close() error {
	var err error
	for _, file := range []*os.File{f.db, f.wal} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

func (f *File) stamps() (s [2]stamp, err error) {
	for i, file := range []*os.File{f.db, f.wal} {
		if file == nil {
			continue
		}
		st, err := file.Stat()
		if err != nil {
			return s, err
		}
		s[i] = stamp{st.Size(), st.ModTime()}
	}
	return s, nil
}

// PageSize returns the size of a page in bytes.
func (f *File) PageSize() int64 { return f.size }

// Changed reports whether the file was written since it was opened.
func (f *File) Changed() bool {
	now, err := f.stamps()
	return err != nil || now != f.written
}

// Overwritten reports whether something else may lie where the file had its pages when
// it was opened. That is not so as long as the write-ahead log only grows.
func (f *File) Overwritten() bool {
	now, err := f.stamps()
	return err != nil || now[0] != f.written[0] || now[1].size < f.written[1].size || !bytes.Equal(f.read(f.wal, 0, logHeader), f.round)
}

// Drops reports whether SQLite would drop whole frames of the write-ahead log,
// because one before them, or the header, is damaged.
func (f *File) Drops() bool { return f.log.followed }

// read returns n bytes at off. What cannot be read is zero.
func (f *File) read(from *os.File, off, n int64) []byte {
	b := make([]byte, n)
	_, _ = from.ReadAt(b, off) // a short read, or no file, leaves zeros
	return b
}

// headerPage returns the size of a page according to the header of a database, 0
// if it makes no sense.
func headerPage(h []byte) int64 {
	size := int64(binary.BigEndian.Uint16(h[16:]))
	if size == 1 {
		size = maxPage
	}
	return sane(size)
}

// sane returns size, or 0 if no page has that size.
func sane(size int64) int64 {
	if size < minPage || size > maxPage || bits.OnesCount64(uint64(size)) != 1 {
		return 0
	}
	return size
}

// guess returns the size of a page for which most cells can be read at the
// beginning of the file. goclaw itself writes pages of 4096 bytes.
func (f *File) guess() int64 {
	const look = 8 << 20
	best, most := int64(4096), 0
	for size := int64(minPage); size <= maxPage; size *= 2 {
		cells := 0
		f.size = size
		for off := int64(0); off < min(f.dbSize, look); off += size {
			p := f.read(f.db, off, size)
			if p[0] != tableLeaf {
				continue
			}
			for _, c := range f.cells(p, 0) {
				if sound(p[c.at:c.at+c.local], c.size) {
					cells++
				}
			}
		}
		if cells > most {
			best, most = size, cells
		}
	}
	return best
}

// pages returns how many pages the database has, the last of which may be cut.
func (f *File) pages() uint32 {
	return uint32(min((f.dbSize+f.size-1)/f.size, 1<<32-2))
}

// page returns page n: from the write-ahead log if it is there, and if fresh,
// from its latest frame, whether it is whole and committed or not. It is nil if
// there is no such page.
func (f *File) page(n uint32, fresh bool) []byte {
	if n == 0 {
		return nil
	}
	if at, ok := f.log.frame(n, fresh); ok {
		return f.read(f.wal, at, f.size)
	}
	if n > f.pages() {
		return nil
	}
	return f.read(f.db, int64(n-1)*f.size, f.size)
}
