package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/internal/backup"
	"goclaw/internal/config"
	"goclaw/internal/memoryfiles"
	"goclaw/internal/progress"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

func backupCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write all sessions and memory files into one file",
		Long: `Writes a backup to FILE, a zip file, which must not exist yet: every
session, including those in the trash, and the memory files of the
workspace. Chats may go on meanwhile: the backup has at least what was saved
when it began. FILE appears once everything in it was read back and compared.

The configuration is not part of it, because it may hold keys; nor are the
history of typed lines, allowed commands, and indexes, which are rebuilt.`,
		Example: `  goclaw backup ~/goclaw-$(date +%F).zip
  goclaw restore ~/goclaw-2026-11-15.zip`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			err := makeBackup(ctx, a, args[0], asJSON)
			if err != nil && a.interrupted.Load() {
				err = fmt.Errorf("stopped: there is no %s, and nothing else has changed; run goclaw backup again", args[0])
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what is in it as an object")
	return cmd
}

// backedUp is the output of backup --json.
type backedUp struct {
	File        string `json:"file"`
	Bytes       int64  `json:"bytes"`
	Store       string `json:"store"`
	Sessions    int    `json:"sessions"`
	Trashed     int    `json:"trashed"`
	Records     int    `json:"records"`
	MemoryFiles int    `json:"memoryFiles"`
}

func makeBackup(ctx context.Context, a *app, path string, asJSON bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if c.Session.Store == "jsonl" && config.Within(absolute(c.Session.Path), absolute(path)) {
		return usage("%s is inside the store: choose another folder", path)
	}
	if c.Session.Store == "postgres" {
		return errors.New("goclaw backup does not copy a PostgreSQL database: pg_dump does, and goclaw sessions copy --to sqlite DIR makes a database file of the sessions")
	}
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	w, err := backup.Create(path)
	if err != nil {
		return err
	}
	defer w.Drop()
	p := progress.NewTransfer(newBar(a.env))
	defer p.End()
	w.Progress = p.Add
	w.Made, w.Store = time.Now().UTC().Truncate(time.Second), c.Session.Store
	switch st := stores.Whole(st).(type) {
	case *sqlite.Store:
		err = addDatabase(ctx, w, st, path, p)
	case *jsonl.Store:
		w.Layout = c.Session.Layout
		p.Begin("writing", sizeOf(c.Session.Path))
		err = addLogs(ctx, w, st)
	default:
		err = fmt.Errorf("a store of kind %T cannot be backed up", st)
	}
	if err != nil {
		return err
	}
	notes, err := addMemory(ctx, w, c.Memory)
	if err != nil {
		return err
	}
	p.Begin("reading back", w.Size())
	size, err := w.Finish(ctx)
	p.End()
	if err != nil {
		return err
	}
	return a.result(asJSON, backedUp{absolute(path), size, w.Store, w.Sessions, w.Trashed, w.Records, notes},
		"%s: %s and %s, read back and compared", path, contentsOf(&w.Manifest), transcript.Count(notes, "memory file"))
}

// contentsOf says what is in a backup.
func contentsOf(m *backup.Manifest) string {
	text := fmt.Sprintf("%s with %s", transcript.Count(m.Sessions, "session"), transcript.Count(m.Records, "record"))
	if m.Trashed > 0 {
		text += fmt.Sprintf(" (%d in the trash)", m.Trashed)
	}
	return text
}

// addDatabase adds a copy of the database, which is made next to the backup.
func addDatabase(ctx context.Context, w *backup.Writer, st *sqlite.Store, path string, p *progress.Transfer) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".goclaw-backup-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, backup.Database)
	sum, err := st.Backup(ctx, name)
	if err != nil {
		return err
	}
	w.Sessions, w.Trashed, w.Records, w.Sum = sum.Sessions, sum.Trashed, sum.Records, sum.SHA256
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	p.Begin("writing", sizeOf(name))
	return w.Add(ctx, backup.Database, f)
}

// sizeOf returns how many bytes a file has, or the files of a folder: what
// cannot be read counts nothing.
func sizeOf(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if fi, err := d.Info(); err == nil {
				n += fi.Size()
			}
		}
		return nil
	})
	return n
}

// addLogs adds the files of a store.
func addLogs(ctx context.Context, w *backup.Writer, st *jsonl.Store) error {
	for p, err := range jsonl.Pieces(ctx, st) {
		if err != nil {
			return err
		}
		count(&w.Manifest, p)
		if err := w.Add(ctx, backup.Logs+filepath.ToSlash(p.Path), p); err != nil {
			return err
		}
	}
	return nil
}

// count adds a log to what m says.
func count(m *backup.Manifest, p jsonl.Piece) {
	if p.Info.Records == 0 {
		return
	}
	m.Sessions++
	m.Records += p.Info.Records
	if !p.Info.Trashed.IsZero() {
		m.Trashed++
	}
}

// addMemory adds the memory files of the workspace and returns how many there
// are.
func addMemory(ctx context.Context, w *backup.Writer, workspace string) (n int, err error) {
	add := func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if os.IsNotExist(err) {
				err = nil
			}
			return err
		}
		rel, err := filepath.Rel(workspace, path)
		if err != nil || !memoryfiles.Is(filepath.ToSlash(rel)) || !memoryfiles.IsText(rel) {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n++
		return w.Add(ctx, backup.Memory+filepath.ToSlash(rel), f)
	}
	for _, name := range []string{memoryfiles.Main, memoryfiles.Dir} {
		if err := filepath.WalkDir(filepath.Join(workspace, name), add); err != nil {
			return n, err
		}
	}
	return n, nil
}

// nameAside returns a new name for the file or folder path, which is about to be
// replaced.
func nameAside(path string, now time.Time) string {
	path = strings.TrimSuffix(path, string(filepath.Separator))
	for n := 0; ; n++ {
		aside := path + ".replaced-" + now.UTC().Format("20060102-150405")
		if n > 0 {
			aside += fmt.Sprint("-", n)
		}
		if _, err := os.Lstat(aside); err != nil {
			return aside
		}
	}
}
