//go:build !(linux || darwin || freebsd)

package sqlite

// freeSpace is not known here: SQLite's own error must do.
func freeSpace(string) (int64, bool) { return 0, false }
