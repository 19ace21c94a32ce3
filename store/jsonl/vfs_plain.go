//go:build !linux

package jsonl

import "os"

func (osDisk) lstat(name string) (stat, error) {
	fi, err := os.Lstat(name)
	if err != nil {
		return stat{}, err
	}
	return statOf(fi), nil
}

func datasync(f *os.File) error { return f.Sync() }
