package wholefile

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Small is a limit for files that are kept by hand or by this program and are
// read into memory: far more than any of them needs.
const Small = 16 << 20

// Open opens a regular file for reading. A FIFO, a device, a socket or a folder
// in its place is an error, and does not make the caller wait. The null device
// is the exception: it is an empty file.
func Open(path string) (*os.File, error) {
	return open(path, os.O_RDONLY)
}

// Read returns what a file holds, which may be limit bytes at most. It opens
// the file as Open does.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	large := &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is larger than %s", size(limit))}
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if fi.Size() > limit {
		return nil, large
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // it may be growing
	if err == nil && int64(len(data)) > limit {
		return nil, large
	}
	return data, err
}

// Append adds data to the end of a file, in one write. It creates a missing
// file, which only its owner can read, and opens the file as Open does.
func Append(path string, data []byte) error {
	f, err := open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// open asks what the file is before it opens it, because opening a device can
// have effects, and again afterwards, because it may have been replaced.
func open(path string, flag int) (*os.File, error) {
	if fi, err := os.Stat(path); err == nil {
		if err := regular(path, fi); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil {
		err = regular(path, fi)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func regular(path string, fi fs.FileInfo) error {
	if fi.Mode().IsRegular() {
		return nil
	}
	if null, err := os.Stat(os.DevNull); err == nil && os.SameFile(fi, null) {
		return nil
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%s, not a file", KindOf(fi.Mode()))}
}

// KindOf names the kind of a non-regular file.
func KindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m.IsDir():
		return "a folder"
	}
	return "something else"
}

func size(n int64) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d bytes", n)
}
