package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"goclaw/internal/inherit/source"
	"goclaw/internal/wholefile"
	"goclaw/session/storekit"
)

// Copy is a repaired copy of a file, a folder or a database. Everything that is
// written is inside To, wherever the original was found.
type Copy struct {
	Root, To string
	Folder   bool // To is a folder, else the one file
	Files    int  // that were written

	in *os.Root
	// lists are the indexes of sessions from databases, by folder of the copy.
	lists map[string]map[string]listed
}

// listed is a session in an index, as OpenClaw keeps them.
type listed struct {
	ID      string `json:"sessionId"`
	File    string `json:"sessionFile"`
	Updated int64  `json:"updatedAt"`
	Label   string `json:"label,omitempty"`
}

// Close releases resources.
func (c *Copy) Close() {
	if c.in != nil {
		c.in.Close()
	}
}

// place returns where in the copy the file at path goes. A file elsewhere, which
// an index or a configuration has led to, goes into the folder "elsewhere".
func (c *Copy) place(path string) string {
	rel, err := filepath.Rel(c.Root, path)
	if err == nil && filepath.IsLocal(rel) {
		return rel
	}
	path = path[len(filepath.VolumeName(path)):]
	return filepath.Join("elsewhere", filepath.Join(string(filepath.Separator), path))
}

// create makes a file of the copy. An existing file stays: the new one gets a
// number.
func (c *Copy) create(name string) (f *os.File, path string, err error) {
	if !c.Folder {
		if err := os.MkdirAll(filepath.Dir(c.To), 0o700); err != nil {
			return nil, "", err
		}
		f, err = os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return f, c.To, err
	}
	if c.in == nil {
		if err := os.MkdirAll(c.To, 0o700); err != nil {
			return nil, "", err
		}
		if c.in, err = os.OpenRoot(c.To); err != nil {
			return nil, "", err
		}
	}
	if err := c.in.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, "", err
	}
	stem, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
	for n := 2; ; n++ {
		f, err = c.in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, filepath.Join(c.To, name), err
		}
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
}

// fill writes a file that was created, whole or not at all.
func (c *Copy) fill(f *os.File, path string, write func(io.Writer) error) error {
	err := write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
		return err
	}
	c.Files++
	return nil
}

// Add writes the repaired copy of one transcript and returns where it is.
func (c *Copy) Add(ctx context.Context, x Examination) (string, error) {
	t := x.Transcript
	name := strings.TrimSuffix(c.place(t.Path), ".zst")
	if t.Database() { // a file for each of its sessions
		id, end := string(t.ID), source.Ext
		switch t.Archive {
		case "":
		case "deleted", "reset": // called as OpenClaw calls such files, so that they stay what they are
			end += "." + t.Archive + "." + x.Updated.UTC().Format("2006-01-02T15-04-05.000Z")
		default:
			id += "." + t.Archive
		}
		dir := ""
		if t.Path != c.Root {
			dir = strings.TrimSuffix(name, filepath.Ext(name))
		}
		name = filepath.Join(dir, storekit.FileName(id)+end)
	}
	f, path, err := c.create(name)
	if err != nil {
		return "", err
	}
	if err := c.fill(f, path, func(w io.Writer) error { return Repair(ctx, t, w) }); err != nil || !t.Database() || t.Archive != "" {
		return path, err
	}
	dir := filepath.Dir(name)
	if c.lists == nil {
		c.lists = map[string]map[string]listed{}
	}
	if c.lists[dir] == nil {
		c.lists[dir] = map[string]listed{}
	}
	c.lists[dir][string(t.Key)] = listed{ID: string(t.ID), File: filepath.Base(path), Updated: max(x.Updated.UnixMilli(), 0), Label: t.Title}
	return path, nil
}

// list writes the index of the sessions of a database.
func (c *Copy) list(dir string) error {
	f, to, err := c.create(filepath.Join(dir, "sessions.json"))
	if err != nil {
		return err
	}
	return c.fill(f, to, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(c.lists[dir])
	})
}

// AddIndexes puts the index of each folder next to its repaired transcripts, and
// returns what could not be copied.
func (c *Copy) AddIndexes(all []*source.Transcript) (problems []source.Problem) {
	for dir := range c.lists {
		if err := c.list(dir); err != nil {
			problems = append(problems, source.Problem{Path: filepath.Join(c.To, dir, "sessions.json"), What: "the index could not be written: " + err.Error()})
		}
	}
	done := map[string]bool{}
	for _, t := range all {
		dir := filepath.Dir(t.Path)
		beside := filepath.Join(dir, "sessions.json")
		for _, index := range []string{beside, filepath.Join(filepath.Dir(dir), "sessions.json")} {
			rel, err := filepath.Rel(c.Root, index)
			if done[index] || index != beside && (err != nil || !filepath.IsLocal(rel)) {
				continue
			}
			done[index] = true
			if err := c.index(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, source.Problem{Path: index, What: "the index could not be copied: " + err.Error()})
			}
		}
	}
	return problems
}

func (c *Copy) index(path string) error {
	src, err := wholefile.Open(path)
	if err != nil {
		return err
	}
	defer src.Close()
	f, to, err := c.create(c.place(path))
	if err != nil {
		return err
	}
	return c.fill(f, to, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}
