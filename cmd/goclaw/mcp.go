package main

import (
	"github.com/spf13/cobra"

	"goclaw/internal/mcpd"
)

func mcpCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve search to other agents (MCP), or let the model use their tools",
		Long: `Serves the Model Context Protocol on standard input and output: the tools
session_search, session_read, memory_search and memory_get over all sessions
and the memory files of the workspace. They change nothing.

Other agents start it themselves, for example with
  {"mcpServers": {"goclaw": {"command": "goclaw", "args": ["mcp"]}}}

The commands below are for the other direction: servers whose tools the model
may call.`,
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ix, err := a.search.index()
			if err != nil {
				return err
			}
			ix.Background()
			a.stores.LookSoon(cmd.Context())
			defer a.stores.Follow(cmd.Context(), a.stores.Store, func(string) {})()
			var tools []mcpd.Tool
			for _, t := range ix.Tools() {
				tools = append(tools, t)
			}
			return mcpd.Serve(cmd.Context(), tools, version(), a.in, a.data())
		},
	}
	cmd.AddCommand(mcpAddCmd(a), mcpListCmd(a), mcpRemoveCmd(a))
	return cmd
}
