// Package attach makes blocks of a message out of files: pictures, and texts with
// their names.
package attach

import (
	"errors"
	"fmt"
	"net/http"
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
