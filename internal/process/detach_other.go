//go:build !unix

package process

import "errors"

// SpawnSelf is not possible here: what is due is done by this process.
func SpawnSelf(func(), ...string) error { return errors.ErrUnsupported }
