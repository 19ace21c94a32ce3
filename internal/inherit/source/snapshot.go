package source

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"goclaw/internal/wholefile"
	"io"
	"io/fs"
	"os"
)

// snapshot is a database as it was at one moment, its write-ahead log
// included, read without SQLite's own files and locks: the owner may continue
// writing, and nothing is created next to the database.
//
// Frames that are appended to the log later are not seen. Pages that the owner
// copies from its log into the database, or overwrites, could be seen: a reader
// must call current afterwards, and read again if it is not.
type snapshot struct {
	db, wal  *os.File // wal is nil if there is none
	stat     Stat
	size     int64 // of the database, as of the last commit
	pageSize int64
	frames   map[uint32]int64 // where in the log the latest page of that number is
	walHead  [walHeader]byte
}

const (
	walHeader   = 32
	frameHeader = 24
)

func openSnapshot(path string) (*snapshot, error) {
	db, err := wholefile.Open(path)
	if err != nil {
		return nil, err
	}
	s := &snapshot{db: db, frames: map[uint32]int64{}}
	if err := s.load(path); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *snapshot) close() {
	s.db.Close()
	if s.wal != nil {
		s.wal.Close()
	}
}

func (s *snapshot) load(path string) error {
	fi, err := s.db.Stat()
	if err != nil {
		return err
	}
	s.stat, s.size = StatOf(fi), fi.Size()
	head := make([]byte, 100)
	if _, err := s.db.ReadAt(head, 0); err != nil || !bytes.HasPrefix(head, []byte(magic)) {
		return fmt.Errorf("%s is not an SQLite database", path)
	}
	if s.pageSize = int64(binary.BigEndian.Uint16(head[16:])); s.pageSize == 1 {
		s.pageSize = 65536
	}
	s.wal, err = wholefile.Open(path + "-wal")
	if err != nil {
		s.wal = nil
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	wi, err := s.wal.Stat()
	if err != nil {
		return err
	}
	s.stat.Extra = wi.Size()*31 + wi.ModTime().UnixNano()
	return s.loadLog()
}

const magic = "SQLite format 3\x00"

// loadLog finds the pages of every commit that is whole, as SQLite does: the
// salts must be the header's and the checksums must hold.
func (s *snapshot) loadLog() error {
	if _, err := s.wal.ReadAt(s.walHead[:], 0); err != nil {
		return nil // not begun
	}
	h := s.walHead[:]
	var order binary.ByteOrder = binary.LittleEndian
	switch binary.BigEndian.Uint32(h) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return nil
	}
	if int64(binary.BigEndian.Uint32(h[8:])) != s.pageSize {
		return nil
	}
	a, b := checksum(order, 0, 0, h[:24])
	if a != binary.BigEndian.Uint32(h[24:]) || b != binary.BigEndian.Uint32(h[28:]) {
		return nil
	}
	pending := map[uint32]int64{}
	frame := make([]byte, frameHeader+s.pageSize)
	for at := int64(walHeader); ; at += int64(len(frame)) {
		if _, err := io.ReadFull(io.NewSectionReader(s.wal, at, int64(len(frame))), frame); err != nil {
			return nil
		}
		if !bytes.Equal(frame[8:16], h[16:24]) {
			return nil
		}
		a, b = checksum(order, a, b, frame[:8])
		a, b = checksum(order, a, b, frame[frameHeader:])
		if a != binary.BigEndian.Uint32(frame[16:]) || b != binary.BigEndian.Uint32(frame[20:]) {
			return nil
		}
		pending[binary.BigEndian.Uint32(frame)] = at + frameHeader
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 {
			for p, off := range pending {
				s.frames[p] = off
			}
			clear(pending)
			s.size = int64(pages) * s.pageSize
		}
	}
}

func checksum(order binary.ByteOrder, a, b uint32, data []byte) (uint32, uint32) {
	for i := 0; i+8 <= len(data); i += 8 {
		a += order.Uint32(data[i:]) + b
		b += order.Uint32(data[i+4:]) + a
	}
	return a, b
}

// current reports whether nothing that was read can have changed.
func (s *snapshot) current() bool {
	fi, err := s.db.Stat()
	if err != nil || fi.Size() != s.stat.Size || fi.ModTime().UnixNano() != s.stat.MTime {
		return false
	}
	if s.wal == nil {
		return true
	}
	var h [walHeader]byte
	_, err = s.wal.ReadAt(h[:], 0)
	return (err == nil || len(s.frames) == 0) && (h == s.walHead || len(s.frames) == 0)
}

// Size implements ioutil.SizeReaderAt.
func (s *snapshot) Size() (int64, error) { return s.size, nil }

// ReadAt implements io.ReaderAt. The database says of itself that it has no
// write-ahead log: it is in here.
func (s *snapshot) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && off < s.size {
		page := uint32(off/s.pageSize) + 1
		in := off % s.pageSize
		part := p[n:min(len(p), n+int(s.pageSize-in))]
		if at, ok := s.frames[page]; ok {
			_, err = s.wal.ReadAt(part, at+in)
		} else {
			_, err = s.db.ReadAt(part, off)
		}
		if err != nil {
			return n, err
		}
		for i := int64(18); i < 20; i++ {
			if k := i - off; k >= 0 && k < int64(len(part)) {
				part[k] = 1
			}
		}
		n += len(part)
		off += int64(len(part))
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// IsDatabase reports whether the file at path is a database.
func IsDatabase(path string) bool {
	f, err := wholefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, len(magic))
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) == magic
}
