package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/inherit"
	"goclaw/internal/models"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/provider/offline"
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
// its title; else titles, or ids, that do. Completing changes nothing: no store is made, and nothing is
// imported.
func sessionKeys(ctx context.Context, a *app, typed string, trash bool) []cobra.Completion {
	a.stores.NoImport, a.stores.ReadOnly = true, true
	c, err := a.config()
	if err != nil {
		return nil
	}
	if _, err := os.Stat(c.Session.Path); err != nil && c.Session.Store != "postgres" {
		return nil
	}
	st, err := a.stores.Open()
	if err != nil {
		return nil
	}
	var out []cobra.Completion
	seen := map[string]bool{}
	for in, err := range st.List(ctx, session.Query{Trash: trash}) {
		if err != nil {
			return out
		}
		if in.Subagent() {
			continue
		}
		name, about := string(in.Key), ""
		switch {
		case strings.HasPrefix(name, typed):
		case strings.HasPrefix(in.Title, typed):
			name, about = in.Title, name
		default:
			name = string(in.ID)
		}
		if strings.HasPrefix(name, typed) && !seen[name] && transcript.Printable(name) == name && !strings.ContainsAny(name, "\t\n\"'`$\\!*?;&|<>") {
			seen[name] = true
			if about == "" {
				about = naming.Title(ctx, st, in)
			}
			out = append(out, cobra.CompletionWithDesc(name, transcript.OneLine(transcript.Printable(about), 60)))
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
		found := beginning(a.models.Names(), typed)
		slices.Sort(found)
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// configKeys completes to the names of settings, each with its meaning, and then
// to what the setting can be.
func configKeys(a *app) completer {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := a.config()
		switch {
		case err != nil:
		case len(args) == 0:
			return settingNames(c, typed), cobra.ShellCompDirectiveNoFileComp
		case len(args) == 1 && (args[0] == "model" || args[0] == "session.checkpoint.model"):
			return modelNames(a)(cmd, args, typed)
		case len(args) == 1:
			return beginning(config.Choices(args[0]), typed), cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// settingNames are the names of settings that begin with what was typed. Those of
// an entry are known if the entry is.
func settingNames(c *config.Loaded, typed string) []cobra.Completion {
	var out []cobra.Completion
	add := func(name, key string) {
		if strings.HasPrefix(name, typed) && transcript.Printable(name) == name && !strings.ContainsAny(name, " \t\n") {
			out = append(out, cobra.CompletionWithDesc(name, transcript.OneLine(config.Meaning(key), 60)))
		}
	}
	for _, key := range config.Keys() {
		before, after, inEntry := strings.Cut(key, ".NAME.")
		if !inEntry {
			add(key, key)
		}
		for _, name := range c.Entries(before) {
			if inEntry {
				add(before+"."+name+"."+after, key)
			}
		}
	}
	return out
}

// names completes the first argument to what list returns.
func names(a *app, list func(*config.Loaded) []string) completer {
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := a.config()
		if err != nil || len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(list(c), typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// folders completes to folders.
func folders(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completionCmd gives root cobra's command that prints the scripts, with an
// error for a shell that it does not know. The one for bash also works where the
// package bash-completion is missing.
func completionCmd(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd := subcommand(root, "completion")
	cmd.Short = "Print a script that makes your shell complete commands, sessions and models"
	cmd.Long = `Prints a script that makes Tab complete commands, flags, sessions, models and
settings. The help of each command below says how to install it.`
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage("completion knows bash, zsh, fish and powershell, not %q", args[0])
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	bash := subcommand(cmd, "bash")
	bash.RunE = func(cmd *cobra.Command, _ []string) error {
		plain, err := cmd.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var b strings.Builder
		if err := root.GenBashCompletionV2(&b, !plain); err != nil {
			return err
		}
		_, err = io.WriteString(root.OutOrStdout(), strings.Replace(b.String(), theirWords, ourWords, 1))
		return err
	}
}

// ourWords does what bash-completion does for theirWords, if that is missing:
// bash splits words at : and =, which are parts of ours.
const (
	theirWords = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	ourWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local line=$COMP_LINE i word
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        if ((i > 0)) && [[ -n $word && $line == "$word"* ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        line=${line#*"$word"}
        ((i == COMP_CWORD)) && cword=$((${#words[@]} - 1))
    done
    cur=${words[cword]}
    prev=
    ((cword > 0)) && prev=${words[cword-1]}
    return 0
`
)

// completions makes the shell complete sessions, models, settings and the values
// of flags in all commands below root.
func completions(a *app, root *cobra.Command) {
	args := map[string]completer{
		"goclaw sessions restore": keyAt(a, 0, 0, true),
		"goclaw sessions verify":  keyAt(a, 0, -1, false),
		"goclaw sessions copy":    keyAt(a, 1, -1, false),
		"goclaw secrets scan":     keyAt(a, 0, 0, false),
		"goclaw secrets redact":   keyAt(a, 0, 0, false),
		"goclaw config set":       configKeys(a),
		"goclaw mcp remove":       names(a, func(c *config.Loaded) []string { return c.Entries("mcpServers") }),
		"goclaw models forget": names(a, func(c *config.Loaded) (out []string) {
			for _, f := range models.Facts(c) {
				out = append(out, f.Name)
			}
			return out
		}),
	}
	flags := map[string]completer{
		"session": keyAt(a, 0, -1, false), "model": modelNames(a), "from": words(inherit.Programs...), "source": words(inherit.Programs...), "to": words("sqlite", "jsonl", "postgres"),
		"role": words("user", "assistant", "tool", "summary"), "format": words("native", "claw0", "claw0-old", "markdown", "html", "json"),
		"mode": words(config.Choices("tools.mode")...), "think": words(config.Choices("thinking")...), "by": words("day", "model", "session", "both"),
		"provider": words(append(models.Providers(), offline.Name)...), "since": words("today", "yesterday", "7d", "30d"), "until": words("today", "yesterday"),
		"workspace": folders, "folder": folders, "allow": words(), "title": words(), "base-url": words(),
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
