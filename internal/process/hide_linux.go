package process

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"goclaw/internal/config"
	"goclaw/internal/secrets"
)

// Hide makes this process's secrets unreadable for other processes,
// above all for the commands that a model writes: their parent is this process,
// and /proc/PID/environ shows with which environment it was started.
//
//   - Other processes of the same user may no longer look into this one: not at
//     its environment, its memory or its open files. It leaves no core dump, and
//     only root can attach a debugger. Children are as they were, from their
//     exec on.
//   - root may look all the same. So the values of secret variables are
//     overwritten where the kernel keeps them. The Go runtime has copied them
//     before, and this program and the processes it starts go on with the copy.
//
// The same is done to arguments that hold a password: every user sees them in the
// list of processes. Where /proc is missing only the first is done.
func Hide() {
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
	block := environBlock()
	if block != nil {
		blankArguments()
	}
	blankSecrets(block)
}

// blankArguments overwrites the arguments that hold a password, after it has
// copied them. They must be where the kernel keeps them.
func blankArguments() {
	for i, arg := range os.Args {
		if i == 0 || config.WithoutPassword(arg) == arg {
			continue
		}
		os.Args[i] = strings.Clone(arg)
		for j := range len(arg) {
			*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(arg)), j)) = '*'
		}
	}
}

// environBlock returns the memory that /proc/self/environ shows, nil if it is
// not known.
func environBlock() []byte {
	if len(os.Args) == 0 || os.Args[0] == "" {
		return nil
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return nil
	}
	// The second field is a name in parentheses that may hold blanks. Those
	// after it are counted from 3: see proc_pid_stat(5).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	field := func(n int) uintptr {
		if n-3 >= len(fields) {
			return 0
		}
		v, _ := strconv.ParseUint(string(fields[n-3]), 10, 64)
		return uintptr(v)
	}
	argStart, envStart, envEnd := field(48), field(50), field(51)
	// The arguments are in the same piece of memory, before the environment, and
	// os.Args is not a copy.
	first := unsafe.Pointer(unsafe.StringData(os.Args[0]))
	if argStart == 0 || uintptr(first) != argStart || envStart <= argStart || envEnd <= envStart {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(first, envStart-argStart)), envEnd-envStart)
}

// blankSecrets overwrites the secrets in an environment block.
func blankSecrets(block []byte) {
	for len(block) > 0 {
		kv, rest, _ := bytes.Cut(block, []byte{0})
		if name, value, ok := bytes.Cut(kv, []byte("=")); ok && secrets.Variable(string(name), string(value)) {
			for i := range value {
				value[i] = '*'
			}
		}
		block = rest
	}
}
