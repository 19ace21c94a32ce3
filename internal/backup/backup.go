// Package backup keeps a store and the memory files in one archive: a zip file
// with a manifest that has the checksum of every file in it.
package backup

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/internal/wholefile"
)

// Manifest says what an archive holds. Other programs read it.
type Manifest struct {
	Format   string    `json:"format"`
	Made     time.Time `json:"made"`
	Store    string    `json:"store"`            // sqlite or jsonl
	Layout   string    `json:"layout,omitempty"` // of a jsonl store
	Sessions int       `json:"sessions"`         // those in the trash as well
	Trashed  int       `json:"trashed"`
	Records  int       `json:"records"`
	Sum      string    `json:"recordsSha256,omitempty"` // of the records of a database
	Files    []File    `json:"files"`
}

// File is one file in an archive.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	format   = "goclaw backup 1"
	manifest = "manifest.json"
	// Database is the name of the store in an archive, if it is a database.
	Database = "sessions.db"
	// Logs is the folder of the store, if it is one of files.
	Logs = "sessions/"
	// Memory is the folder of the memory files.
	Memory = "memory-files/"
)

// Writer writes an archive.
type Writer struct {
	Manifest
	// Progress is told how many bytes were added, or read back. It may be nil.
	Progress func(n int)
	path     string
	file     *os.File // has a temporary name
	zip      *zip.Writer
}

// Create begins the archive path, which must not exist yet. There is no file of
// that name until Finish has succeeded.
func Create(path string) (*Writer, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s exists already: choose another name", path)
	}
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	f, err := os.CreateTemp(dir, "."+name+".*")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s cannot be written: there is no folder %s", path, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	return &Writer{Manifest: Manifest{Format: format}, path: path, file: f, zip: zip.NewWriter(f)}, nil
}

// Add adds a file.
func (w *Writer) Add(ctx context.Context, name string, r io.Reader) error {
	to, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.Made})
	if err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), stoppable{ctx, r, w.Progress})
	if err != nil {
		return err
	}
	w.Files = append(w.Files, File{name, n, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// stoppable is a reader that ctx stops, and that tells how much was read.
type stoppable struct {
	ctx context.Context
	io.Reader
	told func(n int) // or nil
}

func (s stoppable) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.Reader.Read(b)
	if s.told != nil && n > 0 {
		s.told(n)
	}
	return n, err
}

// Finish writes the manifest, reads everything back and compares it, makes the
// archive durable and gives it its name. It returns its size.
func (w *Writer) Finish(ctx context.Context) (size int64, err error) {
	defer w.Drop()
	text, err := json.MarshalIndent(w.Manifest, "", "  ")
	if err != nil {
		return 0, err
	}
	to, err := w.zip.CreateHeader(&zip.FileHeader{Name: manifest, Method: zip.Deflate, Modified: w.Made})
	if err != nil {
		return 0, err
	}
	if _, err := to.Write(append(text, '\n')); err != nil {
		return 0, err
	}
	if err := errors.Join(w.zip.Close(), w.file.Sync()); err != nil {
		return 0, err
	}
	if size, err = w.file.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	a, err := read(w.file, size)
	if err == nil {
		a.Progress = w.Progress
		err = a.Verify(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("what was written cannot be read back: %w", err)
	}
	if err := rename(w.file.Name(), w.path); err != nil {
		return 0, err
	}
	return size, wholefile.SyncDir(filepath.Dir(w.path))
}

// rename gives the file from the name to, which no file may have.
func rename(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: choose another name", to)
	}
	if err != nil { // not every file system has links
		return os.Rename(from, to)
	}
	return os.Remove(from)
}

// Drop gives up an archive that is not finished.
func (w *Writer) Drop() {
	w.file.Close()
	os.Remove(w.file.Name())
}

// Archive is an archive that is read.
type Archive struct {
	Manifest
	// Progress is told how many bytes were compared or extracted. It may be nil.
	Progress func(n int)

	zip  *zip.Reader
	file io.Closer
}

// Open opens the archive path.
func Open(path string) (*Archive, error) {
	fi, err := os.Stat(path)
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a backup of goclaw: it is not a file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := read(f, fi.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is not a backup of goclaw, or it is damaged: %w", path, err)
	}
	a.file = f
	return a, nil
}

func read(f io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(f, size)
	if err != nil {
		return nil, err
	}
	m, err := z.Open(manifest)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	a := &Archive{zip: z}
	if err := json.NewDecoder(io.LimitReader(m, 1<<30)).Decode(&a.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", manifest, err)
	}
	if a.Format != format {
		return nil, fmt.Errorf("its format is %q, this version knows %q", a.Format, format)
	}
	return a, nil
}

// Close closes the archive.
func (a *Archive) Close() error { return a.file.Close() }

// Verify reads every file and compares it with the manifest.
func (a *Archive) Verify(ctx context.Context) error {
	names := map[string]bool{manifest: true}
	for _, f := range a.Files {
		if err := a.copy(ctx, io.Discard, f); err != nil {
			return err
		}
		names[f.Name] = true
	}
	for _, f := range a.zip.File {
		if !names[f.Name] {
			return fmt.Errorf("%s is not in the manifest", f.Name)
		}
	}
	return nil
}

// copy writes the file f to w and compares it with the manifest.
func (a *Archive) copy(ctx context.Context, w io.Writer, f File) error {
	r, err := a.zip.Open(f.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), stoppable{ctx, io.LimitReader(r, f.Size+1), a.Progress})
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	if n != f.Size || hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%s: its content is not what the manifest says", f.Name)
	}
	return nil
}

// Size returns how many bytes the files have.
func (m *Manifest) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// Below returns the files whose names begin with prefix. Their names, without
// prefix, are paths inside a folder.
func (a *Archive) Below(prefix string) (files []File, err error) {
	for _, f := range a.Files {
		rest, ok := strings.CutPrefix(f.Name, prefix)
		if !ok {
			continue
		}
		if rest != "" && !filepath.IsLocal(filepath.FromSlash(rest)) {
			return nil, fmt.Errorf("%q is not a path inside a folder", f.Name)
		}
		files = append(files, f)
	}
	return files, nil
}

// Same reports whether the file path has the content of f.
func (a *Archive) Same(ctx context.Context, f File, path string) (bool, error) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() != f.Size {
		return false, err
	}
	r, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer r.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, stoppable{ctx, r, nil}); err != nil {
		return false, err
	}
	return hex.EncodeToString(sum.Sum(nil)) == f.SHA256, nil
}

// Extract writes the file f to path, which must not exist, durably.
func (a *Archive) Extract(ctx context.Context, f File, path string) error {
	dir := filepath.Dir(path)
	if err := wholefile.Mkdir(dir); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = a.copy(ctx, to, f)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return wholefile.SyncDir(dir)
}
