package main

import "sync"

// notes are lines that wait until the user can be told.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

// take returns the lines, once.
func (n *notes) take() (lines []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines, n.lines = n.lines, nil
	return lines
}
