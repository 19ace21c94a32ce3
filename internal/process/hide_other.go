//go:build !linux

package process

// Hide does nothing here: docs/reliability.md says what other
// processes can see on such a system.
func Hide() {}
