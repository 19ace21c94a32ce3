//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Command recording plays a short session of the real program, with a scripted
// model, in a terminal, and writes it as an animated picture: make recording.
package main

import (
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/vt"

	"goclaw/internal/tui/tuitest"
)

func main() {
	if err := record(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

const cols, rows = 88, 26

// files are the repository that the session works in.
var files = map[string]string{
	"go.mod":    "module greeter\n\ngo 1.24\n",
	"greet.go":  "package greeter\n\n// Greet returns a greeting.\nfunc Greet(name string) string {\n\treturn \"Hello \" + name\n}\n",
	"AGENTS.md": "Run go vet ./... after a change.\n",
}

const (
	first  = "Make the greeting more polite."
	second = "Who calls it?"
)

// answer is the last of the model's answers to first; it comes in pieces, which
// the camera waits for.
var answer = []string{
	"`Greet` is polite now, and **go vet** finds nothing:\n\n",
	"```go\nfunc Greet(name string) string {\n\treturn \"Good day, \" + name + \"!\"\n}\n```\n\n",
	"| name | greeting |\n|---|---|\n| Ana | Good day, Ana! |\n| Zoë | Good day, Zoë! |\n\n",
	"Nothing else was changed.",
}

// play is one playing of the session.
type play struct {
	*tuitest.Terminal
	film  *film
	beats int // of the spinner
	goOn  chan struct{}
}

func (p *play) model(q tuitest.Question, a *tuitest.Answer) {
	switch {
	case q.Said == second:
		a.Say("Nobody yet: it is the only function here.")
	case len(q.Results) == 0:
		a.Say("Let me look.")
		a.Call("grep", `{"pattern":"Hello"}`)
		a.Call("read_file", `{"path":"greet.go"}`)
	case strings.Contains(q.Results[len(q.Results)-1], "package greeter"):
		a.Call("edit_file", `{"path":"greet.go","old_string":"return \"Hello \" + name","new_string":"return \"Good day, \" + name + \"!\""}`)
	case strings.Contains(q.Results[len(q.Results)-1], "replaced"):
		a.Call("bash", `{"command":"go vet ./..."}`)
	default:
		for _, piece := range answer {
			a.Say(piece)
			select {
			case <-p.goOn:
			case <-a.Gone():
				return
			}
		}
	}
}

func record(path string) error {
	home, err := os.MkdirTemp("", "recording")
	if err != nil {
		return err
	}
	defer os.RemoveAll(home)
	bin := filepath.Join(home, "goclaw")
	build := exec.Command("go", "build", "-o", bin, "./cmd/goclaw")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	repo := filepath.Join(home, "greeter")
	if err := os.Mkdir(repo, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	term, err := tuitest.Open(cols, rows)
	if err != nil {
		return err
	}
	defer term.Close()
	p := &play{Terminal: term, film: &film{cols: cols, rows: rows, defs: map[string]string{}}, goOn: make(chan struct{})}
	model := httptest.NewServer(tuitest.Model(p.model))
	defer model.Close()
	cmd := exec.Command(bin)
	cmd.Dir = repo
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + filepath.Join(home, ".goclaw"), "GOCLAW_NO_LOCAL=1", "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"),
		"GOCACHE=" + strings.TrimSpace(string(cache)), "GOFLAGS=", "ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=sk-test-0123456789"}
	if err := p.Start(cmd); err != nil {
		return err
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	if err := p.session(); err != nil {
		return err
	}
	picture := p.film.svg("A session of goclaw: it looks, asks before it changes a file and before it runs a command, and takes the next message while it answers.")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fmt.Printf("%s: %d frames, %d kB\n", path, len(p.film.frames), len(picture)/1000)
	return os.WriteFile(path, []byte(picture), 0o644)
}

// session is what the person does.
func (p *play) session() error {
	steps := []func() error{
		func() error { return p.sees("% of 200k", 0) }, // the status line is complete
		func() error { return p.rests(1500) },
		func() error { return p.types(first) },
		func() error { return p.presses("\r", "wants to change", 500) },
		func() error { return p.sees("n  no", 3000) },
		func() error { return p.presses("y", "wants to run", 300) },
		func() error { return p.sees("n  no", 2200) },
		func() error { return p.presses("y", "finds nothing", 700) },
		func() error { return p.types(second) },
		func() error { return p.presses("\r", "queued", 900) },
		func() error { p.goOn <- struct{}{}; return p.sees("+ \"!\"", 900) },
		func() error { p.goOn <- struct{}{}; return p.sees("Good day, Zoë!", 900) },
		func() error { p.goOn <- struct{}{}; return p.sees("Nothing else was changed.", 700) },
		func() error { p.goOn <- struct{}{}; return p.sees("the only function here", 300) },
		func() error { return p.rests(2500) },
		func() error { return p.presses("?", "queue it", 2500) },
		func() error { return p.presses("q", "the only function here", 2000) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// sees waits for text on the screen, and shows it for that many milliseconds.
func (p *play) sees(text string, shown int) error {
	if !p.Until(30*time.Second, func(string, int, int) bool { return strings.Contains(p.Screen(), text) }) {
		return fmt.Errorf("%q is not seen; the terminal shows\n%s", text, p.Screen())
	}
	p.shoot(shown)
	return nil
}

func (p *play) rests(shown int) error {
	if !p.UntilCells(30*time.Second, tuitest.Resting) {
		return fmt.Errorf("the chat does not rest; the terminal shows\n%s", p.Screen())
	}
	p.shoot(shown)
	return nil
}

func (p *play) presses(key, then string, shown int) error {
	if err := p.Send(key); err != nil {
		return err
	}
	return p.sees(then, shown)
}

func (p *play) types(text string) error {
	for i := range text {
		p.Send(text[i : i+1])
		if typed := "> " + text[:i+1]; !p.Until(10*time.Second, func(string, int, int) bool { return strings.Contains(p.Screen(), strings.TrimRight(typed, " ")) }) {
			return fmt.Errorf("%q is not drawn; the terminal shows\n%s", typed, p.Screen())
		}
		if i%2 == 0 {
			p.shoot(90)
		}
	}
	p.shoot(500)
	return nil
}

const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

var took = regexp.MustCompile(`  \d\.\ds$`)

// shoot adds a frame. The spinner turns with the frames, not with the clock, and
// what was run took as long each time.
func (p *play) shoot(shown int) {
	p.Look(func(v *vt.Emulator) {
		for y := range v.Height() {
			row := ""
			for x := range v.Width() {
				c := v.CellAt(x, y)
				if c == nil || c.Content == "" {
					row += " "
					continue
				}
				if strings.Contains(spinner, c.Content) {
					c.Content = string([]rune(spinner)[p.beats%10])
				}
				row += c.Content
			}
			if at := took.FindStringIndex(strings.TrimRight(row, " ")); at != nil {
				v.CellAt(utf8.RuneCountInString(row[:at[1]])-2, y).Content = "4"
			}
		}
		p.beats++
		p.film.shoot(v, time.Duration(shown)*time.Millisecond)
	})
}
