//go:build linux || darwin || freebsd

package sqlite

import "syscall"

// freeSpace returns how many bytes the disk of dir has left for everyone. Some
// file systems do not say.
func freeSpace(dir string) (int64, bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
