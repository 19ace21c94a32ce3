package main

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"goclaw/internal/asjson"
	"goclaw/internal/naming"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func sessionsCmd(a *app) *cobra.Command {
	cmd := listCmd(a)
	cmd.Use, cmd.Aliases = "sessions", []string{"session"}
	cmd.Short = "List the sessions, and work with them"
	cmd.Long = `Lists the sessions, the most recently used first. The commands below take
a KEY: a session's key, its id, its title, a part of one of them, or its number
in the list that was printed last. If several sessions fit, they are listed. A
key of three parts or more stands for itself, except in the channel cli, for at
least 8 characters of a UUID or another long hex id at the end, and for an
agent's main session (agent:ID:main).`
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if n := nearestCommand(cmd, args[0]); n != "" {
			return usage("there is no command \"sessions %s\": did you mean \"sessions %s\"?", args[0], n)
		}
		return usage("there is no command \"sessions %s\": see goclaw sessions --help", args[0])
	}
	cmd.AddCommand(showCmd(a), newCmd(a), renameCmd(a), deleteCmd(a), restoreCmd(a), forkCmd(a), mergeCmd(a), exportCmd(a), copyCmd(a), verifyCmd(a), tailCmd(a), listCmd(a))
	return cmd
}

func listCmd(a *app) *cobra.Command {
	var q naming.Choice
	var asJSON, here bool
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the sessions, as sessions does without a command",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if here && q.Folder != "" {
				return usage("--here is --folder with the current folder: give one of them")
			}
			if here {
				q.Folder = "."
			}
			if q.Folder != "" {
				var err error
				if q.Folder, err = filepath.Abs(q.Folder); err != nil {
					return err
				}
			}
			return listSessions(cmd.Context(), a, q, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print a list of objects")
	f.IntVarP(&q.Limit, "limit", "n", 0, "at most this many (0: all)")
	f.StringVar(&q.Agent, "agent", "", "only this agent's")
	f.StringVar(&q.Channel, "channel", "", "only this channel's")
	f.StringVar(&q.Text, "text", "", "only those with this text in key, id or title")
	f.BoolVar(&here, "here", false, "only those that worked in this folder or below it")
	f.BoolVar(&q.All, "all", false, "subagents' sessions, too")
	f.StringVar(&q.Folder, "folder", "", "only those that worked in that folder or below it")
	f.BoolVar(&q.Trash, "trash", false, "those in the trash")
	return cmd
}

func listSessions(ctx context.Context, a *app, q naming.Choice, asJSON bool) error {
	if q.Limit < 0 {
		return usage("--limit must not be negative")
	}
	st, err := a.stores.Imported(ctx)
	if err != nil {
		return err
	}
	a.stores.Look(ctx)
	rows := []asjson.Session{}
	var infos []session.Info
	for in, err := range naming.List(ctx, st, q) {
		if err != nil {
			return err
		}
		rows, infos = append(rows, asjson.SessionOf(in)), append(infos, in)
	}
	if len(rows) == 0 && a.placed.Moved != "" {
		a.warn("%s", a.placed.Moved)
	}
	switch {
	case asJSON:
		return a.printJSON(rows)
	case len(rows) > 0:
		return a.lists.printSessions(infos)
	case q.Folder != "":
		return a.print("no session worked in " + transcript.Name(q.Folder))
	case q != naming.Choice{Query: session.Query{Limit: q.Limit}, All: q.All}:
		return a.print("no session matches")
	}
	return a.print("no sessions yet: goclaw starts the first")
}
