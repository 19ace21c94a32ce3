//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vectors

import "syscall"

// reserve returns n bytes that are not on the heap, nil if there are none.
func reserve(n int) []byte {
	if n == 0 {
		return nil
	}
	mem, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	return mem
}

func release(mem []byte) { _ = syscall.Munmap(mem) }
