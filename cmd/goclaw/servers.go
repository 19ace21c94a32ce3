package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"goclaw/internal/config"
	"goclaw/internal/mcpc"
	"goclaw/internal/secrets"
	"goclaw/internal/transcript"
	"goclaw/tool"
)

// servers are the MCP servers of the configuration. They are connected to in
// the background, so that a start does not wait for them; a turn does.
type servers struct {
	done   chan struct{} // is closed when client and said are there
	client *mcpc.Client
	said   []string // what the user should know
	stop   context.CancelFunc
}

// connect begins to connect to the configured servers. Their tools are added to
// tools.
func connect(ctx context.Context, a *app, tools *tool.Set) *servers {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &servers{done: make(chan struct{}), stop: stop}
	list := enabled(a.conf)
	if len(list) == 0 {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		client, found, problems := mcpc.Connect(ctx, list, version())
		s.client = client
		for _, p := range problems {
			s.said = append(s.said, transcript.Problem(p))
		}
		for _, t := range found {
			if err := tools.Add(t); err != nil {
				s.said = append(s.said, fmt.Sprintf("a tool of an MCP server cannot be used: %s", transcript.Problem(err)))
			}
		}
	}()
	return s
}

// ready waits until all servers have answered or failed.
func (s *servers) ready(ctx context.Context) bool {
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// news waits until the servers are ready, and returns what the user was not told
// yet.
func (s *servers) news(ctx context.Context) []string {
	if !s.ready(ctx) {
		return nil
	}
	said := s.said
	s.said = nil
	return said
}

func (s *servers) close() {
	s.stop()
	<-s.done
	if s.client != nil {
		s.client.Close()
	}
}

// enabled returns the servers to connect to.
func enabled(c *config.Loaded) map[string]mcpc.Server {
	out := map[string]mcpc.Server{}
	for name, s := range c.MCPServers {
		if !s.Disabled {
			out[name] = serverOf(c, s)
		}
	}
	return out
}

// serverOf returns how s is reached. It gets no keys but those that its own
// settings name.
func serverOf(c *config.Loaded, s config.MCPServer) mcpc.Server {
	fill := func(text string) string {
		return os.Expand(text, func(name string) string {
			if name == "$" { // written $$
				return name
			}
			return os.Getenv(name)
		})
	}
	out := mcpc.Server{Command: fill(s.Command), URL: fill(s.URL), Dir: c.Workspace, Env: secrets.Environment(os.Environ()), Headers: map[string]string{}}
	for _, arg := range s.Args {
		out.Args = append(out.Args, fill(arg))
	}
	for name, value := range s.Env {
		out.Env = append(out.Env, name+"="+fill(value))
	}
	for name, value := range s.Headers {
		out.Headers[name] = fill(value)
	}
	return out
}

func mcpAddCmd(a *app) *cobra.Command {
	var env, header []string
	cmd := &cobra.Command{
		Use:   "add NAME COMMAND [ARGUMENTS] | NAME URL",
		Short: "Let the model use the tools of an MCP server",
		Long: `Writes a server into the configuration: a program that is started, or an
address. Flags of the program follow "--".`,
		Example: `  goclaw mcp add files -- npx -y @modelcontextprotocol/server-filesystem /srv
  goclaw mcp add --header 'Authorization=Bearer ${TOKEN}' tickets https://tickets.example/mcp`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("goclaw mcp add needs a NAME, and a COMMAND or a URL: see goclaw mcp add --help")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return addServer(a, args[0], args[1:], env, header) },
	}
	cmd.Flags().StringArrayVar(&env, "env", nil, "NAME=VALUE for the environment of the program (can be repeated)")
	cmd.Flags().StringArrayVar(&header, "header", nil, "NAME=VALUE to send with every request (can be repeated)")
	return cmd
}

