//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package line

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TIOCGETA, unix.TIOCSETA

// flush drops text that was typed but not read yet, and reports whether fd is a
// terminal.
func flush(fd int) bool {
	const input = 1 // FREAD
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, input) == nil
}
