//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// cast is a model whose long answers stop where the test says, and a repository
// with one file, where goclaw runs.
type cast struct {
	t          *testing.T
	home, repo string
	env        []string
	goOn       chan struct{} // an item lets an answer go on
	reached    chan string   // where an answer stops
	mu         sync.Mutex
	asked      []tuitest.Question
}

func newCast(t *testing.T) *cast {
	t.Helper()
	c := &cast{t: t, home: t.TempDir(), goOn: make(chan struct{}), reached: make(chan string, 100)}
	c.repo = filepath.Join(c.home, "boats")
	put(t, c.home, "boats/fleet.txt", "blue\nred\n")
	put(t, c.home, ".goclaw/config.json", `{"session": {"inherit": {"enabled": false}}}`)
	srv := httptest.NewServer(tuitest.Model(c.answer))
	t.Cleanup(srv.Close)
	c.env = []string{"HOME=" + c.home, "GOCLAW_HOME=" + filepath.Join(c.home, ".goclaw"), "GOCLAW_NO_LOCAL=1", "PATH=" + os.Getenv("PATH"),
		"ANTHROPIC_BASE_URL=" + srv.URL, "ANTHROPIC_API_KEY=sk-test-0123456789"}
	return c
}

// stage is a cast in a tmux.
type stage struct {
	*tuitest.Tmux
	*cast
}

// newStage opens a tmux of that size.
func newStage(t *testing.T, cols, rows int) *stage {
	t.Helper()
	c := newCast(t)
	return &stage{Tmux: tuitest.NewTmux(t, cols, rows, c.repo, c.env), cast: c}
}

// stop waits until the test lets the answer go on, and reports whether somebody
// still listens.
func (s *cast) stop(a *tuitest.Answer, where string) bool {
	s.reached <- where
	select {
	case <-s.goOn:
		return true
	case <-a.Gone():
		return false
	}
}

// answer is what the model says: "count A B C" counts to C and stops after A and
// B, in each of the shapes that answers have; "run COMMAND" runs it.
func (s *cast) answer(q tuitest.Question, a *tuitest.Answer) {
	s.mu.Lock()
	s.asked = append(s.asked, q)
	s.mu.Unlock()
	word, rest, _ := strings.Cut(q.Said, " ")
	switch {
	case len(q.Results) > 0:
		a.Say("It said " + strings.Join(strings.Fields(q.Results[len(q.Results)-1]), " ") + ".")
	case word == "run":
		a.Call("bash", fmt.Sprintf(`{"command":%q}`, rest))
	case word == "edit":
		a.Call("edit_file", `{"path":"fleet.txt","old_string":"red","new_string":"green"}`)
	case word == "count":
		var stops []int
		for f := range strings.FieldsSeq(rest) {
			n := 0
			fmt.Sscan(f, &n)
			stops = append(stops, n)
		}
		numbered(a, stops, func(n int) bool { return s.stop(a, fmt.Sprint("after ", n)) })
	case word == "describe":
		a.Say(description)
	case word == "wait":
		a.Say("So far ")
		if s.stop(a, "waiting") {
			a.Say("so good.")
		}
	default:
		a.Say("echo: " + q.Said)
	}
}

// description is an answer with a bit of everything.
const description = "# The fleet\n\nThere are **two** boats, `blue` and `red`:\n\n1. the blue one sails\n2. the red one is in the dock\n\n" +
	"```go\nfunc main() { fmt.Println(\"ahoy\") }\n```\n\n| Boat | Berth |\n|---|--:|\n| blue | 12 |\n| red | 東京 |\n"

// numbered says numbered lines up to the last of stops: in paragraphs, lists, code
// and a table in turn.
func numbered(a *tuitest.Answer, stops []int, stop func(n int) bool) {
	for n := 1; n <= stops[len(stops)-1]; n++ {
		switch line := fmt.Sprintf("line %04d", n); n / 10 % 3 {
		case 0:
			a.Say(line + " is a paragraph.\n\n")
		case 1:
			a.Say("- " + line + " of a list\n")
		default:
			if n%10 == 0 {
				a.Say("\n```\n")
			}
			a.Say(line + " of code\n")
			if n%10 == 9 {
				a.Say("```\n\n")
			}
		}
		if len(stops) > 1 && n == stops[0] {
			stops = stops[1:]
			if !stop(n) {
				return
			}
		}
	}
}

