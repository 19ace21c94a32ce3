package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"goclaw/internal/manual"
)

func manCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "man [DIR]",
		Short: "Print the manual page, or write those of all commands into a folder",
		Long: `Prints the manual page of goclaw. With DIR it writes a page for each command, and
one for the settings, into that folder, as man expects them.`,
		Example: `  goclaw man | man -l -
  goclaw man ~/.local/share/man      then: man goclaw-ask`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return manual.Manual{Version: version()}.Page(a.out, cmd.Root())
			}
			n, err := manual.Manual{Version: version()}.Write(args[0], cmd.Root())
			if err != nil {
				return err
			}
			return a.print(fmt.Sprintf("wrote %d pages below %s", n, args[0]))
		},
	}
}
