//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package tool

import (
	"errors"
	"os"
	"syscall"
)

// flock locks f until it is closed, if no other process has locked it. It
// reports whether one has; that f cannot be locked at all is not reported.
func flock(f *os.File) (taken bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		for {
			if err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EINTR) {
				return
			}
		}
	})
	return errors.Is(err, syscall.EWOULDBLOCK)
}
