package mcpd

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// What JSON-RPC says of lines that are no message.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// lines reads messages, a line each, and passes on what is one. The rest is
// answered: the library would end the conversation there.
type lines struct {
	in   *bufio.Reader
	out  io.Writer
	have []byte // messages that were not read yet
}

func newLines(in io.Reader, out io.Writer) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.have) == 0 {
		line, err := l.next()
		if err != nil && len(line) == 0 {
			return 0, err
		}
		if err := l.take(line); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.have)
	l.have = l.have[n:]
	return n, nil
}

// next returns the next line, at most maxLine bytes of it and one more.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part[:min(len(part), max(0, maxLine+1-len(line)))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take passes a line on, or answers it.
func (l *lines) take(line []byte) error {
	if len(line) > maxLine {
		return l.refuse(invalidRequest, fmt.Sprintf("a message has at most %d bytes", maxLine))
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if !json.Valid(line) {
		return l.refuse(parseError, "this line is no JSON: a message is one line of it")
	}
	messages := []json.RawMessage{line}
	if line[0] == '[' { // several at once are answered one by one
		if err := json.Unmarshal(line, &messages); err != nil {
			return err
		}
		if len(messages) == 0 {
			return l.refuse(invalidRequest, "there is no message in this line")
		}
	}
	for _, m := range messages {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			if err := l.refuse(invalidRequest, "this is no message of JSON-RPC 2.0: "+err.Error()); err != nil {
				return err
			}
			continue
		}
		l.have = append(append(l.have, m...), '\n')
	}
	return nil
}

// refuse answers what is no message.
func (l *lines) refuse(code int, why string) error {
	reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(reply, '\n'))
	return err
}
