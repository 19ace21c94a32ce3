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

func (a *app) copyCmd() *cobra.Command {
	var to string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "copy DIR [KEY...]",
		Short: "Copy conversations into another store",
		Long: `Copies conversations into the store in the folder DIR, which is made if need
be: all of them, those in the trash too, or those of KEY... Every line stays
the same bytes. Run again, it copies what has come since. The store that is
copied stays as it is; session.store and session.path in the configuration say
which one is used.`,
		Example: `  goclaw sessions copy --to jsonl ~/logs       as files, one for each conversation
  goclaw sessions copy --to sqlite /mnt/backup into /mnt/backup/sessions.db`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return exactly("DIR")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.copySessions(cmd.Context(), to, args[0], args[1:], asJSON)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "sqlite or jsonl (default: the kind that is configured)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was copied as an object")
	return cmd
}

func (a *app) copySessions(ctx context.Context, to, dir string, refs []string, asJSON bool) error {
	st, err := a.store()
	if err != nil {
		return err
	}
	if to == "" {
		to = a.conf.Session.Store
	}
	infos, err := chosenSessions(ctx, st, refs)
	if err != nil {
		return err
	}
	path := dir
	switch to {
	case "sqlite":
		path = filepath.Join(dir, "sessions.db")
	case "jsonl":
	default:
		return usage("--to must be sqlite or jsonl, not %q", to)
	}
	if absolute(path) == absolute(a.conf.Session.Path) {
		return usage("%s is the store that is to be copied: DIR must be another folder", path)
	}
	var dst session.Store
	if to == "sqlite" {
		if err := notForeign(path); err != nil {
			return err
		}
		dst, err = sqlite.Open(path)
	} else {
		if owner, _ := inherit.Owner(absolute(path)); owner != "" && !a.conf.Session.Shared {
			return fmt.Errorf("%s is %s's and stays as it is: DIR must be a folder of its own", path, owner)
		}
		dst, err = jsonl.Open(path, jsonl.Options{})
	}
	if err != nil {
		return err
	}
	records, bad := 0, 0
	for _, in := range infos {
		n, err := copySession(ctx, dst, st, in)
		records += n
		if err != nil && ctx.Err() != nil {
			dst.Close()
			return err
		}
		if err != nil {
			bad++
			fmt.Fprintf(a.err, "goclaw: %s (%s): %s\n", transcript.Printable(string(in.Key)), in.ID, oneLine(err))
		}
	}
	if err := dst.Close(); err != nil {
		return err
	}
	if asJSON {
		err = a.printJSON(map[string]any{"sessions": len(infos), "records": records, "damaged": bad, "store": to, "path": absolute(path)})
	} else {
		_, err = fmt.Fprintf(a.out, "copied %s, %s of them new, to %s\n", transcript.Count(len(infos), "session"), transcript.Count(records, "record"), path)
	}
	if err == nil && bad > 0 {
		err = errQuiet
	}
	return err
}

// chosenSessions returns the sessions that refs name, or all, those in the
// trash last.
func chosenSessions(ctx context.Context, st session.Store, refs []string) (infos []session.Info, err error) {
	for _, ref := range refs {
		in, err := session.Find(ctx, st, ref, false)
		if err != nil {
			return nil, err
		}
		infos = append(infos, in)
	}
	for _, trash := range []bool{false, true} {
		if len(refs) > 0 {
			break
		}
		for in, err := range st.List(ctx, session.Query{Trash: trash}) {
			if err != nil {
				return nil, err
			}
			infos = append(infos, in)
		}
	}
	return infos, nil
}

// copySession copies one log, into the trash if it is there.
func copySession(ctx context.Context, dst, src session.Store, in session.Info) (int, error) {
	have, err := session.Stat(ctx, dst, in.ID)
	switch {
	case err != nil && !errors.Is(err, session.ErrNotFound):
		return 0, err
	case err == nil && !have.Trashed.IsZero() && have.Last < in.Last, err == nil && !have.Trashed.IsZero() && in.Trashed.IsZero():
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
