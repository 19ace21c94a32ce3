package briefing

import (
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"goclaw/internal/config"
	"goclaw/internal/instructions"
	"goclaw/internal/permits"
	"goclaw/internal/repl"
)

// homeOf returns the folder of another program: the one that a variable names, or
// else the usual one in the user's home. "" if there is neither.
func (b *Briefing) homeOf(variable, usual string) string {
	if dir := b.o.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	if home := b.o.Getenv("HOME"); home != "" {
		return filepath.Join(home, filepath.FromSlash(usual))
	}
	return ""
}

// below returns dir/name, or "" without a dir.
func below(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// skillPlaces are where skills are looked for, the nearest first: in the folder
// and those above it, in the workspace of the session's agent of OpenClaw, if it
// has one, and in the user's home.
func (b *Briefing) skillPlaces() []instructions.Place {
	c := b.o.Config()
	places := instructions.Project(c.Workspace, ".goclaw/skills", ".agents/skills", ".claude/skills", ".pi/skills")
	refuses := b.o.OpenClaw().Refuses
	if b.agent != nil {
		refuses = b.agent.Refuses
	}
	claw := func(dirs ...string) []instructions.Place {
		out := instructions.Places(dirs...)
		for i := range out {
			out[i].Not = refuses
		}
		return out
	}
	user := instructions.Places(
		filepath.Join(c.Home, "skills"),
		below(b.o.Getenv("HOME"), ".agents/skills"),
		below(b.homeOf("CLAUDE_CONFIG_DIR", ".claude"), "skills"),
		below(b.homeOf("PI_CODING_AGENT_DIR", ".pi/agent"), "skills"),
		below(b.homeOf("CODEX_HOME", ".codex"), "skills"),
	)
	user = append(user, claw(b.o.OpenClaw().SkillDirs()...)...)
	if at := b.workspace(); at != "" {
		user = append(claw(filepath.Join(at, "skills"), filepath.Join(at, ".agents", "skills")), user...)
	}
	return both(places, user)
}

// both returns the places of a project and those of the user. One that is both,
// because the project is the user's home, is the user's.
func both(project, user []instructions.Place) []instructions.Place {
	own := func(p instructions.Place) bool {
		return slices.ContainsFunc(user, func(u instructions.Place) bool { return u.Dir == p.Dir })
	}
	return append(slices.DeleteFunc(project, own), user...)
}

// templatePlaces are the same for prompt templates.
func (b *Briefing) templatePlaces() []instructions.Place {
	return both(instructions.Project(b.o.Config().Workspace, ".goclaw/prompts", ".claude/commands", ".pi/prompts"), instructions.Places(
		filepath.Join(b.o.Config().Home, "prompts"),
		below(b.homeOf("CLAUDE_CONFIG_DIR", ".claude"), "commands"),
		below(b.homeOf("PI_CODING_AGENT_DIR", ".pi/agent"), "prompts"),
		below(b.homeOf("CODEX_HOME", ".codex"), "prompts"),
	))
}

// Shortcuts are what /name stands for besides the chat's own commands.
func (b *Briefing) Shortcuts() []repl.Shortcut {
	var out []repl.Shortcut
	add := func(s repl.Shortcut) {
		if !slices.ContainsFunc(out, func(o repl.Shortcut) bool { return o.Name == s.Name }) {
			out = append(out, s)
		}
	}
	list, _ := instructions.FindTemplates(b.templatePlaces())
	for _, t := range list {
		help := t.Description
		if t.Group != "" {
			help += " (" + t.Group + ")"
		}
		add(repl.Shortcut{Name: t.Name, Args: t.Hint, Help: help})
	}
	for _, s := range b.find().List {
		add(repl.Shortcut{Name: s.Name, Help: s.Description, Skill: true})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Expand returns what /name with args stands for, and where that is from: a prompt
// template, or a skill. ok is false if it stands for nothing.
func (b *Briefing) Expand(name, args string) (text, from string, ok bool, err error) {
	called, bySkill := strings.CutPrefix(name, "skill:")
	if !bySkill {
		list, _ := instructions.FindTemplates(b.templatePlaces())
		if t, ok := instructions.FindTemplate(list, name); ok {
			text, err = t.Expand(args)
			return text, b.name(t.Path), true, err
		}
	}
	s, ok := b.find().Named(called)
	if !ok {
		return "", "", false, nil
	}
	text, err = s.Expand(args)
	return text, b.name(s.Path), true, err
}

// ExpandAsked is expand for a text that begins with /name. A text that stands for
// nothing else is sent as it is.
func (b *Briefing) ExpandAsked(text string) (sent, from string, err error) {
	rest, ok := strings.CutPrefix(text, "/")
	if !ok {
		return text, "", nil
	}
	name, args, _ := strings.Cut(rest, " ")
	sent, from, ok, err = b.Expand(name, args)
	if !ok {
		return text, "", nil
	}
	if err != nil {
		err = fmt.Errorf("/%s: %w", name, err)
	}
	return sent, from, err
}

// find looks for the skills as they are now.
func (b *Briefing) find() instructions.Skills {
	b.now = instructions.FindSkills(b.skillPlaces(), b.now)
	return b.now
}

// Known are the skills for the chat, and what is wrong with those and with the
// instructions.
func (b *Briefing) Known() (out []repl.Skill, problems []string) {
	for _, s := range b.find().List {
		line := s.Line()
		if s.Hidden {
			line = ""
		}
		out = append(out, repl.Skill{Name: s.Name, Description: s.Description, Path: b.name(s.Path), Line: line})
	}
	if b.problem != nil {
		problems = strings.Split(b.problem.Error(), "\n")
	}
	_, wrong := instructions.FindTemplates(b.templatePlaces())
	problems = slices.Concat(problems, b.now.Problems, wrong)
	for i, p := range problems {
		problems[i] = b.shorten(p)
	}
	return out, problems
}

// shorten writes the user's home as ~ in a text.
func (b *Briefing) shorten(text string) string {
	if home := b.o.Getenv("HOME"); len(home) > 1 {
		text = strings.ReplaceAll(text, strings.TrimSuffix(home, "/")+"/", "~/")
	}
	return text
}

// Readable are the folders besides the workspace that the model's tools may read:
// those of skills, and the workspace of an agent of OpenClaw. Of goclaw's home only
// the folder skills is one.
func (b *Briefing) Readable() []string {
	c := b.o.Config()
	f := permits.Fence(c)
	var out []string
	add := func(dir string) {
		own := config.Within(filepath.Join(c.Home, "skills"), dir)
		if own || !config.Within(c.Workspace, dir) && f.Check(dir) == nil {
			out = append(out, dir)
		}
	}
	for _, s := range b.now.List {
		add(s.Dir())
	}
	if at := b.workspace(); at != "" {
		add(at)
	}
	return out
}
