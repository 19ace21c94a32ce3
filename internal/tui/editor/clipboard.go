package editor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"goclaw/llm"
)

// copied is what was in the clipboard.
type copied struct {
	image llm.Image
	err   error
}

func (e *Editor) copied(c copied) {
	if c.err != nil {
		e.note = c.err.Error()
		return
	}
	e.buf.insert(e.chips.image(c.image), false)
}

// fromClipboard reads an image from the clipboard with a program that the system
// has for it.
func fromClipboard(getenv func(string) string) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		data, err := clipboardImage(ctx, getenv)
		if err != nil {
			return copied{err: err}
		}
		im, err := llm.NewImage(data)
		if err != nil {
			err = fmt.Errorf("the image in the clipboard: %w", err)
		}
		return copied{im, err}
	}
}

var errNoClipboard = errors.New("no clipboard can be read here; paste the path of an image instead")

// imageTypes are what images in a clipboard may be, the best first.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

func clipboardImage(ctx context.Context, getenv func(string) string) ([]byte, error) {
	has := func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	}
	switch {
	case runtime.GOOS == "darwin":
		return viaFile(ctx, func(path string) *exec.Cmd {
			return exec.CommandContext(ctx, "osascript", "-e", `on run argv`, "-e", `set f to open for access POSIX file (item 1 of argv) with write permission`,
				"-e", `write (the clipboard as «class PNGf») to f`, "-e", `close access f`, "-e", `end run`, path)
		})
	case runtime.GOOS == "windows", getenv("WSL_DISTRO_NAME") != "" && has("powershell.exe"):
		return viaFile(ctx, func(path string) *exec.Cmd {
			if out, err := exec.CommandContext(ctx, "wslpath", "-w", path).Output(); err == nil {
				path = strings.TrimSpace(string(out))
			}
			script := fmt.Sprintf("$i = Get-Clipboard -Format Image; if ($i) { $i.Save('%s') } else { exit 1 }", strings.ReplaceAll(path, "'", "''"))
			return exec.CommandContext(ctx, "powershell.exe", "-NoProfile", "-Command", script)
		})
	case getenv("WAYLAND_DISPLAY") != "" && has("wl-paste"):
		return viaTypes(ctx, []string{"wl-paste", "--list-types"}, []string{"wl-paste", "--no-newline", "--type"}, nil)
	case getenv("DISPLAY") != "" && has("xclip"):
		return viaTypes(ctx, []string{"xclip", "-selection", "clipboard", "-t", "TARGETS", "-o"}, []string{"xclip", "-selection", "clipboard", "-t"}, []string{"-o"})
	case getenv("WAYLAND_DISPLAY") != "":
		return nil, errors.New("install wl-clipboard to paste images, or paste the path of one")
	case getenv("DISPLAY") != "":
		return nil, errors.New("install xclip to paste images, or paste the path of one")
	}
	return nil, errNoClipboard
}

var errNoImage = errors.New("there is no image in the clipboard")

// viaTypes asks which types there are, and reads the best one.
func viaTypes(ctx context.Context, list, read, after []string) ([]byte, error) {
	types, err := exec.CommandContext(ctx, list[0], list[1:]...).Output()
	if err != nil {
		return nil, errNoImage
	}
	for _, t := range imageTypes {
		for line := range bytes.Lines(types) {
			if string(bytes.TrimSpace(line)) != t {
				continue
			}
			args := append(append(read[1:len(read):len(read)], t), after...)
			data, err := exec.CommandContext(ctx, read[0], args...).Output()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", read[0], err)
			}
			return data, nil
		}
	}
	return nil, errNoImage
}

// viaFile lets a command write the image to a file.
func viaFile(ctx context.Context, write func(path string) *exec.Cmd) ([]byte, error) {
	dir, err := os.MkdirTemp("", "goclaw-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "image.png")
	if err := write(path).Run(); err != nil {
		return nil, errNoImage
	}
	return os.ReadFile(path)
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
