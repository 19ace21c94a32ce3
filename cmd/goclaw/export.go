package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"goclaw/internal/codec"
	"goclaw/internal/handover"
	"goclaw/session"
)

func exportCmd(a *app) *cobra.Command {
	var format, output string
	var secrets bool
	cmd := &cobra.Command{
		Use:   "export KEY",
		Short: "Write a session to a file or to standard output",
		Long: `Writes a session as native lines (which OpenClaw and pi read as well), as
claw0 lines, or as a note for a person or another agent: one file of Markdown,
HTML or JSON, with tool output collapsed. Passwords and keys are taken out of a
note unless --secrets is given; lines are always complete.`,
		Args: exactly("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			st, in, err := a.stores.Find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.output(output, func(w io.Writer) error { return a.export(cmd.Context(), st, in.ID, format, secrets, w) })
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "native", "native, claw0, claw0-old, markdown, html or json")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "leave passwords and keys in a note")
	cmd.Flags().StringVarP(&output, "output", "o", "", "a new file instead of standard output")
	return cmd
}

// output hands write standard output, or a new file that is complete or not
// there at all.
func (e *env) output(path string, write func(io.Writer) error) error {
	if path == "" {
		return write(e.data())
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already: give the name of a new file, or remove it first", path)
	}
	if err != nil {
		return err
	}
	err = write(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil && err != errQuiet { // else it has all that can be read
		os.Remove(path)
	}
	return err
}

var lineFormats = map[string]codec.Codec{
	"native": codec.Native, "openclaw": codec.Native, "pi": codec.Native, "jsonl": codec.Native, "claw0": codec.Claw0, "claw0-old": codec.Claw0Old,
}

var noteFormats = map[string]string{"markdown": "markdown", "md": "markdown", "html": "html", "json": "json"}

// export writes the session id: as lines, or as a note without its secrets
// unless they are wanted.
func (e *env) export(ctx context.Context, st session.Store, id session.ID, format string, secrets bool, w io.Writer) error {
	if note := noteFormats[format]; note != "" {
		s, err := session.Replay(id, st.Read(ctx, id, 0))
		if err != nil {
			return err
		}
		if err := handover.Write(w, s, note, secrets); err != nil {
			return err
		}
		return e.damage(s.Damage...)
	}
	enc := lineFormats[format]
	if enc == nil {
		return usage("--format must be native, claw0, claw0-old, markdown, html or json, not %q", format)
	}
	var damaged error
	var last session.Record
	for r, err := range session.Undamaged(st.Read(ctx, id, 0), func(d *session.Damage) { damaged = e.damage(d) }) {
		if err != nil {
			return err
		}
		line, err := enc.Encode(r)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
		last = r
	}
	if enc == codec.Native {
		if err := closing(ctx, st, id, last, w); err != nil {
			return err
		}
	}
	return damaged
}

// closing writes one more line if the last one does not lead to the session:
// pi takes the last line of a file for its end, and follows the parents. Mirrors
// of older versions of goclaw can end with a line of another program's.
func closing(ctx context.Context, st session.Store, id session.ID, last session.Record, w io.Writer) error {
	in, err := session.Stat(ctx, st, id)
	if err != nil || in.Leaf == "" || last.ID == in.Leaf {
		return err
	}
	if last.ID != "" && last.Link == session.Given && last.Parent != "" && (!last.Side || last.Parent == in.Leaf) {
		return nil
	}
	r := session.Record{ID: fmt.Sprintf("goclaw.leaf.%d", in.Last+1), Parent: in.Leaf, Time: in.Updated, Body: session.Leaf{Target: in.Leaf}}
	line, err := codec.Native.Encode(r)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}
