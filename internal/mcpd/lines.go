package mcpd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The error codes of JSON-RPC for lines that are no message.
const (
	parseError     = -32700
	invalidRequest = -32600
)

// lines reads messages, one per line, and passes them on. A line that is no
// message is answered here: the library would end the connection.
type lines struct {
	ctx    context.Context
	in     *bufio.Reader
	out    *writer
	have   []byte // messages that were not read yet
	wanted int    // answers that were asked for
}

// lastAnswers is how long answers are waited for after the end of the input.
// Later ones, and those of calls that were cancelled, are dropped.
const lastAnswers = 10 * time.Second

func newLines(ctx context.Context, in io.Reader, out *writer) *lines {
	return &lines{ctx: ctx, in: bufio.NewReaderSize(in, 64<<10), out: out}
}

func (l *lines) Read(p []byte) (int, error) {
	for len(l.have) == 0 {
		line, err := l.next()
		if err != nil && len(line) == 0 {
			ctx, cancel := context.WithTimeout(l.ctx, lastAnswers)
			defer cancel()
			l.out.answered(ctx, l.wanted)
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

// take passes a line on, or answers it with an error.
func (l *lines) take(line []byte) error {
	if len(line) > maxLine {
		return l.refuse(invalidRequest, fmt.Sprintf("this message is too long: at most %d bytes are allowed", maxLine))
	}
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if !json.Valid(line) {
		return l.refuse(parseError, "this line is not JSON: each message is one line of JSON")
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
		message, err := jsonrpc.DecodeMessage(m)
		if err != nil {
			if err := l.refuse(invalidRequest, "this is not a JSON-RPC 2.0 message: "+err.Error()); err != nil {
				return err
			}
			continue
		}
		if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() {
			l.wanted++
		}
		l.have = append(append(l.have, m...), '\n')
	}
	return nil
}

// refuse answers a line that is no message.
func (l *lines) refuse(code int, why string) error {
	reply, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": why}})
	if err != nil {
		return err
	}
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	_, err = l.out.Writer.Write(append(reply, '\n'))
	return err
}
