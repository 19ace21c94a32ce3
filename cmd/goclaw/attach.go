package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"unicode/utf8"

	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/llm"
)

// maxInput is how much of a file or of standard input is attached.
const maxInput = 8 << 20

// message makes one message of text, attachments and standard input.
func (e *env) message(text string, attach []string) (llm.Message, error) {
	m := llm.Message{Role: llm.User}
	for _, path := range attach {
		b, err := e.attachment(path)
		if err != nil {
			return m, err
		}
		m.Blocks = append(m.Blocks, b)
	}
	var parts []string // the question first: what is attached is about it
	if strings.TrimSpace(text) != "" {
		parts = append(parts, text)
	}
	if !isTerminal(e.in) && e.in != nil {
		data, err := io.ReadAll(io.LimitReader(e.in, maxInput+1))
		if err != nil {
			return m, fmt.Errorf("standard input: %w", err)
		}
		if len(data) > maxInput {
			return m, fmt.Errorf("standard input is longer than %d MiB: give the path of a file instead", maxInput>>20)
		}
		b, err := e.content("standard input", data)
		if err != nil {
			return m, err
		}
		if t, ok := b.(llm.Text); !ok {
			m.Blocks = append(m.Blocks, b)
		} else if t := strings.TrimSpace(t.Text); t != "" {
			parts = append(parts, t)
		}
	}
	if len(parts) > 0 {
		m.Blocks = append(m.Blocks, llm.Text{Text: strings.Join(parts, "\n\n")})
	}
	if len(m.Blocks) == 0 {
		return m, usage("ask needs TEXT, or something on standard input: see goclaw ask --help")
	}
	return m, nil
}

// attachment reads a file as a block: a picture, or text with its name.
func (e *env) attachment(path string) (llm.Block, error) {
	data, err := wholefile.Read(path, maxInput)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("%s cannot be attached: %w", path, err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("%s cannot be attached: it is empty", path)
	}
	b, err := e.content(path, data)
	if t, ok := b.(llm.Text); ok {
		b = llm.Text{Text: fmt.Sprintf("<file path=%q>\n%s\n</file>", path, t.Text)}
	}
	return b, err
}

// content returns data as a picture or text. Anything else is refused: no model
// makes sense of it.
func (e *env) content(name string, data []byte) (llm.Block, error) {
	im, err := llm.NewImage(data)
	if err == nil {
		return im, nil
	}
	if !errors.Is(err, llm.ErrNoImage) {
		return nil, fmt.Errorf("%s cannot be attached: %w", name, err)
	}
	text, ok := llm.DecodeText(data)
	if !ok {
		kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
		return nil, fmt.Errorf("%s cannot be attached: it is neither text nor a PNG, JPEG, GIF or WebP picture (%s, %d bytes); convert it to text first", name, kind, len(data))
	}
	if n := strings.Count(text, "\uFFFD"); n > 0 && !utf8.Valid(data) {
		e.note("%s is not entirely UTF-8: invalid bytes are sent as \uFFFD (%s)", name, transcript.Count(n, "place"))
	}
	return llm.Text{Text: text}, nil
}
