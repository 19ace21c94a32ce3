//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package line

// cookOutput has nothing to do: only the input of a console is raw.
func cookOutput(int) error { return nil }

// stop does nothing: programs cannot be suspended from the keyboard here.
func stop() {}
