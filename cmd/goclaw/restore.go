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
	"goclaw/internal/inherit"
	"goclaw/internal/progress"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/recall"
	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

func restoreBackupCmd(a *app) *cobra.Command {
	var force, asJSON bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the store",
		Long: `Restores FILE, which backup has written: its sessions become the store,
and its memory files those of the workspace. Everything is read and compared
before anything is replaced. A store that has sessions is replaced only
with --force, and then moved aside, never deleted; so is a memory file that
differs. Without --force such a memory file stays.

End other goclaws first. One that goes on writes nothing more.`,
		Example: `  goclaw restore ~/goclaw-2026-11-15.zip
  goclaw restore --force ~/goclaw-2026-11-15.zip    also if there are sessions`,
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			replaced, err := restoreBackup(ctx, a, args[0], force, asJSON)
			switch {
			case err == nil || !a.interrupted.Load():
			case replaced:
				err = fmt.Errorf("stopped: the sessions are restored, not all memory files: run goclaw restore --force %s again", args[0])
			default:
				err = errors.New("stopped: nothing was restored, and nothing has changed; run goclaw restore again")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "move aside what is there")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was restored as an object")
	return cmd
}

// restored is the output of restore --json.
type restored struct {
	Path        string   `json:"path"`
	Sessions    int      `json:"sessions"`
	Trashed     int      `json:"trashed"`
	Records     int      `json:"records"`
	MemoryFiles int      `json:"memoryFiles"`
	Kept        []string `json:"kept"`     // memory files that differ and stay
	Replaced    string   `json:"replaced"` // where the store is that was there before
}

// restoreBackup restores the backup path. replaced says that the store is the
// backup's, whatever failed after that.
func restoreBackup(ctx context.Context, a *app, path string, force, asJSON bool) (replaced bool, err error) {
	c, err := a.config()
	if err != nil {
		return false, err
	}
	b, err := backup.Open(path)
	if err != nil {
		return false, err
	}
	defer b.Close()
	p := progress.NewTransfer(newBar(a.env))
	defer p.End()
	b.Progress = p.Add
	p.Begin("comparing", b.Size())
	if err := b.Verify(ctx); err != nil {
		return false, fmt.Errorf("%s is damaged, and nothing was restored: %w", path, err)
	}
	if s := c.Session; b.Store != s.Store || b.Store == "jsonl" && b.Layout != s.Layout {
		kind := strings.TrimSpace(b.Store + " " + b.Layout)
		return false, fmt.Errorf("%s holds a store of the kind %s: set session.store and session.layout to that, restore it, and goclaw sessions copy makes another kind of it", path, kind)
	}
	if err := a.replaceable(ctx, force); err != nil {
		return false, err
	}
	if err := wholefile.Mkdir(filepath.Dir(c.Session.Path)); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(c.Session.Path), ".goclaw-restore-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	p.Begin("restoring", b.Size())
	now := time.Now()
	out := restored{Path: c.Session.Path, Sessions: b.Sessions, Trashed: b.Trashed, Records: b.Records, Kept: []string{}}
	if b.Store == "jsonl" {
		out.Replaced, err = restoreLogs(ctx, b, c.Session.Path, dir, stores.Layouts[c.Session.Layout], now)
	} else {
		out.Replaced, err = restoreDatabase(ctx, b, c.Session.Path, dir, now)
	}
	p.End()
	if err != nil {
		return false, err
	}
	if err := recall.Remove(c.IndexPath()); err != nil { // the next search makes a new one
		a.warn("the search index could not be removed: %s", transcript.Problem(err))
	}
	if err := restoreMemory(ctx, b, c.Memory, force, now, &out); err != nil {
		return true, err
	}
	for _, name := range out.Kept {
		a.warn("%s differs from the backup and stays as it is: --force replaces it", filepath.Join(c.Memory, name))
	}
	if out.Replaced != "" {
		a.warn("the store that was there is %s now", out.Replaced)
	}
	return true, a.result(asJSON, out, "restored %s and %s to %s", contentsOf(&b.Manifest), transcript.Count(out.MemoryFiles, "memory file"), c.Session.Path)
}

