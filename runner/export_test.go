package runner

// Idle reports whether nothing is being done in the background.
func (r *Runner) Idle() bool {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	for _, sl := range r.slots.of {
		if sl.users > 0 {
			return false
		}
	}
	return true
}

// Slots returns how many sessions are in memory.
func (r *Runner) Slots() int {
	r.slots.mu.Lock()
	defer r.slots.mu.Unlock()
	return len(r.slots.of)
}
