package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/inherit"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/session"
)

// completer returns what a word that is being typed can become.
type completer = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective)

// words completes to fixed words.
func words(names ...string) completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return beginning(names, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(names []string, typed string) []cobra.Completion {
	var out []cobra.Completion
	for _, n := range names {
		if strings.HasPrefix(n, typed) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// keyAt completes the arguments from number first to number last (0 is the
// first one) to the keys of sessions, or to ids if one was begun. last -1 is no
// limit.
func keyAt(a *app, first, last int, trash bool) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if n := len(args); n < first {
			return nil, cobra.ShellCompDirectiveDefault
		} else if last >= 0 && n > last {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return sessionKeys(cmd.Context(), a, typed, trash), cobra.ShellCompDirectiveNoFileComp
	}
}

// sessionKeys are the keys of sessions that begin with what was typed, each with
// its title. Completing changes nothing: no store is made, and nothing is
// imported.
func sessionKeys(ctx context.Context, a *app, typed string, trash bool) []cobra.Completion {
	a.stores.noImport, a.stores.readOnly = true, true
	c, err := a.config()
	if err != nil {
		return nil
	}
	if _, err := os.Stat(c.Session.Path); err != nil && c.Session.Store != "postgres" {
		return nil
	}
	st, err := a.stores.open()
	if err != nil {
		return nil
	}
	var out []cobra.Completion
	seen := map[string]bool{}
	for in, err := range st.List(ctx, session.Query{Trash: trash}) {
		if err != nil {
			return out
		}
		name := string(in.Key)
		if !strings.HasPrefix(name, typed) && typed != "" {
			name = string(in.ID)
		}
		if strings.HasPrefix(name, typed) && !seen[name] && transcript.Printable(name) == name && !strings.ContainsAny(name, " \t\n") {
			seen[name] = true
			out = append(out, cobra.CompletionWithDesc(name, transcript.OneLine(transcript.Printable(naming.Title(ctx, st, in)), 60)))
		}
	}
	return out
}

// modelNames completes to the names of models.
func modelNames(a *app) completer {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if _, err := a.config(); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found := beginning(a.models.names(), typed)
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completionCmd gives root cobra's command that prints the scripts, with an
// error for a shell that it does not know.
func completionCmd(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd := subcommand(root, "completion")
	cmd.Short = "Print what your shell needs to complete commands, sessions and models"
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage("completion knows bash, zsh, fish and powershell, not %q", args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// completions makes the shell complete sessions, models and the values of
// flags in all commands below root.
func completions(a *app, root *cobra.Command) {
	args := map[string]completer{
		"goclaw sessions restore": keyAt(a, 0, 0, true),
		"goclaw sessions verify":  keyAt(a, 0, -1, false),
		"goclaw sessions copy":    keyAt(a, 1, -1, false),
		"goclaw secrets scan":     keyAt(a, 0, 0, false),
		"goclaw secrets redact":   keyAt(a, 0, 0, false),
	}
	flags := map[string]completer{
		"session": keyAt(a, 0, -1, false), "model": modelNames(a), "from": words(inherit.Programs...), "source": words(inherit.Programs...), "to": words("sqlite", "jsonl", "postgres"),
		"role": words("user", "assistant", "tool", "summary"), "format": words("native", "claw0", "claw0-old", "markdown", "html", "json"),
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		switch known, ok := args[c.CommandPath()]; {
		case ok:
			c.ValidArgsFunction = known
		case strings.Contains(c.Use, " KEY"):
			c.ValidArgsFunction = keyAt(a, 0, 0, false)
		}
		for name, complete := range flags {
			if c.LocalNonPersistentFlags().Lookup(name) == nil && (name != "model" || c != root) {
				continue
			}
			if err := c.RegisterFlagCompletionFunc(name, complete); err != nil {
				panic(err) // a flag that is there and not yet registered
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(root)
}