// replaceable returns an error if there is a store that must not be replaced.
func (a *app) replaceable(ctx context.Context, force bool) error {
	c := a.conf.Session
	if owner, _ := inherit.Owner(absolute(c.Path)); owner != "" && c.Store == "jsonl" {
		return fmt.Errorf("%s belongs to %s, and goclaw does not replace it: set session.path to another folder", c.Path, owner)
	}
	there := false
	for _, suffix := range []string{"", "-wal"} {
		_, err := os.Lstat(c.Path + suffix)
		there = there || err == nil
	}
	if !there || force {
		return nil
	}
	a.stores.ReadOnly = true
	st, err := a.stores.Open()
	if err != nil {
		return fmt.Errorf("%w; --force moves it aside and restores the backup", err)
	}
	a.stores.Store = nil
	defer st.Close()
	for _, q := range []session.Query{{Limit: 1}, {Limit: 1, Trash: true}} {
		for range st.List(ctx, q) { // an error is no reason to replace it either
			return fmt.Errorf("%s has sessions: --force moves it aside, without deleting anything, and restores the backup", c.Path)
		}
	}
	return nil
}

// restoreDatabase puts the database in the place of the one at path, and returns
// where that one is now.
func restoreDatabase(ctx context.Context, b *backup.Archive, path, dir string, now time.Time) (was string, err error) {
	files, err := b.Below(backup.Database)
	if err != nil || len(files) != 1 {
		return "", errors.Join(fmt.Errorf("the backup has %d databases", len(files)), err)
	}
	file := filepath.Join(dir, backup.Database)
	if err := b.Extract(ctx, files[0], file); err != nil {
		return "", err
	}
	sum, err := sqlite.Summarise(ctx, file)
	if err != nil {
		return "", err
	}
	if sum != (sqlite.Sum{Sessions: b.Sessions, Trashed: b.Trashed, Records: b.Records, SHA256: b.Sum}) {
		return "", fmt.Errorf("the database in the backup has %d sessions with %d records, and its manifest says otherwise: nothing was restored", sum.Sessions, sum.Records)
	}
	return sqlite.Replace(path, file, nameAside(path, now))
}

// restoreLogs puts the logs in the place of the folder path, and returns where
// that one is now.
func restoreLogs(ctx context.Context, b *backup.Archive, path, dir string, layout jsonl.Layout, now time.Time) (was string, err error) {
	files, err := b.Below(backup.Logs)
	if err != nil {
		return "", err
	}
	store := filepath.Join(dir, "store")
	if err := wholefile.Mkdir(store); err != nil {
		return "", err
	}
	for _, f := range files {
		if err := b.Extract(ctx, f, filepath.Join(store, filepath.FromSlash(strings.TrimPrefix(f.Name, backup.Logs)))); err != nil {
			return "", err
		}
	}
	st, err := jsonl.Open(store, jsonl.Options{Layout: layout})
	if err != nil {
		return "", err
	}
	var m backup.Manifest
	for p, err := range jsonl.Pieces(ctx, st) {
		if err != nil {
			st.Close()
			return "", err
		}
		count(&m, p)
	}
	if err := st.Close(); err != nil {
		return "", err
	}
	if m.Sessions != b.Sessions || m.Trashed != b.Trashed || m.Records != b.Records {
		return "", fmt.Errorf("the logs in the backup are %d sessions with %d records, and its manifest says otherwise: nothing was restored", m.Sessions, m.Records)
	}
	aside := nameAside(path, now)
	moved, err := jsonl.Replace(path, store, aside)
	if !moved {
		aside = ""
	}
	return aside, err
}

// restoreMemory writes the memory files to the workspace.
func restoreMemory(ctx context.Context, b *backup.Archive, workspace string, force bool, now time.Time, out *restored) error {
	files, err := b.Below(backup.Memory)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.FromSlash(strings.TrimPrefix(f.Name, backup.Memory))
		path := filepath.Join(workspace, name)
		is, err := b.Same(ctx, f, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case is:
			continue
		case !force:
			out.Kept = append(out.Kept, name)
			continue
		default:
			if err := os.Rename(path, nameAside(path, now)); err != nil {
				return err
			}
		}
		if err := b.Extract(ctx, f, path); err != nil {
			return err
		}
		out.MemoryFiles++
	}
	return nil
}
