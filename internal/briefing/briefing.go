// Package briefing is what the model is told about where it works, and what the user
// can call by a name there: the day, the folder, instructions, skills and prompt
// templates, and, for a session of an agent of OpenClaw, that agent's own files.
package briefing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"goclaw/internal/config"
	"goclaw/internal/inherit/openclaw"
	"goclaw/internal/instructions"
	"goclaw/internal/transcript"
	"goclaw/session"
	"goclaw/window"
)

// Briefing is what the model is told about where it works: the day, the system,
// the folder, the user's instructions and skills. It is read when a session is
// opened and again after a compaction, so that the beginning of the requests stays
// the same in between, and prompt caches keep working.
type Briefing struct {
	o Options

	of          session.ID
	key         session.Key
	compactions int
	made        bool
	day, branch string
	files       instructions.Files
	problem     error
	skills      instructions.Skills // as the model was told of them
	room        int                 // for skills, in bytes
	now         instructions.Skills // as they were found last

	// For a session of an agent of OpenClaw: the agent, nil if it is of none, and
	// the files of its workspace.
	agent *openclaw.Agent
	paths []string
	own   instructions.Files
}

// Options say where the model works.
type Options struct {
	Config   func() *config.Loaded
	Getenv   func(string) string
	OpenClaw func() openclaw.Installation
}

// New returns a briefing that nothing was read for yet.
func New(o Options) *Briefing { return &Briefing{o: o} }

// share is the share of the window that instructions may take, in percent, and
// skillShare that of the list of skills; the others are the largest numbers of
// bytes.
const (
	share, mostInstruction = 10, 64 << 10
	skillShare, mostSkills = 3, 16 << 10
	ownShare               = 15 // of an agent's own files
)

// Read reads the briefing of s if it was not read before.
func (b *Briefing) Read(s *session.Session, tokens int) {
	if b.made && b.of == s.ID && b.key == s.Key && b.compactions == s.Compactions {
		return
	}
	b.made, b.of, b.key, b.compactions = true, s.ID, s.Key, s.Compactions
	folder := b.o.Config().Workspace
	b.day, b.branch = time.Now().Format(time.DateOnly), instructions.Branch(folder)
	const bytesOfToken = 4
	b.files, b.problem = instructions.Find(folder, b.o.Getenv("HOME"), min(tokens*bytesOfToken*share/100, mostInstruction))
	b.Become(s.Info, tokens*bytesOfToken*ownShare/100)
	b.skills, b.room = b.find(), min(tokens*bytesOfToken*skillShare/100, mostSkills)
}

// Become reads the files of the agent of OpenClaw that a session belongs to, if it
// belongs to one, into at most that many bytes.
func (b *Briefing) Become(in session.Info, most int) {
	b.agent, b.paths, b.own = nil, nil, nil
	a, key, ok := b.o.OpenClaw().AgentOf(in)
	if !ok {
		return
	}
	b.agent = &a
	for _, path := range a.Files(string(key)) {
		if !slices.ContainsFunc(b.files, func(f instructions.File) bool { return f.Path == path }) {
			b.paths = append(b.paths, path)
		}
	}
	var err error
	b.own, err = instructions.Read(b.paths, a.FileChars, min(most, a.TotalChars))
	b.problem = errors.Join(b.problem, err)
}

// Prompt adds the briefing to p.
func (b *Briefing) Prompt(p window.Prompt) window.Prompt {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nThis conversation was opened on %s, on %s", p.System, b.day, runtime.GOOS)
	if b.branch != "" {
		fmt.Fprintf(&out, ", in the git branch %s", b.branch)
	}
	out.WriteString(".")
	give := func(intro string, files instructions.Files) {
		for _, f := range files {
			if intro != "" {
				out.WriteString("\n\n" + intro)
				intro = ""
			}
			text := f.Text
			if f.Cut { // perhaps nothing is left of it
				text = strings.TrimPrefix(text+fmt.Sprintf("\n[cut: these are %d of %d bytes]", len(text), f.Whole), "\n")
			}
			fmt.Fprintf(&out, "\n\n# %s\n%s", f.Path, text)
			p.Sources = append(p.Sources, window.Source{Name: b.name(f.Path), Text: text})
		}
	}
	give("You are an agent that comes from OpenClaw. These files of your workspace there say who you are and what you know; if SOUL.md is among them, take on its tone. "+
		"You can read everything in "+b.workspace()+", and change nothing there: what you would write goes into the memory files described above.", b.own)
	give("The user's instructions. The later ones go before the earlier ones.", b.files)
	if text := b.skillList(); text != "" {
		out.WriteString("\n\n" + text)
		p.Sources = append(p.Sources, window.Source{Name: "skills", Text: text})
	}
	p.System = out.String()
	tell := func(format string, args ...any) {
		p.Tail = strings.TrimPrefix(p.Tail+fmt.Sprintf("\n["+format+"]", args...), "\n")
	}
	now, _ := instructions.Paths(b.o.Config().Workspace, b.o.Getenv("HOME"))
	for _, path := range append(b.own.Changed(existing(b.paths)), b.files.Changed(now)...) {
		tell("%s has changed since it was read: what it says now counts.", b.name(path))
	}
	for _, line := range b.find().News(b.skills) {
		tell("%s", line)
	}
	return p
}

// workspace returns the folder of the session's agent of OpenClaw, "" if it has none.
func (b *Briefing) workspace() string {
	if b.agent == nil {
		return ""
	}
	return b.agent.Workspace
}

// existing returns those of paths that there are.
func existing(paths []string) (out []string) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			out = append(out, path)
		}
	}
	return out
}

// skillList is what the model is told of skills.
func (b *Briefing) skillList() string {
	listed, left := b.skills.Listed(b.room)
	if len(listed) == 0 {
		return ""
	}
	var out strings.Builder
	out.WriteString("Skills are instructions for certain tasks. If a task fits a description, read the file with read_file before you begin; paths in it are relative to its folder.")
	for _, s := range listed {
		out.WriteString("\n" + s.Line())
	}
	if left > 0 {
		fmt.Fprintf(&out, "\n[%d more skills have no room here]", left)
	}
	return out.String()
}

// name returns a path as a person would write it here.
func (b *Briefing) name(path string) string {
	if rel, err := filepath.Rel(b.o.Config().Workspace, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return transcript.ShortPath(path, b.o.Getenv("HOME"))
}
