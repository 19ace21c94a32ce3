package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"goclaw/internal/attach"
	"goclaw/internal/terminal"
	"goclaw/internal/transcript"
	"goclaw/internal/wholefile"
	"goclaw/llm"
)

// maxInput is how much of a file or of standard input is attached.
const maxInput = 8 << 20

// message makes one message of text, attachments and standard input.
func (e *env) message(text string, paths []string) (llm.Message, error) {
	m := llm.Message{Role: llm.User}
	for _, path := range paths {
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
	if !terminal.Is(e.in) && e.in != nil {
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
	b, invalid, err := attach.File(path, data)
	notUTF8(e, path, invalid)
	return b, err
}

// content returns data as a picture or text.
func (e *env) content(name string, data []byte) (llm.Block, error) {
	b, invalid, err := attach.Content(name, data)
	notUTF8(e, name, invalid)
	return b, err
}

// notUTF8 tells that a text was not UTF-8 at some places.
func notUTF8(e *env, name string, places int) {
	if places > 0 {
		e.note("%s is not entirely UTF-8: invalid bytes are sent as \uFFFD (%s)", name, transcript.Count(places, "place"))
	}
}
