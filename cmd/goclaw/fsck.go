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
	"goclaw/internal/transcript"
	"goclaw/session"
)

// examined is one transcript in the output of doctor PATH --json.
type examined struct {
	Program  string     `json:"program"`
	Path     string     `json:"path"`
	Key      string     `json:"key"`
	ID       session.ID `json:"id"`
	Archive  string     `json:"archive,omitempty"`
	Records  int        `json:"records"`
	Messages int        `json:"messages"`
	Branch   int        `json:"branch"` // messages on the live branch
	Strict   int        `json:"strict"` // those that pi would show
	Findings []wound    `json:"findings"`
	Repaired string     `json:"repaired,omitempty"`
}

type wound struct {
	Line int    `json:"line,omitempty"`
	What string `json:"what"`
	Cost string `json:"cost,omitempty"`
}

// fsck examines a file, a folder or a database of any agent without changing
// it, and writes a healed copy of it to repairTo if that is set.
func (a *app) fsck(ctx context.Context, path, repairTo string, asJSON bool) error {
	fi, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file or folder", path)
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	folder := fi != nil && fi.IsDir()
	if repairTo != "" {
		if _, err := os.Lstat(repairTo); err == nil {
			return fmt.Errorf("%s is there already: a healed copy is a new file or folder", repairTo)
		}
		if rel, err := filepath.Rel(abs, absolute(repairTo)); err == nil && folder && filepath.IsLocal(rel) {
			return fmt.Errorf("%s is inside of %s, which stays as it is", repairTo, path)
		}
	}
	cat, err := inherit.Find(ctx, []string{abs}, inherit.FindOptions{Home: a.getenv("HOME")})
	if err != nil {
		return err
	}
	defer cat.Close()
	st := a.style()
	wrong := func(s string) {
		if !asJSON {
			fmt.Fprintln(a.out, st.Yellow("✗ ")+transcript.Printable(s))
		}
	}
	for _, p := range cat.Problems {
		wrong(p.String())
	}
	if len(cat.Transcripts) == 0 && len(cat.Problems) == 0 && !asJSON {
		return fmt.Errorf("%s holds no transcript that is known here", path)
	}
	var copies *healed
	if repairTo != "" && len(cat.Transcripts) > 0 {
		copies = &healed{root: abs, to: repairTo, folder: folder || cat.Transcripts[0].Database()}
		defer copies.close()
	}
	rows, bad, messages := []examined{}, len(cat.Problems), 0
	for _, t := range cat.Transcripts {
		x, err := doctor.Examine(ctx, t)
		if err != nil {
			x.Findings = append(x.Findings, doctor.Finding{Path: t.Path, What: oneLine(err)})
		}
		row := examined{Program: t.Program, Path: t.Path, Key: string(t.Key), ID: t.ID, Archive: t.Archive, Records: x.Records, Messages: x.Messages, Branch: x.Branch, Strict: x.Strict, Findings: []wound{}}
		if copies != nil && err == nil {
			if row.Repaired, err = copies.write(ctx, x); err != nil {
				x.Findings = append(x.Findings, doctor.Finding{Path: t.Path, What: "it could not be repaired: " + oneLine(err)})
			}
		}
		for _, f := range x.Findings {
			row.Findings = append(row.Findings, wound{f.Line, f.What, f.Cost})
			wrong(f.String())
		}
		bad += len(x.Findings)
		messages += x.Messages
		rows = append(rows, row)
	}
	if copies != nil && copies.folder {
		for _, p := range copies.indices(cat) {
			wrong(p.String())
			cat.Problems = append(cat.Problems, p)
			bad++
		}
	}
	if asJSON {
		problems := []string{}
		for _, p := range cat.Problems {
			problems = append(problems, p.String())
		}
		if err := a.printJSON(map[string]any{"ok": bad == 0 && len(rows) > 0, "transcripts": rows, "problems": problems}); err != nil {
			return err
		}
	} else {
		verdict := st.Green("nothing is wrong")
		if bad > 0 {
			verdict = st.Yellow(transcript.Count(bad, "finding"))
		}
		fmt.Fprintf(a.out, "%s with %s examined: %s\n", transcript.Count(len(rows), "transcript"), transcript.Count(messages, "message"), verdict)
		if copies != nil && copies.n > 0 {
			fmt.Fprintf(a.out, "healed copy: %s\n", repairTo)
		}
	}
	if bad > 0 || len(rows) == 0 {
		return errQuiet
	}
	return nil
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}

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
		name = filepath.Join(dir, session.FileName(id)+".jsonl")
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
