//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A compaction says its price before it is made. If that is much, a person is
// asked, and what was typed before the question is no answer.
func TestFoldSaysItsPrice(t *testing.T) {
	url, asked := busy(t, 0, "")
	home := t.TempDir()
	put(t, home, "config.json", `{
  "models": {"anthropic/claude-sonnet-4-5": {"inputPrice": 100, "outputPrice": 500}},
  "session": {"checkpoint": {"model": "anthropic/claude-sonnet-4-5"}},
}`)
	env := append(claude(home, url), "GOCLAW_CONFIG="+filepath.Join(home, "config.json"))
	for range 4 {
		if _, errOut, code := inPipe(t, env, "ask", strings.Repeat("The boat is blue, and so is the sea around it. ", 40)); code != 0 {
			t.Fatal(errOut)
		}
	}
	before := asked.Load()
	price := regexp.MustCompile(`about [\d.]+k? tokens in, [\d.]+k? out, \$\d+\.\d\d`)
	out, errOut, code := inPipe(t, env, "compact", "main:cli:user", "--dry-run")
	if code != 0 || !price.MatchString(out) || asked.Load() != before {
		t.Errorf("--dry-run says %s%s", out, errOut)
	}
	p, cmd := talks(t, home, env, "compact", "main:cli:user")
	p.See("Make it? [y/N]")
	p.Press("\r")
	p.See("nothing was compacted")
	exits(t, cmd)
	p, cmd = talks(t, home, env)
	p.See("\n>")
	p.Press("/compact\ry")
	p.See("Make it?\n")
	if !price.MatchString(p.All()) {
		t.Errorf("it says %q", p.All())
	}
	if answers(p, "\x1b", "[nothing was compacted]"); asked.Load() != before {
		t.Error("what was typed before the question was taken for the answer")
	}
	p.See("\n> y")
	p.Press("\x15/compact\r")
	p.See("> /compact\n")
	p.See("Make it?\n")
	answers(p, "y", "compacted ")
	p.See("/undo brings them back")
	p.Press("\x15/quit\r")
	exits(t, cmd)
	if asked.Load() == before {
		t.Error("no model was asked for the summary")
	}
}
