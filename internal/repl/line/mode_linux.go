package line

import "golang.org/x/sys/unix"

const getTermios, setTermios = unix.TCGETS, unix.TCSETS

// flush drops text that was typed but not read yet, and reports whether fd is a
// terminal.
func flush(fd int) bool { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) == nil }
