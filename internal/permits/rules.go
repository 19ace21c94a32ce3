package permits

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"goclaw/internal/config"
	"goclaw/internal/wholefile"
	"goclaw/tool"
)

// Rules returns what is allowed without a question: by the configuration, by
// flags, and by what the user answered before, here or anywhere.
func Rules(c *config.Loaded, warn func(format string, args ...any)) ([]tool.Rule, error) {
	var out []tool.Rule
	for _, text := range c.Tools.Allow {
		rule, err := tool.ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("%s: tools.allow: %w", c.Source("tools.allow"), err)
		}
		out = append(out, rule)
	}
	data, err := wholefile.Read(filepath.Join(c.Home, "allowed"), wholefile.Small)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		warn("what you allowed for good cannot be read: %v", err)
	}
	for line := range strings.Lines(string(data)) {
		// Older lines have one command, allowed anywhere, and no folder.
		var dir, text string
		switch n, _ := fmt.Sscanf(line, "%q %q", &dir, &text); {
		case n == 1:
			out = append(out, tool.Exactly(dir))
		case n == 2 && dir == c.Workspace:
			if rule, err := tool.ParseRule(text); err == nil {
				out = append(out, rule)
			}
		}
	}
	return out, nil
}

// Remember allows what rule covers in this workspace for good. Tools cannot
// write the file: it is outside their fence.
func Remember(c *config.Loaded, rule tool.Rule) error {
	return wholefile.Append(filepath.Join(c.Home, "allowed"), fmt.Appendf(nil, "%q %q\n", c.Workspace, rule.String()))
}

// CommandsUnasked allows commands, and asks about the rest.
type CommandsUnasked struct{ Ask tool.Approver }

// Approve implements tool.Approver.
func (c CommandsUnasked) Approve(ctx context.Context, r tool.Request) (tool.Decision, error) {
	switch {
	case r.Tool == "bash":
		return tool.Once, nil
	case c.Ask == nil:
		return tool.No, tool.ErrNoOne
	}
	return c.Ask.Approve(ctx, r)
}
