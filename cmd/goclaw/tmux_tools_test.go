//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"strings"
	"testing"
)

// TestTmuxTools goes through what a person does with tool calls: typing goes on
// while a question comes, no with a reason, a message sent into a command that
// runs, and outputs opened in full.
func TestTmuxTools(t *testing.T) {
	s := newStage(t, 80, 24)
	s.Enter("goclaw")
	s.See("New session")
	s.rests()

	s.Enter("run rm -r boats | tee log; seq 3")
	s.SeeNow("| tee log;\n  seq 3\n  s and a allow exactly this.")
	s.Press("b")
	s.Type("use git")
	s.SeeNow("because use git")
	s.Press("Enter")
	s.See("not done: the user did not allow this, and says:\nuse git") // the model was told
	s.See("– bash rm -r boats | tee log; seq 3  not allowed\n  use git\n")
	s.rests()

	// The command waits until the message was typed.
	s.Enter("run seq 400; while ! test -e go; do sleep 0.05; done; echo went")
	s.SeeNow("yes, once")
	s.Press("y")
	s.SeeNow("  399\n  400\n")
	s.Type("in words please")
	s.Press("C-s")
	s.SeeNow("↳ in words please")
	put(t, s.repo, "go", "")
	s.See("… 395 more lines (Ctrl-O opens)\n")
	s.See("> in words please\n")
	s.Await("the answer", func(text string) bool { return strings.Count(text, "It said") == 2 })
	s.rests()
	s.mu.Lock()
	last := s.asked[len(s.asked)-1]
	s.mu.Unlock()
	if last.Said != "in words please" || !strings.Contains(strings.Join(last.Results, ""), "went") {
		t.Errorf("the model was asked %q after %q", last.Said, last.Results)
	}

	s.Press("C-o")
	s.SeeNow("lines 1-22 of 402")
	s.Press("G")
	s.SeeNow("went\n[exit code 0]")
	s.Press("Left")
	s.SeeNow("bash rm -r boats | tee log; seq 3  1 of 2")
	s.Press("q")
	s.rests()
	if n := strings.Count(s.Text(), "✓ bash seq 400"); n != 1 {
		t.Errorf("the call is printed %d times", n)
	}
}
