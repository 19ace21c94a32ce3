package openclaw

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInstalled: the workspaces are where OpenClaw has them, each once, and only
// if OpenClaw is there.
func TestInstalled(t *testing.T) {
	for name, c := range map[string]struct {
		files []string // below the home; a folder ends in a slash
		conf  string   // of the state folder
		env   map[string]string
		want  []Workspace // below the home
		ok    bool
	}{
		"nothing":           {files: []string{".openclaw/workspace/"}},
		"only our own home": {files: []string{".openclaw/goclaw/", ".openclaw/workspace/"}},
		"as installed":      {files: []string{".openclaw/workspace/"}, conf: "{}", want: []Workspace{{Path: ".openclaw/workspace"}}, ok: true},
		"without a configuration": {files: []string{".openclaw/workspace/", ".openclaw/agents/main/sessions/"},
			want: []Workspace{{Path: ".openclaw/workspace"}}, ok: true},
		"no workspace yet": {conf: "{}", ok: true},
		"agents and profiles": {files: []string{".openclaw/workspace/", ".openclaw/workspace-work/", ".openclaw/workspace-dev/", "notes/"},
			conf: `{agents: {defaults: {memorySearch: {extraPaths: ['docs']}}, list: [{id: 'main'}, {id: 'diary', workspace: '~/notes', memorySearch: {extraPaths: ['d.md']}}, {id: 'gone', workspace: '~/gone'}]}}`,
			want: []Workspace{{".openclaw/workspace", []string{"docs"}}, {"notes", []string{"docs", "d.md"}}, {".openclaw/workspace-dev", []string{"docs"}}, {".openclaw/workspace-work", []string{"docs"}}}, ok: true},
		"one for all": {files: []string{"claw/", ".openclaw/"}, conf: `{"agents": {"defaults": {"workspace": "~/claw"}, "list": [{"id": "main", "workspace": "~/claw/"}]}}`,
			want: []Workspace{{Path: "claw/"}}, ok: true},
		"another state folder": {files: []string{"state/workspace/", ".openclaw/workspace/"}, env: map[string]string{"OPENCLAW_STATE_DIR": "~/state"}, conf: "{}",
			want: []Workspace{{Path: "state/workspace"}, {Path: ".openclaw/workspace"}}, ok: true},
		"broken": {files: []string{".openclaw/workspace/"}, conf: `{agents: [`, want: []Workspace{{Path: ".openclaw/workspace"}}, ok: true},
		"odd":    {files: []string{".openclaw/workspace/"}, conf: `{agents: {list: 7}, agent: {workspace: 3}}`, want: []Workspace{{Path: ".openclaw/workspace"}}, ok: true},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			state := filepath.Join(home, ".openclaw")
			if c.env != nil {
				state = filepath.Join(home, "state")
			}
			for _, f := range c.files {
				if err := os.MkdirAll(filepath.Join(home, f), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if c.conf != "" {
				if err := os.MkdirAll(state, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(state, Config), []byte(c.conf), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			in, ok := Installed(home, func(k string) string { return c.env[k] })
			for i := range in.Workspaces {
				rel, err := filepath.Rel(home, in.Workspaces[i].Path)
				if err != nil {
					t.Fatal(err)
				}
				in.Workspaces[i].Path = rel
			}
			for i := range c.want {
				c.want[i].Path = filepath.Clean(c.want[i].Path)
			}
			if d := cmp.Diff(c.want, in.Workspaces); d != "" || ok != c.ok {
				t.Errorf("installed: %t, want %t; workspaces (-want +got)\n%s", ok, c.ok, d)
			}
		})
	}
}
