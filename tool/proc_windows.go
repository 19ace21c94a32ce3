package tool

import (
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// Opening a file here does not wait for another process.
const nonblock = 0

// A new file inherits its owner and access list from its directory.
func keepOwner(*os.File, fs.FileInfo) {}

// The number of a file's names is not known here.
func links(fs.FileInfo) uint64 { return 1 }

// detach keeps a Ctrl-C in the console away from cmd.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// endGroup ends cmd and every process below it. There is no polite way that
// console programs without a console would hear.
func endGroup(cmd *exec.Cmd, _ time.Duration, _ <-chan struct{}) {
	kill := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid))
	if kill.Run() != nil {
		cmd.Process.Kill()
	}
}

func ending(state *os.ProcessState) (code int, signal string) {
	return state.ExitCode(), ""
}

var shells = []string{"bash.exe", "sh.exe"}

const systemPath = `C:\Program Files\Git\bin;C:\Windows\System32;C:\Windows`

func executable(info fs.FileInfo) bool { return info.Mode().IsRegular() }

// Only what taskkill reaches is ended here.
func endStrays(string) {}

func alive(int) bool { return false }
