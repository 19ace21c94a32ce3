//go:build unix

package tool

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// nonblock lets an open return at once, whatever the file is.
const nonblock = syscall.O_NONBLOCK

// keepOwner gives f the owner of the file it will replace, if it may.
func keepOwner(f *os.File, info fs.FileInfo) {
	old, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	now, err := f.Stat()
	if err != nil {
		return
	}
	if st, ok := now.Sys().(*syscall.Stat_t); ok && (st.Uid != old.Uid || st.Gid != old.Gid) {
		f.Chown(int(old.Uid), int(old.Gid))
	}
}

// links returns how many names a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// detach puts cmd into a session of its own, and so into a process group of
// its own that can be ended as a whole. Without a terminal, a program that
// wants to ask for a password fails at once instead of waiting unseen.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
}

// endGroup ends every process in cmd's group: those that do not go when asked
// to within grace are killed. It returns when the group is gone or killed.
//
// Once silent is closed no process holds the output any more, and a tenth of
// grace is enough: the rest is most likely dead and waits for a process 1 that
// does not collect it, as in many containers.
func endGroup(cmd *exec.Cmd, grace time.Duration, silent <-chan struct{}) {
	group := -cmd.Process.Pid
	syscall.Kill(group, syscall.SIGTERM)
	syscall.Kill(group, syscall.SIGCONT) // a stopped process hears nothing else
	const step = 10 * time.Millisecond
	for left := grace; left > 0; left -= step {
		// The group's number is not given away while a member lives.
		if errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
			return
		}
		select {
		case <-silent:
			left, silent = min(left, grace/10), nil
		case <-time.After(step):
		}
	}
	syscall.Kill(group, syscall.SIGKILL)
}

// ending says how a process ended: its exit code, or the signal it died of.
func ending(state *os.ProcessState) (code int, signal string) {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal().String()
	}
	return state.ExitCode(), ""
}

// shells are what is looked for, in this order.
var shells = []string{"bash", "sh"}

// systemPath is where programs are on a system of this kind.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func executable(info fs.FileInfo) bool {
	return info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
