package permits

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"goclaw/internal/config"
	"goclaw/internal/instructions"
	"goclaw/tool"
)

// Sandbox returns how commands are confined. Besides the workspace they may
// write what work in it needs: the folder of its git repository, which may lie
// above it, and the caches that compilers and package managers have.
func Sandbox(c *config.Loaded, getenv func(string) string) (tool.Sandbox, error) {
	t := c.Tools
	use, err := tool.ParseSandboxUse(t.Sandbox)
	s := tool.Sandbox{Use: use, NoNetwork: t.Network == "off", Writable: instructions.GitDirs(c.Workspace)}
	home := getenv("HOME")
	at := func(variable, usual string) string { return cmp.Or(getenv(variable), filepath.Join(home, usual)) }
	gopath, _, _ := strings.Cut(at("GOPATH", "go"), string(filepath.ListSeparator))
	cargo, gradle := at("CARGO_HOME", ".cargo"), at("GRADLE_USER_HOME", ".gradle")
	if use == tool.SandboxOn || use == tool.SandboxAuto && t.Mode == tool.ModeAll.String() {
		// A first build could not make them. Who has none of the others does not use them.
		_ = os.MkdirAll(at("XDG_CACHE_HOME", ".cache"), 0o700)
		if _, err := exec.LookPath("go"); err == nil {
			_ = os.MkdirAll(filepath.Join(gopath, "pkg"), 0o755)
		}
	}
	s.Writable = append(s.Writable, at("XDG_CACHE_HOME", ".cache"), getenv("GOCACHE"), getenv("GOMODCACHE"), filepath.Join(gopath, "pkg"),
		filepath.Join(cargo, "registry"), filepath.Join(cargo, "git"), at("npm_config_cache", ".npm"), filepath.Join(home, ".local/share/pnpm/store"),
		filepath.Join(home, ".m2/repository"), filepath.Join(gradle, "caches"), filepath.Join(gradle, "wrapper"), at("NUGET_PACKAGES", ".nuget/packages"))
	for _, dir := range t.Writable {
		if rest, ok := strings.CutPrefix(dir, "~/"); ok {
			dir = filepath.Join(home, rest)
		} else if !filepath.IsAbs(dir) {
			dir = filepath.Join(c.Workspace, dir)
		}
		s.Writable = append(s.Writable, dir)
	}
	return s, err
}
