package recall

import (
	"runtime"
	"syscall"
)

// lowPriority lets other threads go first. It is called by a goroutine that
// keeps its thread to its end, when the thread ends too.
func lowPriority() {
	runtime.LockOSThread()
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, syscall.Gettid(), 10) // it works without
}
