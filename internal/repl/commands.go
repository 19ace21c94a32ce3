package repl

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"goclaw/internal/near"
	"goclaw/llm"
	"goclaw/runner"
	"goclaw/session"
)

// command is something said to the chat, not to the model.
type command struct {
	names []string // help shows the first
	args  string
	help  string
	run   func(ctx context.Context, arg string) error
	// complete returns what the argument can be; nil: anything, or the key of a
	// session, which takes longer to list.
	complete func() []string
}

// commands are the chat's commands. They change the chat and the session, and
// tell the view what there is to show.
type commands struct {
	o    *Options
	chat *Chat
	cur  *current
	view *view

	list  []command
	short *shortcuts
}

func newCommands(chat *Chat) *commands {
	c := &commands{o: &chat.o, chat: chat, cur: chat.cur, view: chat.view}
	c.short = &shortcuts{o: c.o, chat: chat, view: c.view, commands: c}
	find := &finds{o: c.o, view: c.view, commands: c}
	tree := &branches{chat: chat, cur: c.cur, view: c.view}
	model := &modelCommands{o: c.o, chat: chat, cur: c.cur, view: c.view}
	sums := &compactions{o: c.o, chat: chat, cur: c.cur, view: c.view}
	tools := &toolCommands{o: c.o, cur: c.cur, view: c.view}
	pin := func(label string) func(context.Context, string) error {
		return func(ctx context.Context, ref string) error { return c.label(ctx, ref, label) }
	}
	quit := func(context.Context, string) error {
		chat.leaving = true
		return nil
	}
	c.list = []command{
		{[]string{"new"}, "[label]", "start a new session", c.new, nil},
		{[]string{"sessions", "list"}, "[--all] [text|all]", "list the sessions, most recently used first; --all: subagents' as well", c.sessions, nil},
		{[]string{"switch"}, "[KEY]", "switch to another session: its number in the last list, or a part of its key or title", c.switchTo, nil},
		{[]string{"history"}, "[n|all]", "show the last turns of this session", c.history, nil},
		{[]string{"delete"}, "KEY", "move a session to the trash", c.delete, nil},
		{[]string{"search", "find"}, searchArgs, "search conversations and notes, with goclaw search's filters (--here, --since ...)", find.search, nil},
		{[]string{"open"}, "N", "open hit N of the last search, with what surrounds it", find.open, nil},
		{[]string{"context"}, "", "show what fills the model's window", c.context, nil},
		{[]string{"compact"}, "[--dry-run] [focus]", "replace earlier turns with a summary; focus says what to stress", sums.compact, nil},
		{[]string{"undo"}, "", "undo the last compaction", sums.undo, nil},
		{[]string{"checkpoints"}, "", "list the summaries made in advance", sums.checkpoints, nil},
		{[]string{"model"}, "[name|N|all]", "list the models that can be used, or change to one", model.model, c.o.Models},
		{[]string{"think"}, "[level]", "show or change how much the model thinks (off, low, high ...)", model.think, model.levels},
		{[]string{"mode"}, "[ask|edits|plan|all]", "show or change what is done without asking", tools.mode, func() []string { return modeNames }},
		{[]string{"skills"}, "", "list the skills, with what they take of the window", c.short.skills, nil},
		{[]string{"show"}, "[N]", "show what a tool returned last, or the whole of record N", tools.show, nil},
		{[]string{"title"}, "[text]", "show or change this session's title", c.title, nil},
		{[]string{"rewind"}, "[N]", "go back to before your last message, or message N, and change it", tree.rewind, nil},
		{[]string{"tree"}, "[N]", "list the branches of this session; with N, switch to one", tree.tree, nil},
		{[]string{"fork"}, "[key]", "continue in a copy of this session", c.fork, nil},
		{[]string{"merge"}, "", "add what was said since in the imported session that this one continues", c.merge, nil},
		{[]string{"pin"}, "[record]", "keep a message word for word in every compaction", pin(session.Pin), nil},
		{[]string{"unpin"}, "[record]", "remove the pin", pin(""), nil},
		{[]string{"export"}, "[format] [file]", "write this session to a new file (markdown, native, claw0)", c.export, func() []string { return []string{"markdown", "native", "claw0"} }},
		{[]string{"continue"}, "", "continue an interrupted turn", c.goOn, nil},
		{[]string{"thinking"}, "[on|off]", "show or hide the model's thinking", c.showThinking, func() []string { return []string{"on", "off"} }},
		{[]string{"help", "?"}, "", "show this list", c.help, nil},
		{[]string{"quit", "exit", "q"}, "", "leave (also quit, exit and Ctrl-D)", quit, nil},
	}
	return c
}

