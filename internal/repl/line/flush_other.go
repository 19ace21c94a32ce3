//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package line

import "errors"

// hide is not possible on this system.
func hide(int) (show func(), err error) { return nil, errors.ErrUnsupported }

// flush cannot drop typed text on this system.
func flush(int) bool { return false }
