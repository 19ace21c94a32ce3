//go:build !unix

package main

import "errors"

// spawnSelf is not possible here: what is due is done by this process.
func spawnSelf(func(), ...string) error { return errors.ErrUnsupported }
