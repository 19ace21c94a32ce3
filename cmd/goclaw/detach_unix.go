//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// spawnSelf starts this program again as a process that outlives this one. It
// has no terminal and no stream of ours: whoever reads our output sees its end
// when we are gone.
func spawnSelf(args ...string) error {
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
	go cmd.Wait() // so that it is no zombie as long as we live
	return nil
}
