package line

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Plain reads lines from a pipe, a file or a terminal that cannot move its
// cursor. If Out is set, it shows the prompt there before each line. One
// goroutine reads at a time.
type Plain struct {
	Out io.Writer

	file *os.File // the input, if it is a file
	in   *bufio.Reader
	wait chan read // the line being read; nil: none
}

type read struct {
	text string
	err  error
}

// maxLine is how long a line of plain input may be.
const maxLine = 8 << 20

// NewPlain returns a reader of the lines of in.
func NewPlain(in io.Reader, out io.Writer) *Plain {
	f, _ := in.(*os.File)
	return &Plain{Out: out, file: f, in: bufio.NewReader(in)}
}

// ReadLine returns the next line; after a backslash at its end the next line
// belongs to it. The last line need not end in a newline.
func (p *Plain) ReadLine(ctx context.Context, prompt string) (string, error) {
	text := ""
	for {
		if p.Out != nil {
			io.WriteString(p.Out, prompt)
		}
		if p.wait == nil {
			c := make(chan read, 1)
			go func() { c <- p.line() }()
			p.wait = c
		}
		select {
		case <-ctx.Done():
			return text, context.Cause(ctx) // the next call gets the line
		case r := <-p.wait:
			p.wait = nil
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

// Ask is ReadLine for questions: it drops text typed on a terminal before.
func (p *Plain) Ask(ctx context.Context, prompt string) (string, error) {
	if p.file != nil && flush(int(p.file.Fd())) {
		select {
		case <-p.wait:
			p.wait = nil
		default:
		}
		if p.wait == nil {
			p.in.Discard(p.in.Buffered())
		}
	}
	return p.ReadLine(ctx, prompt)
}

// Yes reports whether an answer is a yes.
func Yes(answer string) bool {
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// AskSecret is Ask for what must not be seen: what is typed is not shown.
func (p *Plain) AskSecret(ctx context.Context, prompt string) (string, error) {
	if p.file != nil {
		show, err := hide(int(p.file.Fd()))
		if err != nil {
			return "", fmt.Errorf("the terminal cannot hide what is typed: %w", err)
		}
		defer func() {
			show()
			if p.Out != nil {
				io.WriteString(p.Out, "\n") // the Enter was hidden as well
			}
		}()
	}
	return p.Ask(ctx, prompt)
}

// line reads one line. An error after some text is returned by the next call.
func (p *Plain) line() read {
	var b []byte
	for {
		part, err := p.in.ReadSlice('\n')
		if b = append(b, part...); len(b) > maxLine {
			return read{err: fmt.Errorf("a line is longer than %d MiB", maxLine>>20)}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && (len(b) == 0 || !errors.Is(err, io.EOF)):
			return read{err: err} // a line that could not be read to its end is none
		default:
			text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
			return read{text: strings.ToValidUTF8(text, "\uFFFD")}
		}
	}
}
