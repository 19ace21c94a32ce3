//go:build !linux

package main

// hideEnvironment does nothing here: docs/reliability.md says what other
// processes can see on such a system.
func hideEnvironment() {}
