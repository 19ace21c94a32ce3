package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"goclaw/internal/inherit"
	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/session/storekit"
	"goclaw/store/jsonl"
	"goclaw/store/sqlite"
)

func copyCmd(a *app) *cobra.Command {
	var to string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "copy DIR [KEY...]",
		Short: "Copy conversations into another store",
		Long: `Copies conversations into the store in the folder DIR, which is made if need
be: all of them, including those in the trash, or those of KEY... Lines are
copied byte for byte. Run it again to copy only what is new. The source store is
not changed. session.store and session.path in the configuration say which store
is used.`,
		Example: `  goclaw sessions copy --to jsonl ~/logs       as files, one for each conversation
  goclaw sessions copy --to sqlite /mnt/backup into /mnt/backup/sessions.db`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return exactly("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return copySessions(cmd.Context(), a, to, args[0], args[1:], asJSON)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "sqlite or jsonl (default: the kind that is configured)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was copied as an object")
	return cmd
}

func copySessions(ctx context.Context, a *app, to, dir string, refs []string, asJSON bool) error {
	st, err := a.stores.open()
	if err != nil {
		return err
	}
	if to == "" {
		to = a.conf.Session.Store
	}
	infos, err := findAll(ctx, st, refs, true)
	if err != nil {
		return err
	}
	dst, path, err := openCopy(a, to, dir)
	if err != nil {
		return err
	}
	records, bad := 0, 0
	for _, in := range infos {
		n, err := copySession(ctx, dst, whole(st), in)
		records += n
		if err != nil && ctx.Err() != nil {
			dst.Close()
			return err
		}
		if err != nil {
			bad++
			a.warn("%s (%s): %s", transcript.Printable(string(in.Key)), in.ID, oneLine(err))
		}
	}
	if err := dst.Close(); err != nil {
		return err
	}
	err = a.result(asJSON, map[string]any{"sessions": len(infos), "records": records, "damaged": bad, "store": to, "path": absolute(path)},
		"copied %s, %s of them new, to %s", transcript.Count(len(infos), "session"), transcript.Count(records, "record"), path)
	if err == nil && bad > 0 {
		err = errQuiet
	}
	return err
}

// openCopy opens the store that sessions are copied into, which must be neither
// goclaw's own nor another program's.
func openCopy(a *app, kind, dir string) (st session.Store, path string, err error) {
	switch kind {
	case "sqlite":
		path = filepath.Join(dir, "sessions.db")
	case "jsonl":
		path = dir
	default:
		return nil, "", usage("--to must be sqlite or jsonl, not %q", kind)
	}
	if absolute(path) == absolute(a.conf.Session.Path) {
		return nil, "", usage("%s is the store to be copied: DIR must be another folder", path)
	}
	if kind == "sqlite" {
		if err := notForeign(path); err != nil {
			return nil, "", err
		}
		st, err = sqlite.Open(path)
		return st, path, err
	}
	if owner, _ := inherit.Owner(absolute(path)); owner != "" && !a.conf.Session.Shared {
		return nil, "", fmt.Errorf("%s belongs to %s and goclaw does not write to it: choose another folder as DIR", path, owner)
	}
	st, err = jsonl.Open(path, jsonl.Options{})
	return st, path, err
}

// copySession copies one log, into the trash if it is there.
func copySession(ctx context.Context, dst, src session.Store, in session.Info) (int, error) {
	have, err := session.Stat(ctx, dst, in.ID)
	switch {
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return 0, err
	case err == nil && !have.Trashed.IsZero() && (have.Last < in.Last || in.Trashed.IsZero()):
		if err := dst.Restore(ctx, in.ID); err != nil {
			return 0, err
		}
	case err == nil && !have.Trashed.IsZero():
		return 0, nil
	}
	n, err := storekit.Copy(ctx, dst, src, in.ID)
	if !in.Trashed.IsZero() {
		err = errors.Join(err, dst.Delete(ctx, in.ID))
	}
	return n, err
}