// await waits until the model's answer has got there.
func (s *cast) await(where string) {
	s.t.Helper()
	if got := <-s.reached; got != where {
		s.t.Fatalf("the model is at %q, want %q", got, where)
	}
}

// rests waits until nothing is under way.
func (s *stage) rests() {
	s.t.Helper()
	s.Await("the chat to rest", func(string) bool {
		screen := s.Screen()
		return regexp.MustCompile(`(?m)^>( Ask anything.*)?$`).MatchString(screen) && !s.spins()
	})
}

// spins reports whether something is under way.
func (s *stage) spins() bool { return regexp.MustCompile(`(?m)^[⠀-⣿]`).MatchString(s.Screen()) }

// once fails unless each of n numbered lines is in the terminal once, in order.
func (s *stage) once(from, to int) {
	s.t.Helper()
	text := s.Text()
	at := 0
	for n := from; n <= to; n++ {
		line := fmt.Sprintf("line %04d", n)
		if c := strings.Count(text, line); c != 1 {
			s.t.Errorf("%q is there %d times, want once", line, c)
		}
		if i := strings.Index(text, line); i >= 0 && i < at {
			s.t.Errorf("%q is above the line before it", line)
		} else if i >= 0 {
			at = i
		}
	}
	if s.t.Failed() {
		s.t.Fatalf("the terminal shows\n%s", text)
	}
}

// TestTmuxResize: an answer streams while the window becomes narrower, wider,
// lower and higher: each line is in the scrollback once.
func TestTmuxResize(t *testing.T) {
	s := newStage(t, 80, 24)
	s.Enter("goclaw")
	s.See("New session")
	s.rests()
	sizes := [][2]int{{60, 24}, {100, 30}, {40, 20}, {120, 12}, {80, 24}, {45, 40}, {80, 24}}
	said := "count"
	for i := range sizes {
		said += fmt.Sprint(" ", 7+13*i)
	}
	s.Enter(said + " 120")
	for i, size := range sizes {
		s.await(fmt.Sprint("after ", 7+13*i))
		s.See(fmt.Sprintf("line %04d", 7+13*i))
		s.Type("draft ") // is drawn while it streams
		s.Resize(size[0], size[1])
		s.SeeNow("> " + strings.TrimSpace(strings.Repeat("draft ", min(i+1, 5))))
		s.goOn <- struct{}{}
	}
	s.See("line 0120")
	s.Await("the end of the turn: Ctrl-C would stop it", func(string) bool { return !s.spins() })
	s.Press("C-c") // clears the input
	s.rests()
	s.once(1, 120)
	s.Enter("/quit")
	s.shell()
	s.once(1, 120)
}

