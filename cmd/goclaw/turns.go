package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"goclaw/agent"
	"goclaw/internal/repl"
	"goclaw/internal/repl/line"
	"goclaw/internal/terminal"
	"goclaw/internal/wholefile"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
)

// waitLocked is how long a turn waits for a session that another process has
// locked.
const waitLocked = 30 * time.Second

// turns runs turns with tools.
type turns struct {
	*runner.Runner
	tools *tool.Set
}

// close waits a moment for work in the background.
func (t *turns) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t.Close(ctx)
	t.tools.Close()
}

// newTurns opens what is needed to run turns. ask may be nil: then the model's
// commands are refused.
func newTurns(ctx context.Context, a *app, ask tool.Approver) (*turns, error) {
	st, err := a.stores.imported(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := newTools(a, ask)
	if err != nil {
		return nil, err
	}
	r := runner.New(runner.Options{
		Store: st, Clock: session.System{}, Who: whoAmI(), Wait: waitLocked, TTLFor: a.conf.Session.Retention.For,
		Env: func(ctx context.Context, s *session.Session) (agent.Env, error) {
			m, _, err := a.models.decide(ctx, s)
			if err != nil {
				return agent.Env{}, err
			}
			if a.models.flag == m.name() {
				a.models.allowNamed(m)
			}
			env := agent.Env{
				Provider: m.Provider, Prompt: m.prompt(a.conf), Tools: toolsOf{tools, s.ID}, Budget: m.budget, Tokens: m.tokens, API: m.api, Price: m.cost,
				Accepted: m.accepted, Fixed: m.fixed, Took: func(prompt int) { a.models.took(m, prompt) },
				MaxCalls: a.conf.Limits.CallsPerAnswer, MaxSteps: a.conf.Limits.StepsPerTurn, Before: a.affordable,
			}
			a.models.policy(&env, m)
			return env, nil
		},
		Learnt: a.models.learn,
		Detach: func(id session.ID) bool { return detach(a, id) },
	})
	return &turns{r, tools}, nil
}

// newTools returns the tools of a turn, those that search among them.
func newTools(a *app, ask tool.Approver) (*tool.Set, error) {
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
	tools, err := tool.New(tool.Options{
		Workspace: c.Workspace, Fence: fence(c), Now: time.Now, Ask: ask, DisableBash: c.Tools.Bash == "off",
		BashTimeout: time.Duration(c.Tools.BashTimeout), Env: os.Environ(), Allowed: a.allowed(c.Home),
	})
	if err != nil {
		return nil, err
	}
	if err := a.search.addTools(tools); err != nil {
		tools.Close()
		return nil, err
	}
	return tools, nil
}

// toolsOf are the tools that the session id calls: its searches leave out what
// it has just asked.
type toolsOf struct {
	*tool.Set
	id session.ID
}

func (t toolsOf) Run(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	return t.Set.Run(recall.Asking(ctx, t.id), call)
}

// whoAmI tells another goclaw which program has locked a session.
func whoAmI() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("%s on %s", filepath.Base(os.Args[0]), host)
}

// allowed returns the commands that the user has allowed for good. Tools cannot
// write the file: it is outside their fence.
func (e *env) allowed(home string) []string {
	data, err := wholefile.Read(filepath.Join(home, "allowed"), wholefile.Small)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			e.warn("the commands that were allowed for good cannot be read: %v", err)
		}
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

// allow remembers a command as allowed for good.
func (e *env) allow(cmd string) error {
	return wholefile.Append(filepath.Join(e.conf.Home, "allowed"), fmt.Appendf(nil, "%q\n", cmd))
}

// approver asks the user on the terminal before a command runs. Without a
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
	return repl.Approver{Style: e.style(), Show: func(text string) { fmt.Fprintln(out, text) }, Ask: in.Ask, Allow: e.allow}
}
