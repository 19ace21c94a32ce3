package tool

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// strays returns the processes that were started with mark in their
// environment, whatever group or session they are in now. What they start has
// it too, unless it was given another environment.
func strays(mark string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(env, []byte(mark)) { // not ours to see, or gone
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if state, _ := stat(pid); err == nil && pid != os.Getpid() && state != 'Z' {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endStrays ends what a command with this mark has started and what has left its
// group since. What they start meanwhile is found the next time around.
func endStrays(mark string) {
	for range 20 {
		pids := strays(mark)
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive reports whether a process of the group still runs. One that has ended
// and waits to be collected does not.
func alive(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(dirs) == 0 {
		return true
	}
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if state, of := stat(pid); of == group && state != 'Z' && state != 'X' {
			return true
		}
	}
	return false
}

// stat returns the state and the group of a process; see proc_pid_stat(5).
func stat(pid int) (state byte, group int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 'X', 0
	}
	// The name before it may hold anything.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 3 {
		return 'X', 0
	}
	group, _ = strconv.Atoi(fields[2])
	return fields[0][0], group
}
