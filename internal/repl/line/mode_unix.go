//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package line

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cookOutput lets "\n" begin a new line although the input is raw, so that
// whoever prints beside the editor needs to know nothing.
func cookOutput(fd int) error {
	t, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return err
	}
	t.Oflag |= unix.OPOST | unix.ONLCR
	return unix.IoctlSetTermios(fd, setTermios, t)
}

// stop stops the program as Ctrl-Z does and returns when it goes on.
func stop() {
	on := make(chan os.Signal, 1)
	signal.Notify(on, syscall.SIGCONT)
	defer signal.Stop(on)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	select {
	case <-on:
	case <-time.After(time.Second): // nobody can stop us: an orphan's group
	}
}
