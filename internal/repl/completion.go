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

// completions are asked for by any goroutine. What they are made of belongs to
// the chat, which keeps idle locked while it is doing something; meanwhile they
// are what they were before.
type completions struct {
	idle   sync.Mutex
	mu     sync.Mutex
	before map[string][]Completion // by command; "": the commands
}

// while calls f unless the chat is doing something, and returns the last result.
func (c *completions) while(command string, f func() []Completion) []Completion {
	if c.idle.TryLock() {
		got := f()
		c.idle.Unlock()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.before == nil {
			c.before = map[string][]Completion{}
		}
		c.before[command] = got
		return got
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.before[command]
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
	return append(out, r.Chat.completions.while("", func() (out []Completion) {
		for _, s := range c.short.list() {
			called := c.short.callName(s.Name, s.Skill)
			out = append(out, Completion{Text: "/" + called, Args: s.Args, Help: s.Help, Runs: s.Args == ""})
			if long := "skill:" + s.Name; s.Skill && called != long {
				out = append(out, Completion{Text: "/" + long, Args: s.Args, Help: "the same as /" + called, Runs: s.Args == "", Also: true})
			}
		}
		return out
	})...)
}

// Arguments returns what the argument of a command can be.
func (r Remote) Arguments(command string) (out []Completion) {
	c := r.Chat.commands
	cmd := c.named(command)
	switch {
	case cmd == nil || cmd.complete == nil:
		return nil
	case strings.Contains(cmd.args, "KEY"):
		return c.sessionKeys()
	}
	return r.Chat.completions.while(command, func() (out []Completion) {
		for _, o := range cmd.complete() {
			if !slices.ContainsFunc(out, func(c Completion) bool { return c.Text == o }) {
				out = append(out, Completion{Text: o, Runs: command != "export"})
			}
		}
		return out
	})
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
