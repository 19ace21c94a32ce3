package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"goclaw/agent"
	"goclaw/internal/acpd"
	"goclaw/internal/models"
	"goclaw/internal/permits"
	"goclaw/internal/spending"
	"goclaw/llm"
	"goclaw/recall"
	"goclaw/runner"
	"goclaw/session"
	"goclaw/tool"
	"goclaw/tool/fetch"
	"goclaw/window"
)

// waitLocked is how long a turn waits for a session that another process has
// locked.
const waitLocked = 30 * time.Second

// turns runs turns with tools.
type turns struct {
	*runner.Runner
	tools   *tool.Set
	servers *servers
}

// close waits a moment for work in the background.
func (t *turns) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	t.Close(ctx)
	t.tools.Close()
	t.servers.close()
}

// newTurns opens what is needed to run turns. ask may be nil: then the model's
// commands are refused.
func newTurns(ctx context.Context, a *app, ask tool.Approver) (*turns, error) {
	st, err := a.stores.Imported(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := newTools(a, ask)
	if err != nil {
		return nil, err
	}
	servers := connect(ctx, a, tools)
	r := runner.New(runner.Options{
		Store: st, Clock: session.System{}, Who: cmp.Or(a.who, whoAmI()), Wait: waitLocked, TTLFor: a.conf.Session.Retention.For,
		Env: func(ctx context.Context, s *session.Session) (agent.Env, error) {
			m, _, err := a.models.Decide(ctx, s)
			if err != nil {
				return agent.Env{}, err
			}
			servers.ready(ctx)
			if a.models.Flag == m.Name() {
				a.models.AllowNamed(m)
			}
			prompt := a.prompt(m, s)
			tools.SetReadable(a.brief.Readable())
			env := a.models.Env(m)
			env.Prompt, env.Tools = prompt, toolsOf{tools, s.ID}
			env.MaxCalls, env.MaxSteps = a.conf.Limits.CallsPerAnswer, a.conf.Limits.StepsPerTurn
			env.Before = func(ctx context.Context, used, next llm.Usage) (int, error) {
				return m.Affordable(ctx, a.conf.Limits, a.spentToday, used, next)
			}
			return env, nil
		},
		Learnt: a.models.Learn,
		Retrying: func(r agent.Retrying) {
			if a.retrying != nil {
				a.retrying(r)
			}
		},
		Detach:  func(id session.ID) bool { return detach(a, id) },
		Working: a.tellWorking,
	})
	return &turns{r, tools, servers}, nil
}

// spentToday returns what all sessions have cost today.
func (a *app) spentToday(ctx context.Context) (float64, error) {
	if a.today == nil {
		a.today = spending.NewDay(a.stores.Store, a.conf)
	}
	return a.today.Sum(ctx, time.Now())
}

// prompt returns what the requests of s to m begin with.
func (a *app) prompt(m *models.Model, s *session.Session) window.Prompt {
	a.brief.Read(s, m.Budget.Window)
	p := a.brief.Prompt(m.Prompt(a.conf))
	if m.Thinks {
		p.Thinking, _ = a.models.Level(s)
	}
	return p
}

// newTools returns the tools of a turn, those that search among them.
func newTools(a *app, ask tool.Approver) (*tool.Set, error) {
	c := a.conf
	// A folder that is not there yet cannot be told from the private one above it.
	if own := filepath.Join(c.Home, "workspace"); c.Memory == own {
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, err
		}
	}
	if err := permits.CheckWorkspace(c); err != nil {
		return nil, err
	}
	mode, err := tool.ParseMode(c.Tools.Mode)
	if err != nil {
		return nil, err
	}
	confine, err := permits.Sandbox(c, a.getenv)
	if err != nil {
		return nil, err
	}
	allowed, err := permits.Rules(c, a.warn)
	if err != nil {
		return nil, err
	}
	if c.Tools.Bash == "on" {
		ask = permits.CommandsUnasked{Ask: ask}
	}
	tools, err := tool.New(tool.Options{
		Workspace: c.Workspace, Memory: c.Memory, Fence: permits.Fence(c), Now: time.Now, Mode: mode, Ask: ask, Rules: allowed, DisableBash: c.Tools.Bash == "off",
		BashTimeout: time.Duration(c.Tools.BashTimeout), Env: os.Environ(), Sandbox: confine,
	})
	if err != nil {
		return nil, err
	}
	err = a.search.addTools(tools)
	if err == nil && c.Tools.Fetch.Enabled {
		err = tools.Add(fetch.New(fetch.Options{UserAgent: "goclaw/" + version(), Private: c.Tools.Fetch.Private, Proxy: http.ProxyFromEnvironment}))
	}
	if err != nil {
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
	return t.Set.Run(acpd.WithCall(recall.Asking(ctx, t.id), call), call)
}

// whoAmI tells another goclaw which program has locked a session.
func whoAmI() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("%s on %s", filepath.Base(os.Args[0]), host)
}
