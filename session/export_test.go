package session

// For tests in session_test.
var (
	Resume = resume
	NewID  = newID
)
