//go:build !unix

package jsonl

import (
	"io/fs"
	"os"
)

const openFlags = 0

func statOf(fi fs.FileInfo) stat {
	return stat{size: fi.Size(), mtime: fi.ModTime().UnixNano(), mode: fi.Mode()}
}

// alive reports whether there is a process pid.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	p.Release()
	return true
}

func readOnly(error) bool { return false }
