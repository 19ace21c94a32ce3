//go:build linux || darwin || freebsd

package space

import "syscall"

// Free returns how many bytes an ordinary user can still write to the disk of
// dir; ok is false if the file system does not tell.
func Free(dir string) (bytes int64, ok bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Blocks == 0 {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true
}
