package line

import "golang.org/x/sys/windows"

// flush drops what was typed and not read yet, and reports whether fd is a
// console.
func flush(fd int) bool { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) == nil }
