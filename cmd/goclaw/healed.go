package main

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

	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/internal/inherit/source"
	"goclaw/session/storekit"
)

// healed is the healed copy of what is at root. Everything that is written is
// inside of to, wherever the original was found.
type healed struct {
	root, to string
	folder   bool // to is a folder, else the one file
	in       *os.Root
	n        int // files written
	// lists are the indices of what was in databases, by folder of the copy.
	lists map[string]map[string]listed
}

// listed is a session in an index, as OpenClaw keeps them.
type listed struct {
	ID      string `json:"sessionId"`
	File    string `json:"sessionFile"`
	Updated int64  `json:"updatedAt"`
	Label   string `json:"label,omitempty"`
}

func (h *healed) close() {
	if h.in != nil {
		h.in.Close()
	}
}

// place returns where in the copy the file at path goes: what an index or a
// configuration has led to from elsewhere goes into the folder "elsewhere".
func (h *healed) place(path string) string {
	rel, err := filepath.Rel(h.root, path)
	if err == nil && filepath.IsLocal(rel) {
		return rel
	}
	path = path[len(filepath.VolumeName(path)):]
	return filepath.Join("elsewhere", filepath.Join(string(filepath.Separator), path))
}

// create makes a file of the copy. One that is there stays: the new one gets a
// number.
func (h *healed) create(name string) (f *os.File, path string, err error) {
	if !h.folder {
		if err := os.MkdirAll(filepath.Dir(h.to), 0o700); err != nil {
			return nil, "", err
		}
		f, err = os.OpenFile(h.to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		return f, h.to, err
	}
	if h.in == nil {
		if err := os.MkdirAll(h.to, 0o700); err != nil {
			return nil, "", err
		}
		if h.in, err = os.OpenRoot(h.to); err != nil {
			return nil, "", err
		}
	}
	if err := h.in.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, "", err
	}
	stem, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
	for n := 2; ; n++ {
		f, err = h.in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, filepath.Join(h.to, name), err
		}
		name = fmt.Sprintf("%s-%d%s", stem, n, ext)
	}
}

// fill writes a file that was created, whole or not at all.
func (h *healed) fill(f *os.File, path string, write func(io.Writer) error) error {
	err := write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
		return err
	}
	h.n++
	return nil
}

// write writes the healed copy of one transcript and returns where it is.
func (h *healed) write(ctx context.Context, x doctor.Examination) (string, error) {
	t := x.Transcript
	name := strings.TrimSuffix(h.place(t.Path), ".zst")
	if t.Database() { // a file for each of its sessions
		id := string(t.ID)
		if t.Archive != "" {
			id += "." + t.Archive
		}
		dir := ""
		if t.Path != h.root {
			dir = strings.TrimSuffix(name, ".sqlite")
		}
		name = filepath.Join(dir, storekit.FileName(id)+".jsonl")
	}
	f, path, err := h.create(name)
	if err != nil {
		return "", err
	}
	if err := h.fill(f, path, func(w io.Writer) error { return doctor.Repair(ctx, t, w) }); err != nil || !t.Database() || t.Archive != "" {
		return path, err
	}
	dir := filepath.Dir(name)
	if h.lists == nil {
		h.lists = map[string]map[string]listed{}
	}
	if h.lists[dir] == nil {
		h.lists[dir] = map[string]listed{}
	}
	h.lists[dir][string(t.Key)] = listed{ID: string(t.ID), File: filepath.Base(path), Updated: max(x.Updated.UnixMilli(), 0), Label: t.Title}
	return path, nil
}

// list writes the index of what was in a database.
func (h *healed) list(dir string) error {
	f, to, err := h.create(filepath.Join(dir, "sessions.json"))
	if err != nil {
		return err
	}
	return h.fill(f, to, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(h.lists[dir])
	})
}

// indices puts the index of each folder beside its healed transcripts, and
// returns what could not be copied.
func (h *healed) indices(cat *inherit.Catalogue) (problems []inherit.Problem) {
	for dir := range h.lists {
		if err := h.list(dir); err != nil {
			problems = append(problems, inherit.Problem{Path: filepath.Join(h.to, dir, "sessions.json"), What: "the index could not be written: " + oneLine(err)})
		}
	}
	done := map[string]bool{}
	for _, t := range cat.Transcripts {
		dir := filepath.Dir(t.Path)
		beside := filepath.Join(dir, "sessions.json")
		for _, index := range []string{beside, filepath.Join(filepath.Dir(dir), "sessions.json")} {
			rel, err := filepath.Rel(h.root, index)
			if done[index] || index != beside && (err != nil || !filepath.IsLocal(rel)) {
				continue
			}
			done[index] = true
			if err := h.index(index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, inherit.Problem{Path: index, What: "the index could not be copied: " + oneLine(err)})
			}
		}
	}
	return problems
}

func (h *healed) index(path string) error {
	src, err := source.OpenFile(path)
	if err != nil {
		return err
	}
	defer src.Close()
	f, to, err := h.create(h.place(path))
	if err != nil {
		return err
	}
	return h.fill(f, to, func(w io.Writer) error {
		_, err := io.Copy(w, src)
		return err
	})
}
