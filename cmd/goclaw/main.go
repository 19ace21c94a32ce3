// Command goclaw is an agent in the terminal whose conversations survive
// restarts, crashes and full context windows.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/near"
	"goclaw/internal/transcript"
	"goclaw/session"
)

func main() {
	os.Exit(start(&app{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.Getenv, spawn: spawnSelf}, os.Args[1:]))
}

// run is main without the process: what a test calls.
func run(args []string, in io.Reader, out, errOut io.Writer, getenv func(string) string) int {
	return start(&app{in: in, out: out, err: errOut, getenv: getenv}, args)
}

// start does what args say and returns the exit code: 0 done, 1 failed, 2 wrong
// usage, 130 stopped by Ctrl-C.
func start(a *app, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	defer a.close()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errQuiet) {
		say(a.err, "goclaw: %s", oneLine(err))
		if h := hint(err); h != "" {
			fmt.Fprintln(a.err, "  "+h)
		}
	}
	var u *usageError
	switch {
	case errors.As(err, &u):
		return 2
	case a.interrupted.Load():
		return 130
	}
	return 1
}

// errQuiet fails without another word: what is wrong was already shown.
var errQuiet = errors.New("failed")

// usageError is a command line that cannot be meant.
type usageError struct{ error }

func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}

// hinted is an error about which there is something to do that only its
// command knows.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }

// noRecord says where to find the records of the session id, if err is that
// there is no such one.
func noRecord(err error, id session.ID) error {
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return &hinted{err, fmt.Sprintf("goclaw sessions show %s --records lists its records", id)}
}

// noSession says how a session is begun, if err is that there is none to say
// something in.
func (a *app) noSession(err error) error {
	var none *session.NoneError
	if !errors.As(err, &none) {
		return err
	}
	example := "main:cli:trip"
	if p := session.Key(a.conf.Session.DefaultKey).Parts(); p.Agent != "" && p.Channel != "" {
		example = p.Agent + ":" + p.Channel + ":trip"
	}
	return &hinted{err, "goclaw sessions lists what there is; a whole key, such as " + example + ", begins a session"}
}

// hint says what to do about an error, where there is something.
func hint(err error) string {
	var amb *session.AmbiguousError
	var held *session.HeldError
	var own *hinted
	switch {
	case errors.As(err, &own):
		return own.hint
	case errors.As(err, &amb):
		return "type more of the key, or the id"
	case errors.As(err, &held):
		return "wait for it, or continue in a copy: goclaw sessions fork " + string(held.ID)
	case errors.Is(err, session.ErrNotFound):
		return "goclaw sessions lists what there is; goclaw sessions --trash what was deleted"
	case errors.Is(err, session.ErrStale):
		return "goclaw doctor --fix makes the index anew from the logs"
	}
	return modelHint(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "goclaw",
		Short: "An agent whose conversations survive",
		Long: `goclaw keeps every conversation as an append-only log and takes it up again
after a restart, a crash or a full context window.

Without a command it opens a chat and resumes the last session.`,
		Example: `  goclaw                              chat; resumes where you left off
  goclaw ask "what did we decide?"    one turn, then exit
  git diff | goclaw ask "review this" standard input is attached
  goclaw sessions                     list the conversations
  goclaw sessions show main           read one (a key, an id, a title, or the beginning of one)
  goclaw doctor                       check config, store and every log
  goclaw completion bash              what your shell needs to complete commands, sessions and models`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if n := nearestCommand(cmd, args[0]); n != "" {
				return usage("there is no command %q: did you mean %q?", args[0], n)
			}
			text := transcript.OneLine(strings.Join(args, " "), 60)
			return usage("there is no command %q: goclaw ask %q asks that, and goclaw --help lists the commands", transcript.OneLine(args[0], 60), text)
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.chat(cmd.Context()) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
		if n := nearestFlag(cmd, err); n != "" {
			hint = "did you mean " + n + "?"
		}
		return usage("%v: %s", err, hint)
	})
	root.PersistentFlags().StringVar(&a.model, "model", "", "provider/model to ask, or offline")
	root.Flags().StringVarP(&a.session, "session", "s", "", "the session to open: its key, id, title, or the beginning of one; a whole new key, such as main:cli:trip, begins one")
	root.AddCommand(a.askCmd(), a.searchCmd(), a.mcpCmd(), a.sessionsCmd(), a.contextCmd(), a.compactCmd(), a.importCmd(), a.doctorCmd(), a.configCmd(), a.checkpointCmd())
	root.SetHelpCommand(helpCmd())
	completionCmd(root)
	a.completions(root)
	return root
}

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

// helpCmd is cobra's, but that a command that is not there is an error.
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

// exactly is cobra.ExactArgs with our words and exit code.
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
