package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"goclaw/internal/config"
	"goclaw/internal/permits"
	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/tool"
)

// given is what the flags say about where and how the tools work.
type given struct {
	workspace, mode  string
	sandbox, network string
	allow            []string
}

func (g *given) flags(f *pflag.FlagSet) {
	f.StringVar(&g.workspace, "workspace", "", "the folder that tools work in (default: the current one)")
	f.StringVar(&g.mode, "mode", "", "what is done without asking: ask (nothing), edits, plan (only reading) or all")
	f.StringVar(&g.sandbox, "sandbox", "", "let commands write only below the workspace: auto (in the mode all), on or off")
	f.StringVar(&g.network, "network", "", "whether commands may use the network: on or off")
	f.StringArrayVar(&g.allow, "allow", nil, `do not ask about commands that begin with these words, such as "bash(go test)" (can be repeated)`)
}

// apply puts the flags in the place of settings.
func (g given) apply(c *config.Loaded) error {
	if g.workspace != "" {
		info, err := os.Stat(g.workspace)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return usage("--workspace: there is no folder %s", g.workspace)
		case err != nil:
			return usage("--workspace: %v", err)
		case !info.IsDir():
			return usage("--workspace: %s is not a folder", g.workspace)
		}
		if c.Workspace, err = filepath.Abs(g.workspace); err != nil {
			return err
		}
		c.Sources["workspace"] = "--workspace"
	}
	if g.mode != "" {
		if _, err := tool.ParseMode(g.mode); err != nil {
			return usage("--mode: %v", err)
		}
		c.Tools.Mode, c.Sources["tools.mode"] = g.mode, "--mode"
	}
	if g.sandbox != "" {
		if _, err := tool.ParseSandboxUse(g.sandbox); err != nil {
			return usage("--sandbox: %v", err)
		}
		c.Tools.Sandbox, c.Sources["tools.sandbox"] = g.sandbox, "--sandbox"
	}
	switch g.network {
	case "":
	case "on", "off":
		c.Tools.Network, c.Sources["tools.network"] = g.network, "--network"
	default:
		return usage("--network must be on or off, not %q", g.network)
	}
	for _, text := range g.allow {
		if _, err := tool.ParseRule(text); err != nil {
			return usage("--allow: %v", err)
		}
	}
	c.Tools.Allow = append(c.Tools.Allow, g.allow...)
	return nil
}

// approver asks the user on the terminal before something is done. Without a
// terminal it is nil.
func (e *env) approver() tool.Approver {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	// Lines are read when there is a question, and not before: what is typed
	// ahead is for someone else, and standard input is never an answer.
	out := terminal.NewWriter(tty)
	in := line.NewPlain(tty, out)
	return repl.Approver{Style: e.style(), Show: func(text string) { fmt.Fprintln(out, text) }, Ask: in.Ask, Remember: e.remember}
}

// asker asks yes-or-no questions on the terminal. It is nil if there is none, or
// if nobody would see the question.
func asker(e *env) func(context.Context, string) (bool, error) {
	if !terminal.Is(e.err) {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	in := line.NewPlain(tty, tty)
	return func(ctx context.Context, question string) (bool, error) {
		answer, err := in.Ask(ctx, question+" [y/N] ")
		return line.Yes(answer), err
	}
}

// remember allows what rule covers in this workspace for good.
func (e *env) remember(rule tool.Rule) error { return permits.Remember(e.conf, rule) }
