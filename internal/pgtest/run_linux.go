package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// as has cmd run as another user, if uid is not 0.
func as(cmd *exec.Cmd, uid, gid int) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// run starts cmd, which ends with this process: at once, without a checkpoint.
func run(cmd *exec.Cmd) (end func(), ended <-chan error, err error) {
	return runUntil(cmd, syscall.SIGQUIT)
}

// runUntil is run for a program that a signal ends.
func runUntil(cmd *exec.Cmd, sig signal) (end func(), ended <-chan error, err error) {
	cmd.SysProcAttr.Pdeathsig = sig
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the kernel watches the thread
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
			close(done)
		}
	}()
	if err := <-started; err != nil {
		return nil, nil, err
	}
	return func() { _ = cmd.Process.Signal(sig) }, done, nil
}

// apart has signals of a terminal not reach cmd.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr.Setsid = true }

type signal = syscall.Signal

// Signals for signalAll.
const (
	kill = syscall.SIGKILL
	stop = syscall.SIGSTOP
	cont = syscall.SIGCONT
)

// signalAll sends a signal to a process and its children. Those of a postmaster
// have process groups of their own.
func signalAll(pid int, sig signal) error {
	if err := syscall.Kill(pid, stop); err != nil { // it starts no more children
		return err
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	for _, f := range strings.Fields(string(b)) {
		if child, e := strconv.Atoi(f); e == nil {
			_ = syscall.Kill(child, sig) // it may have ended
		}
	}
	if e := syscall.Kill(pid, sig); err == nil {
		err = e
	}
	return err
}
