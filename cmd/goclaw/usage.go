package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/near"
)

// nearestFlag returns the flag of cmd that the one err complains about may be a
// misspelling of, or "".
func nearestFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return near.Nearest("--"+unknown.GetSpecifiedName(), names)
}

// nearestCommand returns the command below cmd that name may be a misspelling
// of, or "".
func nearestCommand(cmd *cobra.Command, name string) string {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
		names = append(names, c.Aliases...)
	}
	return near.Nearest(name, names)
}

// helpCmd is cobra's help, except that an unknown command is an error.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			on := cmd.Root()
			for i, name := range args {
				next := subcommand(on, name)
				if next == nil {
					path := strings.Join(args[:i+1], " ")
					if n := nearestCommand(on, name); n != "" {
						return usage("there is no command %q: did you mean %q?", path, strings.Join(append(slices.Clone(args[:i]), n), " "))
					}
					return usage("there is no command %q: %s --help lists the commands", path, on.CommandPath())
				}
				on = next
			}
			return on.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			on := cmd.Root()
			for _, name := range args {
				if on = subcommand(on, name); on == nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
			}
			var out []cobra.Completion
			for _, c := range on.Commands() {
				if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), typed) {
					out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func subcommand(of *cobra.Command, name string) *cobra.Command {
	for _, c := range of.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// exactly is cobra.ExactArgs with our messages and exit code.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("%s needs %s: see %s --help", cmd.CommandPath(), strings.Join(names[len(args):], " and "), cmd.CommandPath())
		case len(args) > len(names):
			return usage("%s does not take %q: see %s --help", cmd.CommandPath(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s does not take %q: see %s --help", cmd.CommandPath(), args[n], cmd.CommandPath())
		}
		return nil
	}
}
