//go:build amd64 || arm64

package tool

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The rights that Landlock keeps from commands, and what it gives back where.
// Listing folders is not among them: of what is private, names can be seen.
// Devices are made nowhere: root could reach a disk through one.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	mayWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	mayNever  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
	mayDevice = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	ofFiles   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | mayDevice
)

// devices are what every command may write to.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// temporary are the folders for temporary files.
var temporary = []string{"/tmp", "/var/tmp", "/dev/shm"}

// leastLandlock is the first version that knows truncation. Without that, a
// command could empty any file.
const leastLandlock = 3

var landlockVersion = sync.OnceValue(func() int {
	v, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(v)
})

// lacks says why commands cannot be confined here.
func (b *bash) lacks() string {
	switch v := landlockVersion(); {
	case v >= leastLandlock || b.bubblewrap() != "":
		return ""
	case v == 0:
		return "this kernel has no Landlock, and there is no bubblewrap (bwrap) that works"
	}
	return "this kernel's Landlock is too old (Linux 6.2 is needed), and there is no bubblewrap (bwrap) that works"
}

// writable returns the folders that a confined command may write in. The paths
// hold no links.
func (b *bash) writable() (out []string) {
	for _, dir := range append(append([]string{b.dir, variable(b.env, "TMPDIR")}, temporary...), b.sandbox.Writable...) {
		if filepath.IsAbs(dir) {
			out = append(out, followed(dir))
		}
	}
	return out
}

// start starts cmd, confined as c says.
//
// Restrictions belong to a thread, and what it starts inherits them. So cmd is
// started from a thread that is restricted first and ends afterwards: a program
// that uses this package need not be able to start itself a second time.
func (b *bash) start(cmd *exec.Cmd, c Confinement) error {
	if !c.Files && !c.NoNetwork {
		return cmd.Start()
	}
	if landlockVersion() < leastLandlock {
		b.wrap(cmd, b.bubblewrap(), c)
		return cmd.Start()
	}
	rules := -1
	if c.Files {
		var err error
		if rules, err = b.landlock(); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		defer unix.Close(rules)
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this function
		err := restrict(rules, c.NoNetwork)
		if err == nil {
			err = cmd.Start()
		}
		done <- err
	}()
	return <-done
}

// restrict confines this thread.
func restrict(rules int, noNetwork bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if rules >= 0 {
		if _, _, e := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); e != 0 {
			return fmt.Errorf("sandbox: Landlock: %w", e)
		}
	}
	if noNetwork {
		program := unix.SockFprog{Len: uint16(len(noSockets)), Filter: &noSockets[0]}
		if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
			return fmt.Errorf("sandbox: seccomp: %w", err)
		}
	}
	return nil
}

// noSockets refuses to make a socket of any kind: one to a local service, such
// as docker, leads out as well. Pairs of sockets, which programs talk to
// themselves with, are made by another call. A system call of another
// architecture would be numbered differently: it ends the program. io_uring
// could make sockets unseen.
var noSockets = func() []unix.SockFilter {
	const (
		load    = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret     = unix.BPF_RET | unix.BPF_K
		x32     = 0x40000000 // a second set of numbers, on amd64
	)
	arch := uint32(unix.AUDIT_ARCH_X86_64)
	if runtime.GOARCH == "arm64" {
		arch = unix.AUDIT_ARCH_AARCH64
	}
	return []unix.SockFilter{
		{Code: load, K: 4}, // the architecture
		{Code: equal, K: arch, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: 0}, // the number of the call
		{Code: atLeast, K: x32, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 3},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
	}
}()

// landlock returns the rules for a command, as the files are now.
func (b *bash) landlock() (fd int, err error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: mayRead | mayWrite | mayNever}
	if landlockVersion() >= 5 {
		attr.Handled_access_fs |= mayDevice
	}
	if landlockVersion() >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	r, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return -1, fmt.Errorf("no rules from Landlock: %w", e)
	}
	rules := landlock{fd: int(r), handled: attr.Handled_access_fs, area: b.fence.area(b.dir)}
	rules.allow("/", mayRead)
	for _, dir := range b.writable() {
		rules.allow(dir, mayRead|mayWrite)
	}
	for _, file := range devices {
		rules.allow(file, mayRead|mayWrite|mayDevice)
	}
	return rules.fd, nil
}

// landlock are rules in the making.
type landlock struct {
	fd      int
	handled uint64
	area    area
}

// allow gives rights to path and everything below it, except for what is hidden.
// Rights cannot be taken back below a folder that has them: where something
// hidden is below a folder, its other entries get them one by one. A link gets
// none, since what it leads to has its own.
func (l landlock) allow(path string, rights uint64) {
	if l.area.hides(path) {
		for _, open := range under(path, l.area.open) {
			if !l.area.hides(open) {
				l.allow(open, rights)
			}
		}
		return
	}
	if len(under(path, l.area.hidden)) == 0 {
		l.add(path, rights)
		return
	}
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink == 0 {
			l.allow(filepath.Join(path, e.Name()), rights)
		}
	}
}

// add makes one rule. What cannot be opened gets no rights.
func (l landlock) add(path string, rights uint64) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & l.handled, Parent_fd: int32(fd)}
	unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(l.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
}
