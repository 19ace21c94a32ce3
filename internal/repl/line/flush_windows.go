package line

import "golang.org/x/sys/windows"

// hide makes the console fd show nothing of what is typed, until show is called.
func hide(fd int) (show func(), err error) {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(fd), &mode); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(windows.Handle(fd), mode&^windows.ENABLE_ECHO_INPUT); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(windows.Handle(fd), mode) }, nil
}

// flush drops text that was typed but not read yet, and reports whether fd is a
// console.
func flush(fd int) bool { return windows.FlushConsoleInputBuffer(windows.Handle(fd)) == nil }
