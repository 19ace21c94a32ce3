package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/agent"
	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
)

// waitHeld is how long a session in another's hands is waited for.
const waitHeld = 30 * time.Second

// runner returns what runs turns, and what ends it: it waits a moment for
// work in the background.
func (a *app) runner(ctx context.Context, ask tool.Approver) (*runner.Runner, func(), error) {
	st, err := a.store()
	if err != nil {
		return nil, nil, err
	}
	a.firstStart(ctx, st)
	if _, err := a.config(); err != nil {
		return nil, nil, err
	}
	tools, err := a.toolSet(ask)
	if err != nil {
		return nil, nil, err
	}
	r := runner.New(runner.Options{
		Store: st, Clock: session.System{}, Who: whoAmI(), Wait: waitHeld, TTLFor: a.conf.Session.Retention.For,
		Env: func(ctx context.Context, s *session.Session) (agent.Env, error) {
			v, _, err := a.decide(ctx, s)
			if err != nil {
				return agent.Env{}, err
			}
			env := agent.Env{
				Provider: v.Provider, Prompt: v.prompt(a.conf), Tools: asking{tools, s.ID}, Budget: v.budget, Tokens: v.tokens, API: v.api, Price: v.cost,
			}
			a.guard(&env, v)
			return env, nil
		},
		Learnt: a.learn, Detach: a.detach,
	})
	return r, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.Close(ctx)
		tools.Close()
	}, nil
}

// toolSet returns the tools of a turn.
func (a *app) toolSet(ask tool.Approver) (*tool.Set, error) {
	tools, err := a.tools(ask)
	if err != nil {
		return nil, err
	}
	if err := a.recallTools(tools); err != nil {
		tools.Close()
		return nil, err
	}
	a.specs = tools.Specs()
	return tools, nil
}

func (a *app) tools(ask tool.Approver) (*tool.Set, error) {
	c := a.conf
	if err := checkWorkspace(c); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Workspace, 0o700); err != nil {
		return nil, err
	}
	if c.Tools.Bash == "on" {
		ask = tool.ApproverFunc(func(context.Context, tool.Request) (tool.Decision, error) { return tool.Once, nil })
	}
	return tool.New(tool.Options{
		Workspace: c.Workspace, Fence: fence(c), Now: time.Now, Ask: ask, DisableBash: c.Tools.Bash == "off",
		BashTimeout: time.Duration(c.Tools.BashTimeout), Env: os.Environ(), Allowed: a.allowed(),
	})
}

// whoAmI tells another goclaw who holds a session.
func whoAmI() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("%s on %s", filepath.Base(os.Args[0]), host)
}

// allowed returns the commands that the user has allowed for always. Tools
// cannot write the file: it is behind the fence.
func (a *app) allowed() []string {
	data, err := os.ReadFile(filepath.Join(a.conf.Home, "allowed"))
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		var cmd string
		if _, err := fmt.Sscanf(line, "%q", &cmd); err == nil {
			out = append(out, cmd)
		}
	}
	return out
}

// allow remembers a command as allowed for always.
func (a *app) allow(cmd string) error {
	f, err := os.OpenFile(filepath.Join(a.conf.Home, "allowed"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%q\n", cmd)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// approver asks the user on the terminal before a command runs. Without one,
// or in quiet, the answer is no.
func (a *app) approver(quiet bool) tool.Approver {
	if quiet {
		return nil
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	// Lines are read when there is a question, and not before: what is typed
	// ahead is for someone else, and standard input is never an answer.
	in := line.NewPlain(tty, tty)
	return repl.Approver{Style: a.style(), Show: func(text string) { fmt.Fprintln(tty, text) }, Ask: in.Ask, Allow: a.allow}
}
