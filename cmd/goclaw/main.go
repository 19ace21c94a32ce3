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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"goclaw/internal/models"
	"goclaw/internal/process"
	"goclaw/internal/repl"
	"goclaw/internal/transcript"
)

func main() {
	process.CollectLate()
	process.Hide()
	a := newApp(os.Stdin, os.Stdout, os.Stderr, os.Getenv)
	a.spawn = process.SpawnSelf
	os.Exit(start(a, os.Args[1:]))
}

// run is main for tests, within their process.
func run(args []string, in io.Reader, out, errOut io.Writer, getenv func(string) string) int {
	return start(newApp(in, out, errOut, getenv), args)
}

// start does what args say and returns the exit code: 0 done, 1 failed, 2 wrong
// usage, 130 stopped by Ctrl-C.
func start(a *app, args []string) int {
	ctx, over := untilSignal(a.env)
	defer over()
	defer a.close()
	root := rootCmd(a)
	root.SetArgs(dashed(root, args, a.env))
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if !errors.Is(err, errQuiet) && !a.lists.candidates(err) {
		transcript.Say(a.err, "goclaw: %s", transcript.Problem(err))
		if h := hint(err); h != "" {
			transcript.Say(a.err, "  %s", h)
		}
	}
	var u *usageError
	var name *models.NameError
	switch {
	case errors.As(err, &u), errors.As(err, &name):
		return 2
	case a.interrupted.Load():
		return 130
	}
	return 1
}

// patience is how long a command may take to end after a signal: an answer is
// recorded, and a tool ended.
const patience = 5 * time.Second

// untilSignal returns a context that SIGTERM or SIGHUP ends. It ends the process if
// the command does not end then: it waits for input, or something in it hangs. A
// SIGTERM after that ends the process at once; not a SIGHUP, which a terminal that
// is closed and its shell both send. over says that the command has ended.
func untilSignal(e *env) (ctx context.Context, over func()) {
	ctx, cancel := context.WithCancel(context.Background())
	sig, end := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(sig, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case <-end:
			return
		case <-sig:
		}
		cancel()
		late := time.After(patience + time.Duration(e.grace.Load()))
		for again := os.Signal(syscall.SIGHUP); again == syscall.SIGHUP; {
			select {
			case <-end:
				return
			case again = <-sig:
			case <-late:
				transcript.Say(e.err, "goclaw: ended by the signal, while it was still waiting for something")
				again = nil
			}
		}
		e.tty.restore()
		os.Exit(128 + int(syscall.SIGTERM))
	}()
	return ctx, func() {
		signal.Stop(sig)
		close(end)
		cancel()
	}
}

// sessionFlag describes --session, newFlag --new.
const (
	sessionFlag = "the session: its key, id, title, a part of one, or its number in the last list"
	newFlag     = "start the session that --session names if it does not exist; the name must be a complete key, such as main:cli:trip"
)

// flagTakes says what a flag of a type takes.
var flagTakes = map[string]string{"int": "a number", "bool": "true or false", "duration": "a time such as 90s or 2m"}

func rootCmd(a *app) *cobra.Command {
	var open opening
	root := &cobra.Command{
		Use:   "goclaw",
		Short: "An agent that never loses a conversation",
		Long: `goclaw keeps every conversation as an append-only log and resumes it after a
restart, a crash or a full context window.

Without a command it opens a chat and resumes the last session.`,
		Example: `  goclaw                              chat; resumes where you left off
  goclaw -c                           continue the latest session of this folder
  goclaw -r                           choose a session, by its title or what was said
  goclaw ask "what did we decide?"    one turn, then exit
  git diff | goclaw ask "review this" standard input is attached
  goclaw sessions                     list the sessions
  goclaw sessions show trip           read one (by key, id, title, part of one, or number)
  goclaw setup                        find keys and models, and write the configuration
  goclaw doctor                       check the configuration, the model and every log`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || open.pick {
				return nil
			}
			if c, _, err := cmd.Find([]string{"sessions", args[0]}); err == nil && c.Name() != "sessions" {
				return usage("there is no command %q: did you mean %q?", args[0], "sessions "+c.Name())
			}
			if n := nearestCommand(cmd, args[0]); n != "" {
				return usage("there is no command %q: did you mean %q?", args[0], n)
			}
			text := transcript.OneLine(strings.Join(args, " "), 60)
			return usage("there is no command %q: to ask the model, type goclaw ask %q; goclaw --help lists the commands", transcript.OneLine(args[0], 60), text)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			open.text = strings.Join(args, " ")
			ref, err := open.session(cmd.Context(), a)
			if err != nil {
				return err
			}
			var pick *repl.Pick
			if open.pick && ref == "" {
				pick = &repl.Pick{Text: open.text}
			}
			return chat(cmd.Context(), a, ref, mayBegin(a.env, open.new), pick)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		var wrong *pflag.InvalidValueError
		if errors.As(err, &wrong) {
			if takes := flagTakes[wrong.GetFlag().Value.Type()]; takes != "" {
				return usage("--%s takes %s, not %q", wrong.GetFlag().Name, takes, transcript.OneLine(wrong.GetValue(), 60))
			}
		}
		hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
		if n := nearestFlag(cmd, err); n != "" {
			hint = "did you mean " + n + "?"
		}
		return usage("%v: %s", err, hint)
	})
	root.PersistentFlags().StringVar(&a.models.Flag, "model", "", "provider/model to ask, or offline")
	root.Flags().StringVar(&a.models.Think, "think", "", thinkFlag)
	root.Flags().BoolVar(&a.plain, "plain", false, "chat in plain lines, without drawing on the terminal (also with TERM=dumb)")
	open.flags(root.Flags())
	a.given.flags(root.Flags())
	root.AddCommand(
		askCmd(a), newCmd(a), searchCmd(a), serveCmd(a), acpCmd(a), mcpCmd(a), sessionsCmd(a), contextCmd(a), compactCmd(a), importCmd(a),
		backupCmd(a), restoreBackupCmd(a), doctorCmd(a), secretsCmd(a), modelsCmd(a), usageCmd(a), checkpointCmd(a),
		setupCmd(a), configCmd(a), manCmd(a),
	)
	arrange(root)
	root.SetHelpCommand(helpCmd())
	completionCmd(root)
	completions(a, root)
	return root
}

// arrange puts the commands into the groups of the help.
func arrange(root *cobra.Command) {
	for _, g := range []struct{ title, commands string }{
		{"Conversations:", "ask new search sessions context compact"},
		{"Set up:", "setup config models import"},
		{"Other programs:", "serve acp mcp"},
		{"Maintenance:", "doctor backup restore secrets usage"},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, name := range strings.Fields(g.commands) {
			subcommand(root, name).GroupID = g.title
		}
	}
}
