package editor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	tea "charm.land/bubbletea/v2"

	"goclaw/internal/shell"
	"goclaw/internal/wholefile"
)

// edited is what came back from the user's own editor.
type edited struct {
	text, before string
	err          error
}

// maxEdited is how much text is taken back.
const maxEdited = 8 << 20

// external opens the text in the user's own editor.
func (e *Editor) external() tea.Cmd {
	words := editorCommand(e.o.Getenv)
	before := e.buf.text
	dir, err := os.MkdirTemp("", "goclaw-")
	if err != nil {
		e.note = err.Error()
		return nil
	}
	path := filepath.Join(dir, "message.md")
	if err := os.WriteFile(path, []byte(e.chips.shown(before)+"\n"), 0o600); err != nil {
		os.RemoveAll(dir)
		e.note = err.Error()
		return nil
	}
	cmd := exec.Command(words[0], append(words[1:len(words):len(words)], path)...)
	return tea.Exec(onTerminal{cmd}, func(err error) tea.Msg {
		defer os.RemoveAll(dir)
		if err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				err = fmt.Errorf("%w (set EDITOR to one that is installed)", err)
			}
			return edited{err: fmt.Errorf("%s: %w; your text is as it was", words[0], err)}
		}
		data, err := wholefile.Read(path, maxEdited)
		return edited{text: string(data), before: before, err: err}
	})
}

// editorCommand returns the command of the user's editor.
func editorCommand(getenv func(string) string) []string {
	usual := "vi"
	if runtime.GOOS == "windows" {
		usual = "notepad"
	} else if _, err := exec.LookPath("vi"); err != nil {
		usual = "nano"
	}
	command := cmp.Or(getenv("VISUAL"), getenv("EDITOR"), usual)
	if words, ok := shell.Words(command); ok {
		return words
	}
	if words := strings.Fields(command); len(words) > 0 {
		return words
	}
	return []string{usual}
}

func (e *Editor) edited(m edited) {
	if m.err != nil {
		e.note = m.err.Error()
		return
	}
	text := e.chips.within(strings.TrimRight(clean(m.text), "\n"), m.before)
	text = e.chips.fitting(text)
	e.buf.set(text, len(text))
	e.menu.close()
}

// onTerminal is a command that has the terminal itself: through a pipe, editors
// refuse to work.
type onTerminal struct{ *exec.Cmd }

func (c onTerminal) SetStdin(r io.Reader) {
	if t, ok := r.(interface{ Terminal() *os.File }); ok {
		r = t.Terminal()
	}
	c.Stdin = r
}

func (c onTerminal) SetStdout(w io.Writer) {
	if t, ok := w.(interface{ Terminal() *os.File }); ok {
		w = t.Terminal()
	}
	c.Stdout = w
}

func (c onTerminal) SetStderr(w io.Writer) { c.Stderr = c.Stdout }
