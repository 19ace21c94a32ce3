package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
)

func (a *app) configCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show every setting and where it came from",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if asJSON {
				return a.configJSON(c)
			}
			st := a.style()
			fmt.Fprintf(a.out, "%s\n", st.Dim("file: "+c.File))
			for _, l := range c.Leaves() {
				v, err := json.Marshal(l.Value)
				if err != nil {
					return err
				}
				fmt.Fprintf(a.out, "%-42s %s  %s\n", l.Key, v, st.Dim("("+c.Source(l.Key)+")"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	cmd.AddCommand(&cobra.Command{
		Use:   "init",
		Short: "Write a commented file with every setting",
		Args:  atMost(0),
		RunE: func(*cobra.Command, []string) error {
			home, err := config.Home(a.getenv)
			if err != nil {
				return err
			}
			path := filepath.Join(home, "config.json")
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
			if err != nil {
				return err
			}
			if said, err := io.ReadAll(f); err != nil || len(bytes.TrimSpace(said)) > 0 {
				f.Close()
				return cmp.Or(err, fmt.Errorf("%s is there already: goclaw config shows what it says", path))
			}
			if err := cmp.Or(f.Chmod(0o600), f.Truncate(0)); err != nil {
				f.Close()
				return err
			}
			if _, err := f.WriteAt(config.Sample(), 0); err != nil {
				f.Close()
				return err
			}
			if err := f.Close(); err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "wrote %s\n", path)
			return err
		},
	})
	return cmd
}

func (a *app) configJSON(c *config.Loaded) error {
	type entry struct {
		Key    string `json:"key"`
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	out := []entry{}
	for _, l := range c.Leaves() {
		out = append(out, entry{l.Key, l.Value, c.Source(l.Key)})
	}
	return a.printJSON(out)
}
