// Package attach makes blocks of a message out of files: pictures, and texts with
// their names.
package attach

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"goclaw/llm"
)

// File returns a file as a block: a picture, or its text with its name.
func File(path string, data []byte) (b llm.Block, invalid int, err error) {
	if len(data) == 0 {
		return nil, 0, fmt.Errorf("%s cannot be attached: it is empty", path)
	}
	b, invalid, err = Content(path, data)
	if t, ok := b.(llm.Text); ok {
		b = llm.Text{Text: fmt.Sprintf("<file path=%q>\n%s\n</file>", path, t.Text)}
	}
	return b, invalid, err
}

// Command returns a command that the user ran, and what it printed.
func Command(command, output string) llm.Text {
	return llm.Text{Text: fmt.Sprintf("<shell command=%q>\n%s\n</shell>", command, strings.TrimRight(output, "\n"))}
}

// Message returns a message of text and what is attached: pictures stand before
// the text, everything else after it, so that the message begins with its words.
func Message(text string, attached []llm.Block) llm.Message {
	m := llm.Message{Role: llm.User}
	for _, b := range attached {
		if _, ok := b.(llm.Image); ok {
			m.Blocks = append(m.Blocks, b)
		}
	}
	m.Blocks = append(m.Blocks, llm.Text{Text: text})
	for _, b := range attached {
		if _, ok := b.(llm.Image); !ok {
			m.Blocks = append(m.Blocks, b)
		}
	}
	return m
}

var marks = regexp.MustCompile(`^<(file path|shell command)="`)

// Is reports whether a text is attached to a message: a file, or what a command
// printed.
func Is(t llm.Text) bool { return marks.MatchString(t.Text) }

// Words returns the text of a message without what is attached to it.
func Words(m llm.Message) string {
	var out []string
	for _, b := range m.Blocks {
		if t, ok := b.(llm.Text); ok && !Is(t) {
			out = append(out, t.Text)
		}
	}
	if len(out) == 0 {
		return m.Text()
	}
	return strings.Join(out, "\n")
}

// Content returns data as a picture or text, and at how many places the text was
// not UTF-8 and is now U+FFFD. Anything else is refused: no model makes sense of
// it.
func Content(name string, data []byte) (b llm.Block, invalid int, err error) {
	im, err := llm.NewImage(data)
	if err == nil {
		return im, 0, nil
	}
	if !errors.Is(err, llm.ErrNoImage) {
		return nil, 0, fmt.Errorf("%s cannot be attached: %w", name, err)
	}
	text, ok := llm.DecodeText(data)
	if !ok {
		kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
		return nil, 0, fmt.Errorf("%s cannot be attached: it is neither text nor a PNG, JPEG, GIF or WebP picture (%s, %d bytes); convert it to text first", name, kind, len(data))
	}
	if !utf8.Valid(data) {
		invalid = strings.Count(text, "\uFFFD")
	}
	return llm.Text{Text: text}, invalid, nil
}