// named returns the command called name, nil if there is none.
func (c *commands) named(name string) *command {
	for i := range c.list {
		if slices.Contains(c.list[i].names, name) {
			return &c.list[i]
		}
	}
	return nil
}

// run does what text, which begins with a slash, says.
func (c *commands) run(ctx context.Context, text string) error {
	name, arg, _ := strings.Cut(text[1:], " ")
	if i := strings.IndexByte(name, '\n'); i >= 0 {
		name, arg = name[:i], name[i:]+" "+arg
	}
	arg = strings.TrimSpace(arg)
	cmd := c.named(strings.ToLower(name))
	if cmd == nil {
		return c.short.send(ctx, name, arg)
	}
	if cmd.args == "" && arg != "" {
		return fmt.Errorf("/%s takes no argument", cmd.names[0])
	}
	if err := cmd.checkFlags(arg); err != nil {
		return err
	}
	if cmd.args == "KEY" && arg == "" {
		return fmt.Errorf("/%s needs a KEY: /sessions lists them", cmd.names[0])
	}
	if cmd.takesText() { // "--" only says that text follows
		if rest, ok := strings.CutPrefix(arg, "-- "); ok {
			arg = strings.TrimSpace(rest)
		}
	}
	return cmd.run(ctx, arg)
}

func (c *commands) unknown(name string) error {
	var names []string
	for _, cmd := range c.list {
		names = append(names, cmd.names...)
	}
	for _, s := range c.short.list() {
		names = append(names, s.Name)
	}
	name = strings.ToLower(name)
	if n := near.Nearest(name, names); n != "" {
		return fmt.Errorf("there is no /%s: did you mean /%s?", name, n)
	}
	return fmt.Errorf("there is no /%s: /help lists the commands, and //%s sends it to the model", name, name)
}

// isFlag matches what was meant as a flag. Some systems turn two typed dashes
// into one long one.
var isFlag = regexp.MustCompile(`^(--?|[–—])[\pL]`)

// checkFlags refuses a flag that the command does not have: treating it as text
// would do something nobody asked for. In plain text, such as a title, only the
// beginning is checked, and nothing after "--".
func (c command) checkFlags(arg string) error {
	if c.args == searchArgs { // it reads them itself
		return nil
	}
	for _, word := range strings.Fields(arg) {
		switch {
		case word == "--", !isFlag.MatchString(word) && c.takesText():
			return nil
		case !isFlag.MatchString(word) || slices.Contains(c.flags(), word):
			continue
		}
		if n := near.Nearest(word, c.flags()); n != "" {
			return fmt.Errorf("/%s has no flag %s: did you mean %s?", c.names[0], word, n)
		}
		text := ""
		if c.takesText() {
			text = fmt.Sprintf("; /%s -- %s uses it as text", c.names[0], word)
		}
		return fmt.Errorf("/%s has no flag %s%s", c.names[0], word, text)
	}
	return nil
}

// flags returns the flags that the usage of the command names.
func (c command) flags() []string {
	var out []string
	for _, word := range strings.Fields(c.args) {
		if word = strings.Trim(word, "[]"); isFlag.MatchString(word) {
			out = append(out, word)
		}
	}
	return out
}

// takesText reports whether the argument is plain text from its first word on.
func (c command) takesText() bool {
	return slices.Contains([]string{"[label]", "[text]", "[--all] [text|all]"}, c.args)
}

func (c *commands) help(context.Context, string) error {
	c.view.terms(Remote{c.chat}.Commands())
	c.short.help()
	c.view.print("//text sends /text to the model.")
	if c.o.Display == nil { // lines are read as the terminal gives them
		c.view.print("End a line with \\ to write several lines; Ctrl-C stops an answer.")
	} else {
		c.view.print("? on an empty input shows the keys.")
	}
	return nil
}

func (c *commands) goOn(ctx context.Context, _ string) error {
	s, err := c.cur.open(ctx)
	if err != nil {
		return err
	}
	if !runner.Resumable(s) {
		return errors.New("nothing was interrupted: there is nothing to continue")
	}
	c.chat.turn(ctx, llm.Message{})
	return nil
}

func (c *commands) showThinking(_ context.Context, arg string) error {
	shown := arg == "on" || arg == "" && !c.view.thinking.Load()
	if !slices.Contains([]string{"", "on", "off"}, arg) {
		return fmt.Errorf("/thinking takes on or off, not %q: it shows or hides; /think says how much", arg)
	}
	c.view.thinking.Store(shown)
	if shown {
		c.view.note("thinking is shown")
	} else {
		c.view.note("thinking is hidden")
	}
	return nil
}
