//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

// Package ptytest is tuitest's person at a terminal, under the name that the
// tests of the chat have for it.
package ptytest

import "goclaw/internal/tui/tuitest"

// Person sits before a terminal.
type Person = tuitest.Person

// New returns a person before a terminal of that size.
var New = tuitest.New
