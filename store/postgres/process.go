package postgres

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
)

// machine identifies this start of this machine and the space of its process
// numbers; "" if that is not known.
var machine = sync.OnceValue(func() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + space
})

// thisProcess identifies this process. It is "" where that cannot be known.
var thisProcess = sync.OnceValue(func() string {
	at, err := born(os.Getpid())
	if machine() == "" || err != nil {
		return ""
	}
	return machine() + " " + at
})

// callName identifies a call, and begins with something that no other call has.
func callName() string { return rand.Text() + "@" + thisProcess() }

// hasEnded reports whether a process, or the process of a call, is known to have
// ended, because it ran on this machine. A number may have been given to another
// process since.
func hasEnded(pid int, process string) bool {
	if _, after, ok := strings.Cut(process, "@"); ok {
		process = after
	}
	if machine() == "" || !strings.HasPrefix(process, machine()+" ") {
		return false
	}
	at, err := born(pid)
	return os.IsNotExist(err) || err == nil && process != machine()+" "+at
}

// born returns when the process pid began, in the kernel's own measure; "" if it
// has ended and is not yet collected by its parent.
func born(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is the name of the program, in brackets.
	text := string(b)
	f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(f) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields", pid, len(f))
	}
	if f[0] == "Z" || f[0] == "X" {
		return "", nil
	}
	return f[19], nil
}
