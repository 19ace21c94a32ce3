//go:build !unix

package main

import "errors"

// spawnSelf is not possible here: what is due is done by this process.
func spawnSelf(...string) error { return errors.ErrUnsupported }
