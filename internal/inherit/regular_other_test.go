//go:build !unix

package inherit_test

import "errors"

func mkfifo(string) error { return errors.ErrUnsupported }
