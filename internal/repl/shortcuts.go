package repl

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"goclaw/internal/text"
	"goclaw/internal/transcript"
	"goclaw/llm"
)

// Shortcut is something that /Name stands for: a prompt template or a skill.
type Shortcut struct {
	Name  string
	Args  string // what it takes, as its author writes it
	Help  string
	Skill bool
}

// Skill is a skill as /skills shows it.
type Skill struct {
	Name, Description, Path string
	Line                    string // what the model is told; "": nothing
}

// shortcuts are the commands that send prompt templates and skills.
type shortcuts struct {
	o        *Options
	chat     *Chat
	view     *view
	commands *commands // they go first
}

func (c *shortcuts) list() []Shortcut {
	if c.o.Shortcuts == nil {
		return nil
	}
	return c.o.Shortcuts()
}

// completions are what the input offers.
func (c *shortcuts) completions() (out []Completion) {
	for _, s := range c.list() {
		called := c.callName(s.Name, s.Skill)
		out = append(out, Completion{Text: "/" + called, Args: s.Args, Help: s.Help, Runs: s.Args == ""})
		if long := "skill:" + s.Name; s.Skill && called != long {
			out = append(out, Completion{Text: "/" + long, Args: s.Args, Help: "the same as /" + called, Runs: s.Args == "", Also: true})
		}
	}
	return out
}

// callable is what the name of a shortcut may be.
var callable = regexp.MustCompile(`^/[A-Za-z0-9][A-Za-z0-9_.:-]*$`)

// has reports whether word, which begins a line, calls a shortcut.
func (c *shortcuts) has(word string) bool {
	if c.o.Expand == nil || !callable.MatchString(word) {
		return false
	}
	_, _, ok, _ := c.o.Expand(word[1:], "")
	return ok
}

// send sends what /name stands for.
func (c *shortcuts) send(ctx context.Context, name, args string) error {
	if c.o.Expand == nil {
		return c.commands.unknown(name)
	}
	text, from, ok, err := c.o.Expand(name, args)
	switch {
	case !ok:
		return c.commands.unknown(name)
	case err != nil:
		return fmt.Errorf("/%s: %w", name, err)
	case strings.TrimSpace(text) == "":
		return fmt.Errorf("/%s: %s is empty", name, from)
	}
	c.view.note("/%s sends %s (%s)", name, from, transcript.Count(strings.Count(text, "\n")+1, "line"))
	c.chat.turn(ctx, llm.UserText(text))
	return nil
}

// callName is what a shortcut is called by: one that has the name of a command
// by its long name.
func (c *shortcuts) callName(name string, skill bool) string {
	switch {
	case c.commands.named(strings.ToLower(name)) == nil:
		return name
	case skill:
		return "skill:" + name
	}
	return "prompts:" + name
}

// help lists the shortcuts.
func (c *shortcuts) help() {
	var rows [][2]string
	for _, s := range c.list() {
		rows = append(rows, [2]string{strings.TrimRight("/"+c.callName(s.Name, s.Skill)+" "+transcript.Printable(s.Args), " "), transcript.Printable(text.Clip(s.Help, 100))})
	}
	if len(rows) > 0 {
		c.view.print("Your prompts and skills:")
		c.view.terms(rows)
	}
}

// skills lists the skills, with what they take of the window.
func (c *shortcuts) skills(context.Context, string) error {
	if c.o.Skills == nil {
		return fmt.Errorf("there are no skills here")
	}
	list, problems := c.o.Skills()
	tok := c.o.Model().Tokens
	var rows [][2]string
	for _, s := range list {
		takes := "not told to the model"
		if s.Line != "" {
			takes = transcript.Count(tok.Count(s.Line), "token")
		}
		rows = append(rows, [2]string{"/" + c.callName(s.Name, true), transcript.Printable(fmt.Sprintf("%s (%s, %s)", text.Clip(s.Description, 200), s.Path, takes))})
	}
	if len(rows) == 0 {
		c.view.print("there are no skills: a skill is a folder with a SKILL.md, in .agents/skills here or in your home")
	}
	c.view.terms(rows)
	c.wrong(problems)
	return nil
}

// wrong shows what is wrong with the user's files.
func (c *shortcuts) wrong(lines []string) {
	for _, line := range lines {
		c.view.note("  %s", line)
	}
}
