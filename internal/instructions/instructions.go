// Package instructions finds what a person has written down for agents:
// AGENTS.md, or CLAUDE.md where there is none, in the folder of a session, in
// the folders above it up to the root of the repository, and in the home; skills
// (folders with a SKILL.md); and prompt templates (Markdown files).
package instructions

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"goclaw/internal/text"
)

// names are the names of such a file; of several in one folder the first counts.
var names = []string{"AGENTS.md", "CLAUDE.md"}

// homes are where a person's own instructions may be, below the home; the first
// that there is counts.
var homes = []string{"AGENTS.md", ".config/AGENTS.md", ".codex/AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.md"}

// File is one file with instructions.
type File struct {
	Path  string // absolute
	Text  string // as it is given to the model
	Whole int    // bytes of the file
	Cut   bool   // Text is not all of it

	info fs.FileInfo
}

func (f *File) shorten(to string) { f.Cut, f.Text = f.Cut || to != f.Text, to }

// Files are the files that were found, the most general first.
type Files []File

// Find reads the instructions for a folder. home is the home of the user, ""
// if there is none. Together they have at most most bytes: the nearer a file is
// to the folder, the less of it is cut, and nothing may be left of the others. What cannot be read is in the error; the
// others are returned all the same.
func Find(folder, home string, most int) (Files, error) {
	paths, refused := Paths(folder, home)
	out, err := readAll(paths)
	for i := len(out) - 1; i >= 0; i-- { // the nearest first
		out[i].shorten(text.Head(out[i].Text, max(most, 0)))
		most -= len(out[i].Text)
	}
	return out, errors.Join(refused, err)
}

// Read reads files of which the model gets at most each characters of one and most
// bytes of all, in their order. Of a longer one it gets the beginning and the end.
// Those that are not there are left out; what cannot be read is in the error.
func Read(paths []string, each, most int) (Files, error) {
	out, err := readAll(paths)
	for i := range out {
		out[i].shorten(ends(out[i].Text, each))
		out[i].shorten(text.Head(out[i].Text, max(most, 0)))
		most -= len(out[i].Text)
	}
	return out, err
}

// ends returns the beginning and the end of a text that has more than most
// characters.
func ends(s string, most int) string {
	chars := []rune(s)
	if len(chars) <= most {
		return s
	}
	head, tail := most*7/10, most*2/10
	return fmt.Sprintf("%s\n[... %d characters left out ...]\n%s", string(chars[:head]), len(chars)-head-tail, string(chars[len(chars)-tail:]))
}

// readAll reads those of paths that there are and that say something.
func readAll(paths []string) (out Files, err error) {
	var errs []error
	for _, path := range paths {
		f, err := read(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, fmt.Errorf("%s cannot be read: %w", path, err))
		case strings.TrimSpace(f.Text) != "":
			out = append(out, f)
		}
	}
	return out, errors.Join(errs...)
}

// Paths returns the files with instructions that there are, the most general
// first. Those of a repository that are links out of it are left out, and are in
// the error.
func Paths(folder, home string) (out []string, refused error) {
	add := func(p Place, names []string) {
		for _, name := range names {
			path := filepath.Join(p.Dir, filepath.FromSlash(name))
			if _, err := os.Stat(path); err != nil {
				continue
			}
			if slices.Contains(out, path) {
				return
			}
			if err := p.allows(path); err != nil {
				refused = errors.Join(refused, fmt.Errorf("%s cannot be read: %w", path, err))
				return
			}
			out = append(out, path)
			return
		}
	}
	if home != "" {
		add(Place{Dir: home}, homes)
	}
	dirs := above(folder)
	for _, dir := range dirs {
		add(Place{Dir: dir, Root: dirs[0]}, names)
	}
	return out, refused
}

// above returns the folders from the root of the repository that folder is in
// down to folder, or folder alone if it is in none.
func above(folder string) []string {
	var dirs []string
	for dir := filepath.Clean(folder); ; {
		dirs = append(dirs, dir)
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			slices.Reverse(dirs)
			return dirs
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dirs[:1]
		}
		dir = up
	}
}

// maxRead is the size up to which a file is read.
const maxRead = 1 << 20

func read(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, err
	}
	if !info.Mode().IsRegular() { // opening it might wait, or have effects
		return File{}, errors.New("it is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRead))
	if err != nil {
		return File{}, err
	}
	if bytes.IndexByte(data, 0) >= 0 {
		return File{}, errors.New("it is not text")
	}
	if !utf8.Valid(data) {
		data = []byte(strings.ToValidUTF8(string(data), "\uFFFD"))
	}
	said := strings.TrimSpace(string(data))
	whole := len(said)
	if len(data) == maxRead {
		whole = int(info.Size())
	}
	return File{Path: path, Text: said, Whole: whole, info: info}, nil
}

// Changed returns the files that are not any more what they were when they were
// read, and those that have come or gone; now are those that would be read now.
func (fs Files) Changed(now []string) []string {
	var out []string
	for _, f := range fs {
		info, err := os.Stat(f.Path)
		if err != nil || !slices.Contains(now, f.Path) || !info.ModTime().Equal(f.info.ModTime()) || info.Size() != f.info.Size() {
			out = append(out, f.Path)
		}
	}
	for _, path := range now {
		if !slices.ContainsFunc(fs, func(f File) bool { return f.Path == path }) {
			if f, err := read(path); err == nil && f.Text != "" {
				out = append(out, path)
			}
		}
	}
	return out
}
