//go:build !linux

package recall

// lowPriority lets other threads go first, where that can be said of one thread.
func lowPriority() {}
