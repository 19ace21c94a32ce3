package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"goclaw/inherit"
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
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	cat, err := inherit.Find(ctx, []string{abs}, inherit.Options{Home: a.getenv("HOME")})
	if err != nil {
		return err
	}
	defer cat.Close()
	if repairTo != "" {
		if _, err := os.Lstat(repairTo); err == nil {
			return fmt.Errorf("%s is there already: a healed copy is a new file or folder", repairTo)
		}
		if rel, err := filepath.Rel(abs, absolute(repairTo)); err == nil && fi.IsDir() && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return fmt.Errorf("%s is inside of %s, which stays as it is", repairTo, path)
		}
	}
	st := a.style()
	rows, bad := []examined{}, len(cat.Problems)
	for _, p := range cat.Problems {
		if !asJSON {
			fmt.Fprintln(a.out, st.Yellow("✗ ")+transcript.Printable(p.String()))
		}
	}
	for _, t := range cat.Transcripts {
		x, err := inherit.Examine(ctx, t)
		if err != nil {
			x.Findings = append(x.Findings, inherit.Finding{Path: t.Path, What: oneLine(err)})
		}
		row := examined{Program: t.Program, Path: t.Path, Key: string(t.Key), ID: t.ID, Archive: t.Archive, Records: x.Records, Messages: x.Messages, Branch: x.Branch, Strict: x.Strict, Findings: []wound{}}
		bad += len(x.Findings)
		for _, f := range x.Findings {
			row.Findings = append(row.Findings, wound{f.Line, f.What, f.Cost})
			if !asJSON {
				fmt.Fprintln(a.out, st.Yellow("✗ ")+transcript.Printable(f.String()))
			}
		}
		if repairTo != "" && err == nil {
			if row.Repaired, err = repair(ctx, t, abs, repairTo, fi.IsDir()); err != nil {
				return err
			}
		}
		rows = append(rows, row)
	}
	if repairTo != "" && fi.IsDir() {
		if err := copyIndices(cat, abs, repairTo); err != nil {
			return err
		}
	}
	if asJSON {
		problems := []string{}
		for _, p := range cat.Problems {
			problems = append(problems, p.String())
		}
		if err := a.printJSON(map[string]any{"ok": bad == 0, "transcripts": rows, "problems": problems}); err != nil {
			return err
		}
	} else {
		messages := 0
		for _, r := range rows {
			messages += r.Messages
		}
		verdict := st.Green("nothing is wrong")
		if bad > 0 {
			verdict = st.Yellow(transcript.Count(bad, "finding"))
		}
		fmt.Fprintf(a.out, "%s with %s examined: %s\n", transcript.Count(len(rows), "transcript"), transcript.Count(messages, "message"), verdict)
		if repairTo != "" {
			fmt.Fprintf(a.out, "healed copy: %s\n", repairTo)
		}
	}
	if len(rows) == 0 && len(cat.Problems) == 0 {
		return fmt.Errorf("%s holds no transcript that is known here", path)
	}
	if bad > 0 {
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

// repair writes the healed copy of one transcript and returns where it is.
func repair(ctx context.Context, t *inherit.Transcript, root, to string, folder bool) (string, error) {
	path := to
	rel, err := filepath.Rel(root, t.Path)
	switch {
	case err != nil:
		return "", err
	case strings.HasSuffix(t.Path, ".sqlite"): // a file for each of its sessions
		if rel == "." {
			rel = ""
		}
		name := string(t.ID)
		if t.Archive != "" {
			name += "." + t.Archive
		}
		path = filepath.Join(to, strings.TrimSuffix(rel, ".sqlite"), session.FileName(name)+".jsonl")
	case folder:
		path = filepath.Join(to, strings.TrimSuffix(rel, ".zst"))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	err = inherit.Repair(ctx, t, f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
	}
	return path, err
}

// copyIndices puts the index of each folder beside its healed transcripts.
func copyIndices(cat *inherit.Catalogue, root, to string) error {
	done := map[string]bool{}
	for _, t := range cat.Transcripts {
		dir := filepath.Dir(t.Path)
		for _, index := range []string{filepath.Join(dir, "sessions.json"), filepath.Join(filepath.Dir(dir), "sessions.json")} {
			rel, err := filepath.Rel(root, index)
			if err != nil || done[index] || strings.HasPrefix(rel, "..") {
				continue
			}
			done[index] = true
			src, err := inherit.OpenFile(index)
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			dst, err := os.OpenFile(filepath.Join(to, rel), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err == nil {
				_, err = io.Copy(dst, src)
				if e := dst.Close(); err == nil {
					err = e
				}
			}
			src.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}
