//go:build !(linux || darwin || freebsd)

package space

// Free is unknown here; a full disk shows only in errors.
func Free(string) (int64, bool) { return 0, false }
