//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package tool

import "os"

// flock cannot lock a folder here.
func flock(*os.File) (taken bool) { return false }
