package mcpc

import "time"

// A server takes as long to start as the machine is busy.
func init() { patience = time.Minute }

// Patient lets programs take a minute to end, until the result is called.
func Patient() (done func()) {
	was := terminate
	terminate = time.Minute
	return func() { terminate = was }
}
