package main

import (
	"os/exec"
	"syscall"
)

// withTest has a program end with this one, even if it is killed.
func withTest(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
