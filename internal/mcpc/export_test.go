package mcpc

import "time"

// On a busy machine a server takes long to start.
func init() { patience = time.Minute }

// Patient lets programs take a minute to end, until the result is called.
func Patient() (done func()) {
	was := terminate
	terminate = time.Minute
	return func() { terminate = was }
}
