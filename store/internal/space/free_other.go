//go:build !(linux || darwin || freebsd)

package space

// Free is not known here: the error itself must say that the disk is full.
func Free(string) (int64, bool) { return 0, false }
