// Package wholefile reads and replaces files whole. It reads regular files only,
// up to a limit: a FIFO in the place of a file must not hang the program, nor a
// device fill its memory.
package wholefile

import (
	"os"
	"path/filepath"
)

// Write makes data the content of the file path, which only its owner can
// read. It creates the folder if there is none. Whenever the program or the
// machine stops, the file has its old content or its new one.
func Write(path string, data []byte) error {
	dir, name := filepath.Split(filepath.Clean(path))
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
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
	if d, err := os.Open(dir); err == nil {
		d.Sync() // not every system can sync a folder
		d.Close()
	}
	return nil
}
