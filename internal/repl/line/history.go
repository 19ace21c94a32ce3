package line

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
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

// OpenHistory reads the history at path. A missing file is an empty history, and
// damaged lines are skipped. A file that has become long is shortened.
func OpenHistory(path string) (*History, error) {
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
