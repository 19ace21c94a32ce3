// Package wholefile reads and replaces files whole, and makes the names of files
// and folders survive a power failure. It reads regular files only, up to a
// limit: a FIFO in the place of a file must not hang the program, nor a device
// fill its memory.
package wholefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Write makes data the content of the file path, which only its owner can
// read. It creates the folder if there is none. Whenever the program or the
// machine stops, the file has its old content or its new one.
func Write(path string, data []byte) error {
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	if err := Mkdir(dir); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return err
	}
	return SyncDir(dir)
}

// Mkdir makes the folder dir and its missing parents, which only their owner
// can read, and makes their names durable.
func Mkdir(dir string) error {
	var made []string // the parents of folders that are missing
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || filepath.Dir(d) == d {
			break
		}
		made = append(made, filepath.Dir(d))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range made {
		if err := SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// SyncDir makes durable which names there are in the folder dir. It does nothing
// where folders cannot be synced.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" || runtime.GOOS == "plan9" {
		return nil
	}
	d, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // files can be made in a folder that cannot be listed
	}
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // a file system that does not sync folders
	}
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
