package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// File returns the file that a stream is or writes to.
func File(stream any) (*os.File, bool) {
	if w, ok := stream.(*Writer); ok {
		stream = w.Under()
	}
	f, ok := stream.(*os.File)
	return f, ok
}

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	f, ok := File(stream)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Columns returns the width of the terminal w; 0 if w is no terminal, or reports an
// implausible width.
func Columns(w io.Writer) int {
	if f, ok := File(w); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 20 {
			return n
		}
	}
	return 0
}
