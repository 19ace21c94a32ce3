package main

import (
	"os"
	"syscall"
)

// datasync writes what f holds to the disk, and no more of its metadata than
// that needs.
func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