// TestTmuxDay drives the program through everything that a day brings, in one
// terminal: nothing that was said is lost or shown twice.
func TestTmuxDay(t *testing.T) {
	s := newStage(t, 100, 30)
	if err := os.Remove(filepath.Join(s.home, ".goclaw/config.json")); err != nil {
		t.Fatal(err)
	}
	s.Enter("goclaw")
	s.See("goclaw is an agent") // the first start explains itself
	s.See("anthropic ($ANTHROPIC_API_KEY)")
	s.See("New session")
	s.rests()

	// A tool, with a question first.
	s.Enter("run wc -l fleet.txt")
	s.SeeNow("bash wants to run")
	s.SeeNow("yes, once")
	s.Press("y")
	s.See("It said")
	s.rests()
	s.Enter("edit it")
	s.SeeNow("edit_file wants to change fleet.txt")
	s.SeeNow("+ green")
	s.Press("y")
	s.Await("a second result", func(text string) bool { return strings.Count(text, "It said") == 2 })
	s.rests()
	if got, _ := os.ReadFile(filepath.Join(s.repo, "fleet.txt")); string(got) != "blue\ngreen\n" {
		t.Errorf("the file is %q", got)
	}

	// Queue, take back, steer.
	s.Enter("wait for me")
	s.await("waiting")
	s.SeeNow("So far")
	s.Enter("queued one")
	s.SeeNow("» queued one")
	s.Enter("queued two")
	s.SeeNow("» queued two")
	s.Press("Up")
	s.Gone("» queued two")
	s.SeeNow("> queued two")
	s.Press("C-u")
	s.Gone("queued two")
	s.Type("steer left")
	s.SeeNow("Enter queues · Ctrl-S sends it into this answer")
	s.Press("C-s")
	s.SeeNow("steer left")
	s.goOn <- struct{}{}
	s.See("echo: steer left")
	s.See("echo: queued one")
	s.rests()
	if strings.Contains(s.Text(), "echo: queued two") {
		t.Error("what was taken back was sent")
	}

	// What is done without asking.
	for _, mode := range []string{"edits: changes files unasked", "plan: only reads", "all: changes files and runs", "ask: asks before"} {
		s.Press("BTab")
		s.SeeNow("mode " + mode)
	}
	s.Press("C-u") // the status line again
	s.SeeNow("mode ask ")

	// Stop, rewind.
	s.Enter("wait again")
	s.await("waiting")
	s.Press("Escape")
	s.See("[stopped; everything so far is saved]")
	s.rests()
	s.Press("Escape")
	s.SeeNow("Esc again")
	s.Press("Escape")
	s.SeeNow("as they are now.\n> wait again\n") // in the input, not only where it was sent
	s.Press("C-u")
	s.rests()

	// Quit and come back; kill -9 in the middle, and come back.
	s.Press("C-d")
	s.shell()
	s.Enter("goclaw -c")
	s.Await("the session again", func(text string) bool { return strings.Count(text, "Restored: ") == 1 })
	s.rests()
	s.Enter("count 25 50")
	s.await("after 25")
	s.See("line 0025")
	syscall.Kill(s.Child(), syscall.SIGKILL)
	s.SeeNow("Killed")
	s.once(1, 25)
	s.Enter("clear; goclaw -c")
	s.See("The last turn was interrupted")
	s.SeeNow("Continue it?")
	s.Press("y")
	s.await("after 25")
	s.goOn <- struct{}{}
	s.See("line 0050")
	s.rests()
	s.once(1, 50)
	s.Press("C-d")
	s.shell()

	// Pick, fork.
	s.Enter("clear; goclaw -r")
	s.SeeNow("Sessions  1")
	s.Type("fleet")
	s.SeeNow("wc -l fleet.txt") // its title
	s.Press("C-f")
	s.SeeNow("Sessions  2")
	s.Press("Enter")
	s.See("Restored: ")
	s.rests()

	// Search, and open what stands around a hit.
	s.Press("C-f")
	s.SeeNow("Search")
	s.Type("queued one")
	s.SeeNow("echo: queued one")
	s.Press("Enter")
	s.SeeNow("steer left")
	s.Press("Escape")
	s.Press("Escape")
	s.rests()

	// Compaction, first as a picture; undo.
	s.Enter("/compact --dry-run")
	s.SeeNow("Compact now?")
	s.Press("n")
	s.See("nothing was compacted")
	s.rests()
	s.Enter("/compact --dry-run")
	s.SeeNow("Compact now?")
	s.Press("y")
	s.See("/undo brings them back")
	s.rests()
	s.Enter("/undo")
	s.SeeNow("undone")
	s.Enter("/quit")
	s.shell()
}

// shell waits until the shell waits for a command.
func (s *stage) shell() {
	s.t.Helper()
	s.Await("the shell", func(string) bool { return strings.HasSuffix(s.Screen(), "$") })
}
