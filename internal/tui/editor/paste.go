package editor

import (
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"goclaw/internal/shell"
	"goclaw/internal/wholefile"
	"goclaw/llm"
)

// What is pasted stays as it is up to this many lines and characters. More
// becomes a chip.
const (
	pasteLines = 10
	pasteRunes = 1000
)

// pasted inserts what was pasted: text, a chip for a long one, or images whose
// paths were pasted, as a terminal does for files that are dropped on it.
func (e *Editor) pasted(text string) {
	text = clean(text)
	if text == "" {
		return
	}
	if e.o.Plain {
		e.buf.insert(text, false)
		return
	}
	if strings.Count(text, "\n") > pasteLines || utf8.RuneCountInString(text) > pasteRunes {
		e.buf.insert(e.chips.paste(text), false)
		return
	}
	before := state{e.buf.text, e.buf.pos}
	e.buf.insert(text, false) // undo brings the path back
	paths := imagePaths(text, e.o.Getenv("HOME"))
	var chips string
	for _, path := range paths {
		im, err := readImage(path)
		if err != nil {
			e.note = err.Error()
			return
		}
		chips += e.chips.image(im)
	}
	if chips != "" {
		e.buf.set(before.text[:before.pos]+chips+before.text[before.pos:], before.pos+len(chips))
	}
}

func readImage(path string) (llm.Image, error) {
	data, err := wholefile.Read(path, 2*llm.MaxImage)
	if err != nil {
		return llm.Image{}, fmt.Errorf("the image cannot be read: %w", err)
	}
	im, err := llm.NewImage(data)
	if err != nil {
		return im, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return im, nil
}

// imagePaths returns the paths of images that text consists of: absolute ones,
// quoted or not, or the address of a file. Anything else is text.
func imagePaths(text, home string) []string {
	text = strings.TrimSpace(text)
	if text == "" || strings.Contains(text, "\n") {
		return nil
	}
	if path, ok := imagePath(text, home); ok && exists(path) {
		return []string{path}
	}
	words, ok := shell.Words("x " + text)
	if !ok {
		return nil
	}
	var out []string
	for _, w := range words[1:] {
		path, ok := imagePath(w, home)
		if !ok || !exists(path) {
			return nil
		}
		out = append(out, path)
	}
	return out
}

func imagePath(s, home string) (string, bool) {
	if u, err := url.Parse(s); err == nil && u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		s = u.Path
	}
	if rest, ok := strings.CutPrefix(s, "~/"); ok && home != "" {
		s = filepath.Join(home, rest)
	}
	if runtime.GOOS == "windows" {
		s = strings.Trim(s, `"`)
	}
	switch strings.ToLower(filepath.Ext(s)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return s, filepath.IsAbs(s)
	}
	return "", false
}
