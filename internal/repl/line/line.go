// Package line reads lines without drawing anything: from a pipe, a file, or a
// terminal that shows what is typed itself. Package tui/editor is the input of
// the chat on a terminal.
package line

import "errors"

// ErrInterrupt is returned when the user pressed Ctrl-C instead of finishing
// the line, or when ReadLine's context was cancelled with it as the cause.
var ErrInterrupt = errors.New("line: interrupted")
