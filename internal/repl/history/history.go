// Package history remembers what was typed in the chat, from one chat to the
// next.
package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"

	"goclaw/internal/wholefile"
)

// maxHistory is how many lines are remembered, maxEntry how long one may be, and
// maxFile how long the file.
const (
	maxHistory = 1000
	maxEntry   = 64 << 10
	maxFile    = 2*maxHistory*maxEntry + 1<<20
)

// History is the lines typed before, oldest first. With a path it is a file that
// only its owner can read, with one line of JSON per entry; several programs may
// add to it. The zero value remembers in memory.
type History struct {
	path  string
	lines []string
}

// Open reads the history at path. A missing file is an empty history, and
// damaged lines are skipped. A file that has become long is shortened.
func Open(path string) (*History, error) {
	h := &History{path: path}
	data, err := wholefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, err
	}
	stored := 0
	for line := range bytes.Lines(data) {
		stored++
		var s string
		if json.Unmarshal(line, &s) == nil && s != "" {
			h.push(s)
		}
	}
	if stored > 2*maxHistory {
		return h, h.rewrite()
	}
	return h, nil
}

// Lines returns the entries, oldest first.
func (h *History) Lines() []string { return h.lines }

// push remembers s, and reports whether it differs from the line before.
func (h *History) push(s string) bool {
	if n := len(h.lines); n > 0 && h.lines[n-1] == s {
		return false
	}
	h.lines = append(h.lines, s)
	h.lines = h.lines[max(len(h.lines)-maxHistory, 0):]
	return true
}

// Add remembers s, unless it is blank, very long, the same as the line before, or
// begins with a space, which is how a user keeps a line out.
func (h *History) Add(s string) error {
	if strings.TrimSpace(s) == "" || s[0] == ' ' || len(s) > maxEntry {
		return nil
	}
	if !h.push(s) || h.path == "" {
		return nil
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return wholefile.Append(h.path, append(line, '\n'))
}

// rewrite replaces the file with one that has only the remembered lines.
func (h *History) rewrite() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, s := range h.lines {
		enc.Encode(s) // a string has no error
	}
	return wholefile.Write(h.path, b.Bytes())
}

// Forget removes from the history at path the lines for which gone is true, and
// returns how many. It overwrites them with blanks where they are: the bytes are
// gone from the file, and what other programs add meanwhile is not lost.
// Programs that run keep what they have read until they end.
func Forget(path string, gone func(line string) bool) (n int, err error) {
	for range 3 { // again if another program replaced the file meanwhile
		more, err := forget(path, gone)
		n += more
		if err != nil || more == 0 {
			return n, err
		}
	}
	return n, nil
}

func forget(path string, gone func(line string) bool) (n int, err error) {
	data, err := wholefile.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	at := int64(0)
	for line := range bytes.Lines(data) {
		var s string
		text := bytes.TrimRight(line, "\n")
		if json.Unmarshal(text, &s) == nil && gone(s) {
			if _, err := f.WriteAt(bytes.Repeat([]byte(" "), len(text)), at); err != nil {
				return n, err
			}
			n++
		}
		at += int64(len(line))
	}
	if n == 0 {
		return 0, nil
	}
	return n, f.Sync()
}
