package runner

// Idle reports whether nothing is being done in the background.
func (r *Runner) Idle() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.busy) == 0
}
