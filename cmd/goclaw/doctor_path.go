package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/inherit/doctor"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// examined is one transcript in the output of doctor PATH --json.
type examined struct {
	Program  string            `json:"program"`
	Path     string            `json:"path"`
	Key      string            `json:"key"`
	ID       session.ID        `json:"id"`
	Archive  string            `json:"archive,omitempty"`
	Records  int               `json:"records"`
	Messages int               `json:"messages"`
	Branch   int               `json:"branch"` // messages on the live branch
	Strict   int               `json:"strict"` // those that pi would show
	Findings []examinedFinding `json:"findings"`
	Repaired string            `json:"repaired,omitempty"`
}

// examinedFinding is one problem of it.
type examinedFinding struct {
	Line int    `json:"line,omitempty"`
	What string `json:"what"`
	Cost string `json:"cost,omitempty"`
}

// doctorPath examines a file, a folder or a database of any agent without
// changing it, and writes a repaired copy of it to repairTo if that is set.
func doctorPath(ctx context.Context, a *app, path, repairTo string, asJSON bool) error {
	abs, folder, err := examinable(path, repairTo)
	if err != nil {
		return err
	}
	if !folder && ownDatabase(abs) {
		return doctorOwn(ctx, a, abs, repairTo, asJSON)
	}
	cat, err := inherit.Find(ctx, []string{abs}, inherit.FindOptions{Home: a.getenv("HOME")})
	if err != nil {
		return err
	}
	defer cat.Close()
	if own, to := ownInside(abs, repairTo, folder); own != "" && len(cat.Transcripts) == 0 {
		return doctorOwn(ctx, a, own, to, asJSON)
	} else if own != "" {
		cat.Problems = append(cat.Problems, inherit.Problem{Path: own, What: "goclaw's own database: goclaw doctor " + own + " examines it"})
	}
	if len(cat.Transcripts) == 0 && len(cat.Problems) == 0 && !asJSON {
		return fmt.Errorf("%s holds no transcript of a known program", path)
	}
	wrong := func(s fmt.Stringer) {
		if !asJSON {
			fmt.Fprintln(a.out, a.style().Yellow("✗ ")+transcript.Name(s.String()))
		}
	}
	for _, p := range cat.Problems {
		wrong(p)
	}
	var copies *doctor.Copy
	if repairTo != "" && len(cat.Transcripts) > 0 {
		copies = &doctor.Copy{Root: abs, To: repairTo, Folder: folder || cat.Transcripts[0].Database()}
		defer copies.Close()
	}
	rows := []examined{}
	for _, t := range cat.Transcripts {
		rows = append(rows, examine(ctx, t, copies, wrong))
	}
	if copies != nil && copies.Folder {
		for _, p := range copies.AddIndexes(cat.Transcripts) {
			wrong(p)
			cat.Problems = append(cat.Problems, p)
		}
	}
	bad := len(cat.Problems)
	for _, r := range rows {
		bad += len(r.Findings)
	}
	if asJSON {
		err = a.printJSON(examinedJSON(rows, cat.Problems, bad))
	} else {
		printExamined(a.env, rows, copies, bad)
	}
	if err == nil && (bad > 0 || len(rows) == 0) {
		return errQuiet
	}
	return err
}

// examinable checks that path exists and that repairTo is a new place outside it.
func examinable(path, repairTo string) (abs string, folder bool, err error) {
	fi, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, e := os.Stat(path + "-wal"); e == nil { // of a database that is missing
			err = nil
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("%s: there is no such file or folder", path)
	case err != nil && !errors.Is(err, fs.ErrPermission):
		return "", false, err
	}
	if abs, err = filepath.Abs(path); err != nil {
		return "", false, err
	}
	folder = fi != nil && fi.IsDir()
	if repairTo == "" {
		return abs, folder, nil
	}
	if _, err := os.Lstat(repairTo); err == nil {
		return "", false, fmt.Errorf("%s exists already: a repaired copy needs a new file or folder", repairTo)
	}
	if folder && config.Within(abs, absolute(repairTo)) {
		return "", false, fmt.Errorf("%s is inside %s, which is not modified: choose a path outside it", repairTo, path)
	}
	return abs, folder, nil
}

// examine examines one transcript, and copies it if copies is not nil.
func examine(ctx context.Context, t *inherit.Transcript, copies *doctor.Copy, wrong func(fmt.Stringer)) examined {
	x, err := doctor.Examine(ctx, t)
	if err != nil {
		x.Findings = append(x.Findings, doctor.Finding{Path: t.Path, What: transcript.Problem(err)})
	}
	row := examined{
		Program: t.Program, Path: t.Path, Key: string(t.Key), ID: t.ID, Archive: t.Archive,
		Records: x.Records, Messages: x.Messages, Branch: x.Branch, Strict: x.Strict, Findings: []examinedFinding{},
	}
	if copies != nil && err == nil {
		if row.Repaired, err = copies.Add(ctx, x); err != nil {
			x.Findings = append(x.Findings, doctor.Finding{Path: t.Path, What: "it could not be repaired: " + transcript.Problem(err)})
		}
	}
	for _, f := range x.Findings {
		row.Findings = append(row.Findings, examinedFinding{f.Line, f.What, f.Cost})
		wrong(f)
	}
	return row
}

func examinedJSON(rows []examined, problems []inherit.Problem, bad int) map[string]any {
	texts := []string{}
	for _, p := range problems {
		texts = append(texts, p.String())
	}
	return map[string]any{"ok": bad == 0 && len(rows) > 0, "transcripts": rows, "problems": texts}
}

func printExamined(e *env, rows []examined, copies *doctor.Copy, bad int) {
	messages := 0
	for _, r := range rows {
		messages += r.Messages
	}
	verdict := e.style().Green("nothing is wrong")
	if bad > 0 {
		verdict = e.style().Yellow(transcript.Count(bad, "finding"))
	}
	fmt.Fprintf(e.out, "%s with %s examined: %s\n", transcript.Count(len(rows), "transcript"), transcript.Count(messages, "message"), verdict)
	if copies != nil && copies.Files > 0 {
		fmt.Fprintf(e.out, "repaired copy: %s\n", copies.To)
	}
}

func absolute(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return abs
}
