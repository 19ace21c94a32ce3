package line

import "golang.org/x/sys/windows"

// flush drops text that was typed but not read yet, and reports whether fd is a
// console.
func flush(fd int) bool { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) == nil }
