//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"bytes"
	"image"
	"image/png"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goclaw/internal/tui/tuitest"
)

// pasted is text as a terminal pastes it.
func pasted(text string) string { return "\x1b[200~" + text + "\x1b[201~" }

// What stands in the input reaches the model: a large paste, an image, a file
// and the output of a command, and nothing of a command with two exclamation
// marks.
func TestInputReachesTheModel(t *testing.T) {
	home, ws := t.TempDir(), t.TempDir()
	var shot bytes.Buffer
	if err := png.Encode(&shot, image.NewGray(image.Rect(0, 0, 120, 80))); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"notes.md": "the boat is blue\n", ".gitignore": "junk/\n", "junk/notes.txt": "x", "my shot.png": shot.String()} {
		path := filepath.Join(ws, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	asked := make(chan string, 10)
	more := make(chan struct{})
	model := httptest.NewServer(tuitest.Model(func(q tuitest.Question, a *tuitest.Answer) {
		asked <- q.Body
		a.Say("Here is ")
		<-more
		a.Say("the answer.")
	}))
	defer model.Close()
	p := tuitest.New(t, 80, 24)
	cmd := exec.Command("goclaw", "--model", "anthropic/claude-sonnet-4-5")
	cmd.Env = []string{"HOME=" + home, "GOCLAW_HOME=" + home, "GOCLAW_NO_LOCAL=1", "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=sk-ant-test", "ANTHROPIC_BASE_URL=" + model.URL}
	cmd.Dir = ws
	p.Run(cmd)
	p.Rests()

	p.Press("!!echo only for me\r")
	p.See("\nonly for me\n")
	p.Rests()
	p.Press("!echo for you; exit 3\r")
	p.See("> [!echo for you; exit 3, 2 lines]")
	p.Press(pasted(strings.Repeat("a long paste\n", 400)))
	p.See("[pasted text #1, 400 lines]")
	p.Press(pasted("'" + filepath.Join(ws, "my shot.png") + "' "))
	p.See("[image #1, 120x80 PNG]")
	p.Press("see @not")
	p.See("▸ notes.md")
	p.Press("\t\r")
	p.See("attached notes.md (1 line)")
	p.See("Here is")
	body := <-asked
	for _, part := range []string{`"media_type":"image/png"`, strings.Repeat(`a long paste\n`, 400) + `[image #1, 120x80 PNG]see @notes.md`, `the boat is blue`, `for you\n[exit code 3]`} {
		if !strings.Contains(body, part) {
			t.Errorf("the model was not sent %.80q", part)
		}
	}
	if strings.Contains(body, "only for me") {
		t.Error("the model was sent what is only for the user")
	}

	// While the answer comes: a queued message comes back whole.
	p.Press("queued " + pasted(strings.Repeat("more\n", 50)) + "\r")
	p.See("» queued [pasted text #2, 50 lines] queued")
	p.Press("\x1b[A")
	p.See("> queued [pasted text #2, 50 lines]\n")
	p.Press("\x15/nothing\x15") // completion works meanwhile
	p.Press("/und")
	p.See("▸ /undo")
	p.Press("\x15")
	more <- struct{}{}
	p.See("Here is the answer.")
	p.Rests()
	close(more)
	p.Press("\x12boat") // it is not in what was typed
	p.See("not found: boat")
	p.Press("\x1b")
	p.Rests()
	p.Press("\x1b[A\x1b[A")
	p.See("> [!echo for you; exit 3, 2 lines] [pasted text #1, 400 lines]\n  [image #1, 120x80 PNG]see @notes.md\n")
}
