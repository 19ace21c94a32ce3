//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package line

import "golang.org/x/sys/unix"

// hide makes the terminal fd show nothing of what is typed, until show is called.
func hide(fd int) (show func(), err error) {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	quiet := *t
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, t) }, nil
}
