//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package line

import "time"

// cookOutput has nothing to do: only the input of a console is raw.
func cookOutput(int) error { return nil }

// canWait: a console cannot be waited for without reading.
const canWait = false

func readable(int, time.Duration) bool { return true }

// stop does nothing: programs cannot be suspended from the keyboard here.
func stop() {}
