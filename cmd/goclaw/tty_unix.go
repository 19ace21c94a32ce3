//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// ttyName returns what tells the terminal f apart from others.
func ttyName(f *os.File) string {
	fi, err := f.Stat()
	if err != nil {
		return ""
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("tty %x", st.Rdev)
}
