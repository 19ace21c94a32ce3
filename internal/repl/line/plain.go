package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Plain reads lines from what is no terminal, or one that can do nothing. It
// shows Prompt on Out before each line, if Out is set.
type Plain struct {
	Out io.Writer

	lines chan read
	once  sync.Once
	in    io.Reader
}

type read struct {
	text string
	err  error
}

// maxLine is how long a line of plain input may be.
const maxLine = 8 << 20

// NewPlain returns a reader of the lines of in.
func NewPlain(in io.Reader, out io.Writer) *Plain {
	return &Plain{Out: out, in: in, lines: make(chan read)}
}

// ReadLine returns the next line; one that ends in a backslash goes on in the
// next. The last line need not have an end.
func (p *Plain) ReadLine(ctx context.Context, prompt string) (string, error) {
	p.once.Do(func() { go p.pump() })
	text := ""
	for {
		if p.Out != nil {
			io.WriteString(p.Out, prompt)
		}
		select {
		case <-ctx.Done():
			return text, context.Cause(ctx)
		case r := <-p.lines:
			if r.err != nil && text+r.text == "" {
				return "", r.err
			}
			text += r.text
			if r.err == nil && strings.HasSuffix(text, `\`) {
				text = text[:len(text)-1] + "\n"
				continue
			}
			return text, nil
		}
	}
}

// Ask is ReadLine: there is nothing to forget.
func (p *Plain) Ask(ctx context.Context, prompt string) (string, error) {
	return p.ReadLine(ctx, prompt)
}

func (p *Plain) pump() {
	sc := bufio.NewScanner(p.in)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		p.lines <- read{text: strings.ToValidUTF8(sc.Text(), "\uFFFD")}
	}
	err := sc.Err()
	if err == nil {
		err = io.EOF
	} else if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("a line is longer than %d MiB", maxLine>>20)
	}
	for {
		p.lines <- read{err: err}
	}
}
