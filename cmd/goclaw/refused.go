package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"goclaw/agent"
	"goclaw/internal/shell"
	"goclaw/internal/transcript"
	"goclaw/tool"
)

// unasked is the Approver of a turn that has no one to ask. It remembers what
// was refused for that, so that the user is told.
type unasked struct {
	mu      sync.Mutex
	refused []tool.Request
}

func (u *unasked) Approve(_ context.Context, r tool.Request) (tool.Decision, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refused = append(u.refused, r)
	return tool.No, tool.ErrNoOne
}

// event returns what was refused; nil if nothing was.
func (u *unasked) event() agent.Event {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.refused) == 0 {
		return nil
	}
	return refused{of: slices.Clone(u.refused)}
}

// refused says what a turn did not do because no one could be asked.
type refused struct {
	agent.Event
	of []tool.Request
}

// namedRefused is how many calls, and flags, the line for people names.
const namedRefused = 3

// text says in one line what was refused, and what would allow it.
func (r refused) text() string {
	var calls, flags, how []string
	add := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	private := false
	for _, q := range r.of {
		add(&calls, q.Tool+" "+transcript.OneLine(cmp.Or(q.Command, q.Path, q.URL), 60))
		if flag := allowing(q); flag != "" {
			add(&flags, flag)
		} else {
			private = true
		}
	}
	if more := len(calls) - namedRefused; more > 0 {
		calls = append(calls[:namedRefused], fmt.Sprintf("and %d more", more))
	}
	if len(flags) > namedRefused {
		flags = []string{"--mode all"}
	}
	if len(flags) > 0 {
		how = append(how, strings.Join(flags, " ")+" allows it")
	}
	if private {
		how = append(how, "a command that names goclaw's own files can be allowed only on a terminal")
	}
	return transcript.Printable(fmt.Sprintf("not done, because there is no terminal to ask on: %s (%s)", strings.Join(calls, ", "), strings.Join(how, "; ")))
}

// allowing returns the flag that would have allowed r; "" if none does.
func allowing(r tool.Request) string {
	switch {
	case !r.Private:
		return "--allow " + shell.Quote([]string{r.Rule.String()})
	case r.Path != "":
		return "--mode all"
	}
	return ""
}

func (r refused) fields() map[string]any {
	var calls []map[string]any
	for _, q := range r.of {
		c := map[string]any{"tool": q.Tool, "allow": allowing(q)}
		for name, value := range map[string]string{"command": q.Command, "path": q.Path, "url": q.URL} {
			if value != "" {
				c[name] = value
			}
		}
		calls = append(calls, c)
	}
	return map[string]any{"refused": calls}
}
