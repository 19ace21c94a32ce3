//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"
)

// SpawnSelf starts this program again as a process that outlives this one. It
// has no terminal and none of this process's streams: a reader of our output sees
// its end when this process exits. ended is called when it has ended, if this
// process still runs then.
func SpawnSelf(ended func(), args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Args[0] = os.Args[0]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		cmd.Wait() // reap it
		ended()
	}()
	return nil
}
