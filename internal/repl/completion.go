package repl

import (
	"context"
	"slices"
	"strings"
	"sync"

	"goclaw/internal/transcript"
	"goclaw/session"
)

// Completion is something that a command, or its argument, can be.
type Completion struct {
	Text string // a command begins with its slash
	Args string // what a command takes, as help shows it
	Help string
	Runs bool // nothing more is needed
	Also bool // another name of a command
}

// completions are what the chat offered last. It makes them whenever it begins to
// wait for a line, because what they are made of is its own; any goroutine may ask
// for them, at once and at any time.
type completions struct {
	mu        sync.Mutex
	shortcuts []Completion
	arguments map[*command][]Completion
}

// offer makes the completions again.
func (c *Chat) offer() {
	if !c.o.Interactive {
		return
	}
	short, args := c.commands.short.completions(), map[*command][]Completion{}
	for i := range c.commands.list {
		cmd := &c.commands.list[i]
		if cmd.complete == nil {
			continue
		}
		seen := map[string]bool{}
		for _, o := range cmd.complete() {
			if !seen[o] {
				seen[o] = true
				args[cmd] = append(args[cmd], Completion{Text: o, Runs: cmd.names[0] != "export"})
			}
		}
	}
	c.completions.mu.Lock()
	defer c.completions.mu.Unlock()
	c.completions.shortcuts, c.completions.arguments = short, args
}

// Completions returns the commands, and what else /name stands for.
func (r Remote) Completions() (out []Completion) {
	c := r.Chat.commands
	for _, cmd := range c.list {
		for i, name := range cmd.names {
			if len(name) > 1 {
				help := cmd.help
				if i > 0 {
					help = "the same as /" + cmd.names[0]
				}
				out = append(out, Completion{Text: "/" + name, Args: cmd.args, Help: help, Runs: cmd.args == "" || cmd.args[0] == '[', Also: i > 0})
			}
		}
	}
	offered := &r.Chat.completions
	offered.mu.Lock()
	defer offered.mu.Unlock()
	return append(out, offered.shortcuts...)
}

// Arguments returns what the argument of a command can be. If that takes time,
// later returns it.
func (r Remote) Arguments(command string) (now []Completion, later func() []Completion) {
	cmd := r.Chat.commands.named(command)
	if cmd == nil {
		return nil, nil
	}
	if strings.Contains(cmd.args, "KEY") {
		return nil, r.Chat.commands.sessionKeys
	}
	offered := &r.Chat.completions
	offered.mu.Lock()
	defer offered.mu.Unlock()
	return offered.arguments[cmd], nil
}

// sessionKeys returns the keys of the sessions, the one used last first, with
// their titles.
func (c *commands) sessionKeys() (out []Completion) {
	var all []session.Info
	for in, err := range c.o.Store.List(context.Background(), session.Query{}) {
		if err != nil {
			break
		}
		if k := string(in.Key); !in.Subagent() && cell(k, len(k)) == k {
			all = append(all, in)
		}
	}
	slices.SortStableFunc(all, func(a, b session.Info) int { return b.Updated.Compare(a.Updated) })
	seen := map[session.Key]bool{}
	for _, in := range all {
		if !seen[in.Key] {
			seen[in.Key] = true
			out = append(out, Completion{Text: string(in.Key), Help: transcript.Name(in.Title), Runs: true})
		}
	}
	return out
}
