package pgtest

import (
	"os/exec"
	"runtime"
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
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
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
	return func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }, done, nil
}
