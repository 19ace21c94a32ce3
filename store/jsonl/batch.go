package jsonl

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A batch file holds what is being appended to a log:
//
//	"goclaw batch 1\n", the log's size, the length of its path, the length of
//	the batch (8 bytes each), path, batch, CRC-32C
const batchMagic = "goclaw batch 1\n"

func (l *log) batchPath() string { return l.own(lockName(l.id) + ".batch") }

// writeBatch makes buf durable, which is about to be written at offset old of
// the log.
func (l *log) writeBatch(old int64, buf []byte) (string, error) {
	rel := l.at().rel
	b := []byte(batchMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(old))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(rel)))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(buf)))
	b = append(append(b, rel...), buf...)
	b = binary.LittleEndian.AppendUint32(b, checksum(b))
	name := l.batchPath()
	if err := writeFile(l.disk, name, b, true); err != nil {
		return name, err
	}
	if err := l.disk.syncDir(filepath.Dir(name)); err != nil {
		return name, err
	}
	return name, l.durable(filepath.Dir(name))
}

// readBatch returns the contents of a batch file. ok is false if it is not
// complete: then nothing of it was written to the log.
func readBatch(b []byte) (rel string, old int64, buf []byte, ok bool) {
	const fixed = len(batchMagic) + 24
	if len(b) < fixed+4 || string(b[:len(batchMagic)]) != batchMagic {
		return "", 0, nil, false
	}
	end := len(b) - 4
	if checksum(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return "", 0, nil, false
	}
	n := b[len(batchMagic):]
	size, path, length := binary.LittleEndian.Uint64(n), binary.LittleEndian.Uint64(n[8:]), binary.LittleEndian.Uint64(n[16:])
	b = b[fixed:end]
	if path > uint64(len(b)) || length != uint64(len(b))-path {
		return "", 0, nil, false
	}
	return string(b[:path]), int64(size), b[path:], true
}

// recover completes or drops a batch that a crash has interrupted. The caller
// holds the lock.
func (l *log) recover() error {
	name := l.batchPath()
	if _, err := l.disk.lstat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("jsonl: %w", err)
	}
	b, _, err := readFile(l.disk, name)
	if err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	if rel, old, buf, ok := readBatch(b); ok && filepath.IsLocal(rel) {
		if err := l.redo(l.path(rel), old, buf); err != nil {
			return fmt.Errorf("jsonl: complete an append to session %q: %w", l.id, err)
		}
	}
	if err := l.disk.remove(name); err != nil {
		return fmt.Errorf("jsonl: %w", err)
	}
	return nil
}

// redo appends to the file path the missing part of buf, which belongs at old.
// If nothing of buf is there, readers may have seen the log without it: it is
// dropped. A file that is shorter, or has other bytes there, was changed by
// another program since: it is left alone.
func (r *root) redo(path string, old int64, buf []byte) error {
	f, err := r.disk.open(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.stat()
	if err != nil || st.size <= old || st.size >= old+int64(len(buf)) {
		return err
	}
	have := make([]byte, st.size-old)
	if _, err := f.ReadAt(have, old); err != nil {
		return err
	}
	same := 0
	for same < len(have) && have[same] == buf[same] {
		same++
	}
	if rest := have[same:]; len(rest) > 0 {
		// Some file systems leave zeros for bytes that a crash has lost.
		if len(bytes.Trim(rest, "\x00")) > 0 {
			return nil
		}
		if err := f.Truncate(old + int64(same)); err != nil {
			return err
		}
	}
	if _, err := f.Write(buf[same:]); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if old == 0 {
		return r.disk.syncDir(filepath.Dir(path))
	}
	return nil
}
