package tool

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Sandbox is how commands are confined, on Linux and without any privilege. The
// zero Sandbox does not confine them.
//
// A confined command reads what it may read anyway, except for what the Fence
// keeps private: of that it sees no more than names. It writes only below the
// workspace, below Writable, and in the folders for temporary files. It cannot
// send signals to processes outside (from Linux 6.12 on) or change their memory,
// and gains no privileges. Modes, owners and times of files, and local services
// that it can connect to, are not kept from it.
// In the folders on the way from one of those to something private it makes no
// new files, since a new file there could be private as well.
type Sandbox struct {
	Use       SandboxUse
	Writable  []string // more folders that commands may write in, as far as they exist
	NoNetwork bool     // commands have no network, whatever Use and the mode say
}

// SandboxUse is when a Sandbox is used.
type SandboxUse int

const (
	SandboxOff  SandboxUse = iota // never
	SandboxAuto                   // in ModeAll, if this system can
	SandboxOn                     // in every mode; where this system cannot, commands are refused
)

var sandboxUses = []string{"off", "auto", "on"}

// ParseSandboxUse returns the use with a name: off, auto or on.
func ParseSandboxUse(name string) (SandboxUse, error) {
	if i := slices.Index(sandboxUses, name); i >= 0 {
		return SandboxUse(i), nil
	}
	return 0, fmt.Errorf("the sandbox must be auto, on or off, not %q", name)
}

// Confinement is how commands are confined in a mode.
type Confinement struct {
	Files     bool   // they write only where they may
	NoNetwork bool   // they have no network
	Missing   string // why this system cannot do what is wanted; "" if it can
	Refused   bool   // for that reason, commands are refused
}

// Confinement returns how a command would be confined now.
func (s *Set) Confinement() Confinement {
	if s.bash == nil {
		return Confinement{}
	}
	return s.bash.confinement()
}

func (b *bash) confinement() Confinement {
	c := Confinement{NoNetwork: b.sandbox.NoNetwork}
	switch b.sandbox.Use {
	case SandboxOn:
		c.Files = true
	case SandboxAuto:
		c.Files = b.mode() == ModeAll
	}
	why := b.noSandbox()
	if why == "" || !c.Files && !c.NoNetwork {
		return c
	}
	return Confinement{Missing: why, Refused: b.sandbox.Use == SandboxOn || c.NoNetwork}
}

// String says in a few words what commands cannot do; "" if nothing keeps them
// from anything.
func (c Confinement) String() string {
	switch {
	case c.Refused:
		return "commands are refused, because there is no sandbox: " + c.Missing
	case c.Missing != "":
		return "there is no sandbox: " + c.Missing
	case c.Files && c.NoNetwork:
		return "commands write only below this folder and have no network"
	case c.Files:
		return "commands write only below this folder"
	case c.NoNetwork:
		return "commands have no network"
	}
	return ""
}

// What programs print when something is kept from them.
var (
	keptFromFiles   = regexp.MustCompile(`(?i)permission denied|permissionerror|operation not permitted|read-only file system|\b(EACCES|EPERM|EROFS)\b`)
	keptFromNetwork = regexp.MustCompile(`(?i)could ?n['o]t resolve|unable to resolve|failed to resolve|name resolution|no such host|network is unreachable|can't create socket|EAI_AGAIN|getaddrinfo|unknown host`)
)

// blame says what of the sandbox may be the reason for what a command printed; ""
// if nothing looks like it.
func (c Confinement) blame(output string) string {
	var limits []string
	denied := keptFromFiles.MatchString(output)
	if c.NoNetwork && (denied || keptFromNetwork.MatchString(output)) {
		limits = append(limits, "gives it no network")
	}
	if c.Files && denied {
		limits = append(limits, "lets it write only in the workspace, temporary folders and caches, and not read the agent's files")
	}
	if len(limits) == 0 {
		return ""
	}
	return "; the sandbox " + strings.Join(limits, ", ")
}

// area is the file system as far as it matters to a sandbox: what is hidden in
// it, and what is open below that. The paths hold no links.
type area struct{ hidden, open []string }

func (f Fence) area(open ...string) area {
	var a area
	for _, p := range f.Private {
		a.hidden = append(a.hidden, followed(p))
	}
	for _, p := range append(open, f.Open...) {
		a.open = append(a.open, followed(p))
	}
	return a
}

func followed(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return resolve(path)
}

// hides reports whether path is hidden: the innermost place that it is in counts.
func (a area) hides(path string) bool {
	deepest := func(places []string) (n int) {
		for _, p := range places {
			if beneath(path, p) {
				n = max(n, len(p))
			}
		}
		return n
	}
	h := deepest(a.hidden)
	return h > 0 && h >= deepest(a.open)
}

// under returns the places that are below path.
func under(path string, places []string) (out []string) {
	for _, p := range places {
		if p != path && beneath(p, path) {
			out = append(out, p)
		}
	}
	return out
}

// beneath reports whether path is dir or below it. Both are clean.
func beneath(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
