// Package space tells that a disk is full.
package space

import (
	"errors"
	"fmt"
	"syscall"

	"goclaw/session"
)

// Full reports whether err means that a disk or a quota is full.
func Full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Error says that Path could not be written because its disk is full. It wraps
// session.ErrFull and Err.
type Error struct {
	Store string // the package of the store
	Path  string
	Err   error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: no space left on the disk of %s: free some and try again (%v)", e.Store, e.Path, e.Err)
}

func (e *Error) Unwrap() []error { return []error{session.ErrFull, e.Err} }

// Wrap returns err, as an Error about path if it means that the disk is full.
func Wrap(store, path string, err error) error {
	if !Full(err) || errors.Is(err, session.ErrFull) {
		return err
	}
	return &Error{store, path, err}
}
