package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"goclaw/internal/inherit/source"
	"goclaw/internal/sqlx"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/session"
	"goclaw/store/sqlite"
)

// ownMark is what a database of goclaw's has as its application_id.
const ownMark = 0x676f636c

// ownDatabase reports whether the header of the file at path says that it is a
// database of goclaw's.
func ownDatabase(path string) bool {
	f, err := wholefile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 72)
	if _, err := io.ReadFull(f, head); err != nil {
		return false
	}
	return strings.HasPrefix(string(head), "SQLite format 3\x00") && binary.BigEndian.Uint32(head[68:]) == ownMark
}

// ownInside returns the database of goclaw's at path, or in the folder path, and
// where its repaired copy goes. A damaged header does not say whose it is; the
// rows do.
func ownInside(path, repairTo string, folder bool) (own, to string) {
	if own, to = path, repairTo; folder {
		own = filepath.Join(path, "sessions.db")
		if to != "" {
			to = filepath.Join(to, "sessions.db")
		}
	}
	if ownDatabase(own) || sqlite.HasRecords(own) {
		return own, to
	}
	return "", ""
}

// rescue is what doctor PATH says of a database of goclaw's. Other programs read
// it.
type rescue struct {
	OK       bool      `json:"ok"`
	Path     string    `json:"path"`
	Sessions int       `json:"sessions"`
	Records  int       `json:"records"`
	Lost     int       `json:"lost"`
	Findings []finding `json:"findings"`
	Repaired string    `json:"repaired,omitempty"`
}

// doctorOwn examines a database of goclaw's page by page, without changing it,
// and writes a new one at repairTo, if that is set, from every record that can
// be read.
func doctorOwn(ctx context.Context, a *app, path, repairTo string, asJSON bool) error {
	d := &rescue{Path: path, Findings: []finding{}}
	for _, problem := range integrity(path) {
		d.Findings = append(d.Findings, finding{What: "store", Problem: problem})
	}
	report := func(id session.ID, problem error) {
		d.Findings = append(d.Findings, finding{What: "store", Session: id, Problem: transcript.Problem(problem)})
	}
	got, err := recoverTo(ctx, path, repairTo, report)
	if err != nil {
		return err
	}
	d.Sessions, d.Records, d.Lost, d.OK = got.Sessions, got.Records, got.Lost, len(d.Findings) == 0
	if repairTo != "" && d.Sessions > 0 {
		d.Repaired = absolute(repairTo)
	}
	if asJSON {
		err = a.printJSON(d)
	} else {
		printRescue(a.env, d, repairTo)
	}
	if err == nil && !d.OK {
		return errQuiet
	}
	return err
}

// recoverTo makes a new database at to from what can be read of the one at path.
// It leaves none if there is nothing to put in it, or if it fails.
func recoverTo(ctx context.Context, path, to string, report func(session.ID, error)) (got sqlite.Recovered, err error) {
	if to == "" {
		return sqlite.Recover(ctx, path, nil, report)
	}
	dst, err := sqlite.Open(to)
	if err != nil {
		return got, err
	}
	got, err = sqlite.Recover(ctx, path, dst, report)
	if err == nil && got.Sessions > 0 { // read it again: it must be whole
		err = dst.Check(ctx, func(id session.ID, problem error) {
			report(id, fmt.Errorf("the new database: %w", problem))
		})
	}
	err = errors.Join(err, dst.Close())
	if err != nil || got.Sessions == 0 {
		for _, suffix := range []string{"", "-wal", "-shm", "-reserve"} {
			os.Remove(to + suffix)
		}
	}
	return got, err
}

// integrity returns what SQLite finds wrong with the database at path, which is
// neither locked nor changed.
func integrity(path string) (found []string) {
	const most = 4 // one bad page can cause hundreds
	db, err := source.OpenDatabase(path)
	if err != nil {
		return []string{named(path, err)}
	}
	defer db.Close()
	more := 0
	err = db.View(func() error {
		found, more = header(db), 0
		return db.Each("PRAGMA integrity_check", nil, func(r sqlx.Row) error {
			for line := range strings.Lines(r.Text(0)) {
				line = strings.TrimSpace(line)
				switch {
				case line == "ok" || line == "" || strings.HasPrefix(line, "***") || strings.Contains(line, "never used"):
				case len(found) == most:
					more++
				default:
					found = append(found, path+": "+line)
				}
			}
			return nil
		})
	})
	if more > 0 {
		found = append(found, fmt.Sprintf("%s: and %d more of this kind", path, more))
	}
	if err != nil {
		found = append(found, named(path, err))
	}
	return found
}

// header returns what is wrong with the header of a database of goclaw's.
func header(db *source.Database) (found []string) {
	number := func(sql string) (n int64) {
		_ = db.Each(sql, nil, func(r sqlx.Row) error { n = r.Int(0); return nil })
		return n
	}
	if mark := number("PRAGMA application_id"); mark != ownMark {
		found = append(found, fmt.Sprintf("%s: its header says %#x instead of goclaw's mark", db.Path, mark))
	}
	if v := number("PRAGMA user_version"); v < 3 && db.Has("sessions", "compactions") || v == 3 && db.Has("records", "crc32c") {
		found = append(found, fmt.Sprintf("%s: its header says schema %d, and its tables are those of a later one", db.Path, v))
	}
	return found
}

// named returns the text of err after the path of the file, unless it names it.
func named(path string, err error) string {
	text := transcript.Problem(err)
	if strings.Contains(text, path) {
		return text
	}
	return path + ": " + text
}

func printRescue(e *env, d *rescue, to string) {
	for _, f := range d.Findings {
		line := f.Problem
		if f.Session != "" {
			line = string(f.Session) + ": " + line
		}
		fmt.Fprintln(e.out, e.style().Yellow("✗ ")+transcript.Printable(line))
	}
	verdict := e.style().Green("nothing is wrong")
	if !d.OK {
		verdict = e.style().Yellow(transcript.Count(len(d.Findings), "finding"))
	}
	fmt.Fprintf(e.out, "%s with %s can be read, %s lost: %s\n", transcript.Count(d.Sessions, "session"), transcript.Count(d.Records, "record"), transcript.Count(d.Lost, "record"), verdict)
	switch {
	case d.Repaired != "":
		fmt.Fprintf(e.out, "new database: %s\n", to)
		fmt.Fprintf(e.out, "%s is unchanged; to continue with the new one, move %s and its -wal away and move %s there\n", d.Path, filepath.Base(d.Path), filepath.Base(to))
	case to != "":
		fmt.Fprintf(e.out, "no record was found: %s was not made\n", to)
	case !d.OK:
		fmt.Fprintf(e.out, "goclaw doctor %s --repair-to NEW.db makes a new database from what can be read\n", d.Path)
	}
}
