package main

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"goclaw/internal/instructions"
	"goclaw/session"
	"goclaw/window"
)

// briefing is what the model is told about where it works: the day, the system,
// the folder, and the user's instructions. It is read when a session is opened
// and again after a compaction, so that the beginning of the requests stays the
// same in between, and prompt caches keep working.
type briefing struct {
	env *env

	of          session.ID
	compactions int
	made        bool
	day, branch string
	files       instructions.Files
	problem     error
}

// share is the share of the window that instructions may take, in percent;
// most is the largest number of bytes.
const (
	share           = 10
	mostInstruction = 64 << 10
)

// read reads the briefing of s if it was not read before.
func (b *briefing) read(s *session.Session, tokens int) {
	if b.made && b.of == s.ID && b.compactions == s.Compactions {
		return
	}
	b.made, b.of, b.compactions = true, s.ID, s.Compactions
	folder := b.env.conf.Workspace
	b.day, b.branch = time.Now().Format(time.DateOnly), instructions.Branch(folder)
	const bytesOfToken = 4
	b.files, b.problem = instructions.Find(folder, b.env.getenv("HOME"), min(tokens*bytesOfToken*share/100, mostInstruction))
}

// prompt adds the briefing to p.
func (b *briefing) prompt(p window.Prompt) window.Prompt {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\nThis conversation was opened on %s, on %s", p.System, b.day, runtime.GOOS)
	if b.branch != "" {
		fmt.Fprintf(&out, ", in the git branch %s", b.branch)
	}
	out.WriteString(".")
	said := false
	for _, f := range b.files {
		if f.Text == "" {
			continue
		}
		if !said {
			out.WriteString("\n\nThe user's instructions. The later ones go before the earlier ones.")
			said = true
		}
		text := f.Text
		if f.Cut() {
			text += fmt.Sprintf("\n[cut: these are %d of %d bytes]", len(f.Text), f.Whole)
		}
		fmt.Fprintf(&out, "\n\n# %s\n%s", f.Path, text)
		p.Sources = append(p.Sources, window.Source{Name: b.name(f.Path), Text: text})
	}
	p.System = out.String()
	for _, path := range b.files.Changed(b.env.conf.Workspace, b.env.getenv("HOME")) {
		p.Tail = strings.TrimPrefix(p.Tail+fmt.Sprintf("\n[%s has changed since it was read: what it says now counts.]", b.name(path)), "\n")
	}
	return p
}

// name returns a path as a person would write it here.
func (b *briefing) name(path string) string {
	if rel, err := filepath.Rel(b.env.conf.Workspace, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return shortPath(path, b.env.getenv("HOME"))
}
