package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goclaw/agent"
	"goclaw/internal/acpd"
	"goclaw/internal/config"
	"goclaw/internal/permits"
	"goclaw/internal/spending"
	"goclaw/llm"
	"goclaw/session"
	"goclaw/tool"
	"goclaw/window"
)

func acpCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "acp",
		Short: "Be the agent of an editor that speaks the Agent Client Protocol",
		Long: `Speaks the Agent Client Protocol on standard input and output, so that Zed,
JetBrains, Neovim, Emacs, VS Code and others can list, open and continue
sessions. Editors start it themselves, for example with
  {"agent_servers": {"goclaw": {"command": "goclaw", "args": ["acp"]}}}`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := a.stores.Imported(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := a.search.index(); err != nil {
				return err
			}
			defer a.stores.Follow(cmd.Context(), st, func(trouble string) { a.warn("%s", trouble) })()
			return acpd.Serve(cmd.Context(), editorHost{newBackend(a)}, version(), a.in, a.data())
		},
	}
	a.given.flags(cmd.Flags())
	return cmd
}

// editorHost is what an editor talks to.
type editorHost struct{ b *backend }

// usable says why an editor cannot work in a folder, if so.
func (h editorHost) usable(folder string) error {
	if fi, err := os.Stat(folder); err != nil || !fi.IsDir() {
		return fmt.Errorf("%s is not a folder here", folder)
	}
	if err := permits.Fence(h.b.conf).Check(folder); err != nil {
		return fmt.Errorf("%s is goclaw's own: open another folder", folder)
	}
	return nil
}

func (h editorHost) Begin(ctx context.Context, folder string) (session.Info, error) {
	if err := h.usable(folder); err != nil {
		return session.Info{}, err
	}
	key := session.Key("main:editor:" + time.Now().UTC().Format("20060102-150405.000000"))
	return h.b.Begin(ctx, session.Header{Key: key, CWD: folder})
}

func (h editorHost) Find(ctx context.Context, id session.ID) (session.Info, error) {
	return h.b.Find(ctx, string(id), false)
}

func (h editorHost) List(ctx context.Context, folder, after string) ([]session.Info, string, error) {
	return h.b.List(ctx, url.Values{"folder": {folder}, "after": {after}})
}

func (h editorHost) Continue(ctx context.Context, in session.Info) (session.Info, error) {
	return h.b.Continue(ctx, in)
}

func (h editorHost) Open(ctx context.Context, id session.ID) (*session.Session, error) {
	return session.Replay(id, h.b.stores.Store.Read(ctx, id, 0))
}

func (h editorHost) Window(ctx context.Context, in session.Info) (size, used int, usd float64, err error) {
	s, err := session.Open(ctx, h.b.stores.Store, in.ID)
	if err != nil {
		return 0, 0, 0, err
	}
	sub := h.b.at(h.b.folderOf(in))
	m, err := sub.models.ForContext(ctx, s, false)
	if err != nil {
		return 0, 0, 0, err
	}
	usd, err = spending.Of(ctx, h.b.stores.Store, h.b.conf, in.ID)
	return m.Budget.Window, window.Explain(s, sub.prompt(m, s), m.Tokens, m.Budget).Budget.Used, usd, err
}

func (h editorHost) Seat(ctx context.Context, in session.Info, folder string, servers []acpd.Server, ask tool.Approver) (acpd.Seat, error) {
	if err := h.usable(folder); err != nil {
		return nil, err
	}
	sub := h.b.at(folder)
	if len(servers) > 0 {
		sub.conf.MCPServers = maps.Clone(sub.conf.MCPServers)
		if sub.conf.MCPServers == nil {
			sub.conf.MCPServers = map[string]config.MCPServer{}
		}
		for _, s := range servers {
			sub.conf.MCPServers[s.Name] = verbatim(s)
		}
	}
	x := &asked{ask: ask, remember: sub.remember}
	t, err := newTurns(context.WithoutCancel(ctx), sub, x)
	if err != nil {
		return nil, err
	}
	return editorSeat{t, in.ID}, nil
}

// verbatim returns an editor's server for the configuration, in which $ begins
// the name of a variable.
func verbatim(s acpd.Server) config.MCPServer {
	text := func(t string) string { return strings.ReplaceAll(t, "$", "$$") }
	out := config.MCPServer{Command: text(s.Command), URL: text(s.URL), Env: map[string]string{}, Headers: map[string]string{}}
	for _, a := range s.Args {
		out.Args = append(out.Args, text(a))
	}
	for name, value := range s.Env {
		out.Env[name] = text(value)
	}
	for name, value := range s.Headers {
		out.Headers[name] = text(value)
	}
	return out
}

// editorSeat runs the turns of one session for an editor.
type editorSeat struct {
	*turns
	id session.ID
}

func (s editorSeat) Run(ctx context.Context, in llm.Message) iter.Seq2[agent.Event, error] {
	return s.RunID(ctx, s.id, in)
}

func (s editorSeat) Mode() tool.Mode     { return s.tools.Mode() }
func (s editorSeat) SetMode(m tool.Mode) { s.tools.SetMode(m) }
func (s editorSeat) Close()              { s.turns.close() }
