package session

// For tests in session_test.
var (
	Resume = resume
	NewID  = newID
)

// Steps returns how many steps the outline took to look for ancestors.
func (o *Outline) Steps() int { return o.steps }
