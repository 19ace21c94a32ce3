//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package line

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cookOutput lets "\n" start a new line although the input is raw, so that other
// code can print without knowing about the editor.
func cookOutput(fd int) error {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Oflag |= unix.OPOST | unix.ONLCR
	return unix.IoctlSetTermios(fd, setTermios, t)
}

// canWait says that readable works here.
const canWait = true

// readable reports whether a read of the terminal fd returns at once, with
// something or an error. It waits up to wait for that.
func readable(fd int, wait time.Duration) bool {
	var set unix.FdSet
	set.Set(fd)
	var limit *unix.Timeval
	if wait != forever {
		tv := unix.NsecToTimeval(wait.Nanoseconds())
		limit = &tv
	}
	n, err := unix.Select(fd+1, &set, nil, nil, limit)
	return n > 0 || err != nil && err != unix.EINTR
}

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

// stop suspends the program as Ctrl-Z does and returns when it is resumed.
func stop() {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-on:
	case <-time.After(time.Second): // an orphaned process group cannot be stopped
	}
}
