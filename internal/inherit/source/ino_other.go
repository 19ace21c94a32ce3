//go:build !unix

package source

import "io/fs"

func inode(fs.FileInfo) uint64 { return 0 }

func owner(fs.FileInfo) (uid int, ok bool) { return 0, false }
