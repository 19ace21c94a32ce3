//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"goclaw/internal/config"
)

// Every command has a page, with its flags, that the formatter takes without a
// warning.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if out, errOut, code := inPipe(t, keyless(dir), "man", filepath.Join(dir, "man")); code != 0 || !strings.HasPrefix(out, "wrote ") {
		t.Fatalf("exit code %d: %s%s", code, out, errOut)
	}
	page := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, "man", "man"+name[len(name)-1:], name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	n := 0
	for _, c := range commandsBelow(rootCmd(newApp(nil, nil, nil, os.Getenv))) {
		hidden := false
		for up := c; up.HasParent(); up = up.Parent() {
			hidden = hidden || !up.IsAvailableCommand()
		}
		if hidden {
			continue
		}
		n++
		text := page(strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, roff("--"+f.Name)) {
				t.Errorf("the page of %s does not have --%s", c.CommandPath(), f.Name)
			}
		})
	}
	if n < 30 {
		t.Errorf("there are only %d pages", n)
	}
	settings := page("goclaw-settings.5")
	for _, key := range config.Keys() {
		if !strings.Contains(settings, "\\fB"+roff(key)+"\\fR") {
			t.Errorf("the page of the settings does not have %s", key)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "man", "man?", "*"))
	known := regexp.MustCompile(`^\.(TH|SH|PP|TP|br|nf|fi|nh|ad)\b`)
	for _, f := range files {
		text := page(filepath.Base(f))
		if !strings.HasPrefix(text, ".TH ") {
			t.Errorf("%s begins with %.20q", f, text)
		}
		for line := range strings.Lines(text) {
			if (line[0] == '.' || line[0] == '\'') && !known.MatchString(line) {
				t.Errorf("%s: %q is no macro", f, line)
			}
		}
	}
	if groff, err := exec.LookPath("groff"); err == nil {
		out, err := exec.Command(groff, append([]string{"-man", "-Tutf8", "-ww", "-Wbreak", "-z"} /* long names stay whole */, files...)...).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("groff: %v: %s", err, out)
		}
	}
	if man, err := exec.LookPath("man"); err == nil {
		cmd := exec.Command(man, "-l", filepath.Join(dir, "man", "man1", "goclaw-ask.1"))
		cmd.Env = append(os.Environ(), "MANWIDTH=80", "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "goclaw ask TEXT [flags]") || !strings.Contains(string(out), "--continue") {
			t.Errorf("man: %v: %s", err, out)
		}
	}
}

// roff is a name as it stands in a page.
func roff(name string) string { return strings.ReplaceAll(name, "-", `\-`) }