func addServer(a *app, name string, how, env, header []string) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	if _, there := c.MCPServers[name]; there {
		return fmt.Errorf("there is an MCP server %s already: goclaw mcp remove %s removes it", name, name)
	}
	server := map[string]any{}
	isURL := strings.HasPrefix(how[0], "http://") || strings.HasPrefix(how[0], "https://")
	switch {
	case isURL && len(how) > 1:
		return usage("an address takes no arguments, but there is %q", how[1])
	case isURL && len(env) > 0 || !isURL && len(header) > 0:
		return usage("--env is for a program and --header for an address")
	case isURL:
		server["type"], server["url"] = "http", how[0]
	default:
		server["command"] = how[0]
		if len(how) > 1 {
			server["args"] = how[1:]
		}
	}
	for key, list := range map[string][]string{"env": env, "headers": header} {
		pairs := map[string]string{}
		for _, kv := range list {
			k, v, ok := strings.Cut(kv, "=")
			if !ok || k == "" {
				return usage("%q is not NAME=VALUE", kv)
			}
			pairs[k] = v
		}
		if len(pairs) > 0 {
			server[key] = pairs
		}
	}
	if err := config.Edit(c.File, []string{"mcpServers", name}, server); err != nil {
		return err
	}
	return a.print(fmt.Sprintf("added %s to %s; goclaw mcp list tries it", transcript.Name(name), c.File))
}

func mcpRemoveCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an MCP server from the configuration",
		Args:  exactly("NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.config()
			if err != nil {
				return err
			}
			if _, there := c.MCPServers[args[0]]; !there {
				return fmt.Errorf("there is no MCP server %s: goclaw mcp list shows them", args[0])
			}
			if err := config.Edit(c.File, []string{"mcpServers", args[0]}, nil); err != nil {
				return err
			}
			return a.print("removed " + transcript.Name(args[0]))
		},
	}
}

func mcpListCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Connect to the MCP servers and list their tools",
		Long: `Connects to every MCP server that is not disabled, and lists their tools. Exits 0
when all of them answered, 1 when not.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return listServers(cmd.Context(), a, asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a list of objects")
	return cmd
}

// serverRow is an MCP server in JSON.
type serverRow struct {
	Name    string   `json:"name"`
	Where   string   `json:"where"`
	State   string   `json:"state"` // connected, disabled or failed
	Problem string   `json:"problem,omitempty"`
	Tools   []string `json:"tools"`
}

func listServers(ctx context.Context, a *app, asJSON bool) error {
	c, err := a.config()
	if err != nil {
		return err
	}
	rows := []serverRow{}
	for _, name := range slices.Sorted(maps.Keys(c.MCPServers)) {
		s := c.MCPServers[name]
		row := serverRow{Name: name, Where: s.URL, State: "disabled", Tools: []string{}}
		if s.Command != "" {
			row.Where = strings.Join(append([]string{s.Command}, s.Args...), " ")
		}
		row.Where, _ = secrets.Redact(row.Where)
		if !s.Disabled {
			row.State = "connected"
			client, tools, problems := mcpc.Connect(ctx, map[string]mcpc.Server{name: serverOf(c, s)}, version())
			for _, p := range problems {
				row.State, row.Problem = "failed", strings.TrimPrefix(transcript.Problem(p), "MCP server "+name+": ")
			}
			for _, t := range tools {
				row.Tools = append(row.Tools, t.Spec().Name)
			}
			client.Close()
		}
		rows = append(rows, row)
	}
	if asJSON {
		err = a.printJSON(rows)
	} else {
		err = printServers(a.env, rows)
	}
	if err == nil && slices.ContainsFunc(rows, func(r serverRow) bool { return r.Problem != "" }) {
		err = errQuiet // the row says it
	}
	return err
}

// printServers shows rows to people.
func printServers(e *env, rows []serverRow) error {
	if len(rows) == 0 {
		return e.print("there are no MCP servers: goclaw mcp add NAME COMMAND adds one")
	}
	table := [][]string{{"NAME", "STATE", "TOOLS", "WHERE"}}
	for _, r := range rows {
		table = append(table, []string{transcript.Name(r.Name), r.State, fmt.Sprint(len(r.Tools)), transcript.OneLine(transcript.Name(r.Where), 60)})
	}
	if err := e.print(transcript.Table(table, e.style(), e.columns())...); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Problem != "" {
			e.warn("MCP server %s: %s", r.Name, r.Problem)
		}
		if len(r.Tools) > 0 {
			transcript.Say(e.out, "%s: %s", transcript.Name(r.Name), strings.Join(r.Tools, ", "))
		}
	}
	return nil
}
