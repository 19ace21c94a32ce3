package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/copying"
	"goclaw/internal/inherit"
	"goclaw/internal/stores"
	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/store/jsonl"
	"goclaw/store/postgres"
	"goclaw/store/sqlite"
)

func copyCmd(a *app) *cobra.Command {
	var to string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "copy DIR|DSN [KEY...]",
		Short: "Copy sessions into another store",
		Long: `Copies sessions into the store in the folder DIR, which is made if need
be, or into the PostgreSQL database DSN: all of them, including those in the
trash, or those of KEY... Lines are copied byte for byte. Run it again to copy
only what is new. Copies from and to PostgreSQL are compared at the end, by the
numbers of records and a hash of their lines. The source store is not changed.
session.store and session.path in the configuration say which store is used.`,
		Example: `  goclaw sessions copy --to jsonl ~/logs       as files, one for each session
  goclaw sessions copy --to sqlite /mnt/backup into /mnt/backup/sessions.db
  goclaw sessions copy postgres://me@db.example/sessions`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return exactly("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := a.interruptible(cmd.Context())
			defer stop()
			err := copySessions(ctx, a, to, args[0], args[1:], asJSON)
			if err != nil && a.interrupted.Load() {
				err = errors.New("stopped: what is copied stays, and the same command copies the rest")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "sqlite, jsonl or postgres (default: postgres for a DSN, else the kind that is configured)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was copied as an object")
	return cmd
}

func copySessions(ctx context.Context, a *app, to, dir string, refs []string, asJSON bool) error {
	to, err := copyKind(a, to, dir)
	if err != nil {
		return err
	}
	st, err := a.stores.Open()
	if err != nil {
		return err
	}
	infos, err := a.lists.findAll(ctx, st, refs, true)
	if err != nil {
		return err
	}
	dst, path, err := openCopy(a, to, dir)
	if err != nil {
		return err
	}
	defer dst.Close()
	c, bad := copying.New(dst, stores.Whole(st), infos, newBar(a.env)), 0
	records, err := c.Run(ctx, func(in session.Info, err error) {
		bad++
		a.warn("%s (%s): %s", transcript.Printable(string(in.Key)), in.ID, transcript.Problem(err))
	})
	if err != nil {
		return err
	}
	did := "copied"
	if bad == 0 && (to == "postgres" || a.conf.Session.Store == "postgres") {
		if err := c.Compare(ctx); err != nil {
			return err
		}
		did = "copied and compared"
	}
	if err := dst.Close(); err != nil {
		return err
	}
	where := absolute(path)
	if to == "postgres" {
		path = config.WithoutPassword(path)
		where = path
	}
	err = a.result(asJSON, map[string]any{"sessions": len(infos), "records": records, "damaged": bad, "store": to, "path": where},
		"%s %s, %s of them new, to %s", did, transcript.Count(len(infos), "session"), transcript.Count(records, "record"), path)
	if err == nil && bad > 0 {
		err = errQuiet
	}
	return err
}

// copyKind returns what kind of store sessions are copied into: to, or what dir shows.
// An address of a database is never taken as a folder, whose name would show its
// password.
func copyKind(a *app, to, dir string) (string, error) {
	if config.IsDSN(dir) {
		if to != "" && to != "postgres" {
			return "", usage("DSN is the address of a PostgreSQL database, and --to is %q: leave --to out, or name a folder", to)
		}
		return "postgres", nil
	}
	c, err := a.config()
	if err != nil {
		return "", err
	}
	to = cmp.Or(to, c.Session.Store)
	if to != "postgres" && config.LikeDSN(dir) {
		return "", usage("that looks like the address of a database, not like a folder: write postgres://user@host/name, or --to postgres (./ before the name of a folder)")
	}
	return to, nil
}

// openCopy opens the store that sessions are copied into, which must be neither
// goclaw's own nor another program's.
func openCopy(a *app, kind, dir string) (st session.Store, path string, err error) {
	switch kind {
	case "sqlite":
		path = filepath.Join(dir, "sessions.db")
	case "jsonl":
		path = dir
	case "postgres":
		if dir == a.conf.Session.Path {
			return nil, "", usage("that is the store to be copied: DSN must be another database")
		}
		st, err = postgres.Open(context.Background(), dir, postgres.Options{})
		return st, dir, err
	default:
		return nil, "", usage("--to must be sqlite, jsonl or postgres, not %q", kind)
	}
	if absolute(path) == absolute(a.conf.Session.Path) {
		return nil, "", usage("%s is the store to be copied: DIR must be another folder", path)
	}
	if kind == "sqlite" {
		if err := stores.CheckOwner(path); err != nil {
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
